"""Rows of the health pipeline, as the console reads them."""

import json

from cotidal.console.desk.health_rows import HISTORY, TOPIC, summed_up

SECOND = 1000


def partition(start=0, number=0, **more):
    told = {"v": 1, "kind": "partition", "start": start, "end": start + 10 * SECOND}
    told |= {"topic": "orders", "partition": number, "lag_records": 0, "lag_ms": 0}
    told |= {"under_replicated_s": 0, "under_min_isr_s": 0, "left": 0, "joined": 0}
    told |= {"elections": 0, "unclean": 0, "records_cut": 0} | more
    return f"partition:orders-{number}:{start}", told


def broker(start=0, number=1, **more):
    told = {"v": 1, "kind": "broker", "start": start, "end": start + 10 * SECOND}
    told |= {"broker": number, "leads": 2, "replicas": 3, "under_replicated": 0}
    told |= {"offline_replicas": 0, "events_dropped": 0, "acks": 0, "ack_p99_ms": None} | more
    return f"broker:{number}:{start}", told


def flapping(start=0, *, raised=True):
    told = {"v": 1, "kind": "flapping", "start": start, "end": start + 10 * SECOND}
    told |= {"topic": "orders", "partition": 0, "replica": 2, "times": 3, "raised": raised}
    return f"flapping:orders-0:2:{start}", told


def read(*rows):
    return summed_up((key.encode(), json.dumps(told).encode()) for key, told in rows)


def test_the_newest_window_is_given_by_partition_and_by_broker():
    rows = [partition(0, 0), partition(10_000, 1), partition(10_000, 0), broker(10_000, acks=7)]
    window = read(*rows)["window"]
    assert (window["start"], window["end"]) == (10_000, 20_000)
    assert [each["partition"] for each in window["partitions"]] == [0, 1]
    assert [each["acks"] for each in window["brokers"]] == [7]


def test_of_a_row_that_was_written_twice_the_last_counts():
    told = read(partition(elections=1), partition(elections=4))
    assert [each["elections"] for each in told["window"]["partitions"]] == [4]


def test_an_alarm_stands_until_it_is_taken_back():
    assert [each["times"] for each in read(flapping())["alarms"]] == [3]
    assert read(flapping(0), flapping(10_000, raised=False))["alarms"] == []
    again = read(flapping(0), flapping(20_000), flapping(10_000, raised=False))
    assert [each["start"] for each in again["alarms"]] == [20_000]


def test_windows_before_are_summed_up_with_what_was_worst():
    told = read(
        partition(0, 0, lag_records=5, elections=1, under_replicated_s=3),
        partition(0, 1, lag_records=9, elections=1, records_cut=2),
        broker(0, 1, acks=10, ack_p99_ms=4),
        broker(0, 2, acks=5, ack_p99_ms=16),
        broker(10_000),
    )
    newer, older = told["history"]
    assert (newer["start"], newer["ack_p99_ms"]) == (10_000, None)
    assert older == {
        "start": 0, "lag_records": 9, "under_replicated": 1, "elections": 2, "records_cut": 2,
        "acks": 15, "ack_p99_ms": 16,
    }  # fmt: skip
    many = read(*(partition(start * 10_000) for start in range(HISTORY + 5)))
    assert len(many["history"]) == HISTORY


def test_what_is_no_row_is_passed_over():
    wrong = [
        b"", b"not json", b"[" * 100_000, b"7", b"null", b'{"v":1}', b'{"v":1,"kind":[]}',
        json.dumps(partition()[1] | {"v": 2}).encode(),
        json.dumps(partition()[1] | {"topic": 5}).encode(),
        json.dumps(partition()[1] | {"lag_records": "<b>"}).encode(),
        json.dumps(partition()[1] | {"start": True}).encode(),
    ]  # fmt: skip
    told = summed_up((b"%d" % at, value) for at, value in enumerate(wrong))
    assert told == {"window": None, "alarms": [], "history": []}


def test_a_cluster_without_the_pipeline_has_none_and_with_it_the_rows_of_its_topic(ask, make_topic):
    assert ask("health-rows") == {"exists": False}
    make_topic(TOPIC, b"not a row", json.dumps(partition(elections=4)[1]).encode())
    told = ask("health-rows")
    assert told["exists"]
    assert [each["elections"] for each in told["window"]["partitions"]] == [4]
