"""A picture of many partitions is made small before it is sent."""

import json

import pytest

from cotidal.console.delta import difference, merged
from cotidal.console.outline import (
    BEHIND,
    BELOW_MIN_ISR,
    HEALTHY,
    NO_LEADER,
    NOT_PREFERRED,
    outlined,
    severity,
)
from cotidal.limits import PAGE_PARTITIONS_LISTED, PAGE_PARTITIONS_WHOLE


def replica(end, role="follower"):
    return {"start": 0, "high_watermark": end, "end": end, "epochs": [[0, 0]], "role": role}


def partition(number, *, leader=None, isr=None, end=10):
    replicas = [1 + (number + turn) % 3 for turn in range(3)]
    leader = replicas[0] if leader is None else leader
    return {
        "leader": leader,
        "leader_epoch": 4,
        "partition_epoch": 0,
        "preferred": replicas[0],
        "replicas": replicas,
        "isr": replicas if isr is None else isr,
        "elr": [],
        "min_isr": 2,
        "logs": {str(node): replica(end) for node in replicas},
    }


def picture(count, **changed):
    partitions = {f"orders-{n}": partition(n) for n in range(count)}
    partitions |= {name.replace("_", "-"): value for name, value in changed.items()}
    return {
        "now_us": 1,
        "brokers": {str(n): {"id": n, "state": "up"} for n in (1, 2, 3)},
        "partitions": partitions,
        "clients": {
            "p": {"kind": "producer", "host": 1000},
            "c": {
                "kind": "consumer",
                "host": 1001,
                "positions": dict.fromkeys(partitions, 7),
                "reads_from": dict.fromkeys(partitions, "node-1"),
            },
        },
    }


def test_few_partitions_are_shown_whole():
    few = picture(PAGE_PARTITIONS_WHOLE)
    assert outlined(few, "orders-3") == few


def test_of_many_the_chosen_one_is_whole_and_the_others_are_rows():
    shown = outlined(picture(1000), "orders-512")
    assert list(shown["partitions"]) == ["orders-512"]
    assert shown["outline"]["of"] == 1000
    assert shown["outline"]["rows"]["orders-1"] == [
        2, 4, [2, 3, 1], [2, 3, 1], [], 10, 10, 2, []
    ]  # fmt: skip
    assert shown["clients"]["c"]["positions"] == {"orders-512": 7}
    assert shown["clients"]["p"] == {"kind": "producer", "host": 1000}


def test_one_that_is_not_there_leaves_the_first():
    assert list(outlined(picture(1000), "gone-7")["partitions"]) == ["orders-0"]


def test_brokers_are_counted_by_what_they_are_to_partitions():
    many = picture(99, orders_0=partition(0, isr=[1, 2]))
    many["brokers"]["2"]["state"] = "down"
    counted = outlined(many, "")["outline"]["brokers"]
    assert counted["1"] == {"leads": 33, "in_sync": 66, "behind": 0, "offline": 0}
    assert counted["2"] == {"leads": 0, "in_sync": 0, "behind": 0, "offline": 99}
    assert counted["3"] == {"leads": 33, "in_sync": 65, "behind": 1, "offline": 0}


def test_a_replica_whose_log_failed_is_offline():
    broken = partition(0)
    broken["logs"]["3"]["role"] = "offline"
    assert outlined(picture(99, orders_0=broken), "")["outline"]["rows"]["orders-0"][-1] == [3]


def test_a_record_more_in_one_of_a_thousand_partitions_is_a_small_patch():
    before = outlined(picture(1000), "orders-0")
    after = outlined(picture(1000, orders_7=partition(7, end=11)), "orders-0")
    patch = difference(before, after)
    assert merged(before, patch) == after
    assert len(json.dumps(patch)) < 120
    assert len(json.dumps(before)) < 100_000 < len(json.dumps(picture(1000)))


def test_of_too_many_those_that_are_worst_off_are_listed_and_all_are_counted():
    last = f"orders_{PAGE_PARTITIONS_LISTED + 9}"
    many = picture(PAGE_PARTITIONS_LISTED + 10, **{last: partition(0, leader=-1, isr=[])})
    outline = outlined(many, "")["outline"]
    assert len(outline["rows"]) == PAGE_PARTITIONS_LISTED
    assert next(iter(outline["rows"])) == last.replace("_", "-")
    assert outline["of"] == PAGE_PARTITIONS_LISTED + 10
    led = sum(each["leads"] for each in outline["brokers"].values())
    assert led == PAGE_PARTITIONS_LISTED + 9


@pytest.mark.parametrize(
    ("leader", "isr", "expected"),
    [
        (-1, [], NO_LEADER),
        (1, [1], BELOW_MIN_ISR),
        (1, [1, 2], BEHIND),
        (2, [1, 2, 3], NOT_PREFERRED),
        (1, [1, 2, 3], HEALTHY),
    ],
)
def test_what_is_worst_comes_first(leader, isr, expected):
    assert severity([leader, 0, [1, 2, 3], isr, [], 0, 0, 2, []]) == expected
