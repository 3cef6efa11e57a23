"""``cotidal events`` against a cluster that tells, and the lines of every kind."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from cotidal.cli.event_lines import _SENTENCES, event_line
from cotidal.cli.events import TOPIC, chooser, line_of
from cotidal.cli.main import run
from cotidal.client.consumer import Fetched
from cotidal.core.cluster.decide.topics import EVENTS_TOPIC
from cotidal.node.happenings import KINDS
from cotidal.testing.cluster import Cluster
from cotidal.values import Offset, WallMillis
from happening_samples import event_of


def record(value: bytes) -> Fetched:
    return Fetched("__cotidal_events", 0, Offset(0), WallMillis(0), None, value, ())


def test_the_topic_is_the_one_that_nodes_write_to() -> None:
    assert TOPIC == EVENTS_TOPIC


def test_every_kind_has_a_sentence_of_its_own() -> None:
    assert _SENTENCES.keys() == set(KINDS.values())


@pytest.mark.parametrize("kind", KINDS, ids=KINDS.get)
def test_a_line_names_time_teller_partition_and_kind(kind: type) -> None:
    told = event_of(kind)
    line = event_line(told)
    assert ".123  node 1  " in line
    assert f"{told['kind']}: " in line
    assert ("1-1  " in line) is ("topic" in told)
    assert "\n" not in line


def test_a_kind_of_a_newer_broker_is_told_as_it_is() -> None:
    told = {"v": 1, "kind": "tea_time", "time": 0, "teller": 2, "sequence": 1, "cups": 4}
    assert event_line(told).endswith("node 2  tea_time: cups=4")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"kind": "leader_changed", "previous": 1, "leader": -1, "leader_epoch": 6, "isr": [1]},
            "1 -> nobody in epoch 6, ISR 1",
        ),
        (
            {
                "kind": "isr_shrunk",
                "leader": 3,
                "leader_epoch": 1,
                "isr": [3, 2],
                "removed": [1],
            },
            "ISR 3,2, without 1, led by 3 in epoch 1",
        ),
        (
            {"kind": "log_truncated", "offset": 10, "records": 5, "high_watermark": 12},
            "drops offsets 10 to 14, 2 of them below the high watermark",
        ),
        (
            {"kind": "log_truncated", "offset": 10, "records": 5, "high_watermark": 9},
            "drops offsets 10 to 14",
        ),
    ],
)
def test_what_a_line_says(fields: dict[str, Any], sentence: str) -> None:
    told = {"time": 0, "teller": 1, "topic": "orders", "partition": 0, **fields}
    assert event_line(told).endswith(f"orders-0  {fields['kind']}: {sentence}")


def test_health_is_left_out_unless_it_is_asked_for() -> None:
    told = {"kind": "health"}
    assert not chooser((), None, None, health=False)(told)
    assert chooser((), None, None, health=True)(told)
    assert chooser(("health",), None, None, health=False)(told)


def test_one_partition_can_be_chosen() -> None:
    chosen = chooser((), "orders", 3, health=True)
    assert chosen({"kind": "isr_shrunk", "topic": "orders", "partition": 3})
    assert not chosen({"kind": "isr_shrunk", "topic": "orders", "partition": 4})
    assert not chosen({"kind": "isr_shrunk", "topic": "other", "partition": 3})
    assert not chosen({"kind": "broker_fenced"})


def test_what_is_no_event_is_passed_over() -> None:
    everything = chooser((), None, None, health=True)
    for value in (b"", b"{", b"[1]", b'{"a":1}'):
        assert line_of(record(value), everything, as_json=True) is None


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(1, settings={"cotidal.events.enable": "true"}) as running:
        yield running


def test_events_of_a_cluster_are_printed(
    cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    told = ""
    while "broker_unfenced" not in told:  # the test's own time limit is the bound
        time.sleep(0.1)
        status = run(["events", "--bootstrap", cluster.bootstrap])
        told, _ = capfd.readouterr()
        assert status in (0, 1), "1: there is no topic yet"
    assert "controller_changed: 1 in epoch " in told
    assert "broker_registered: broker 1 (epoch " in told
    assert "health" not in told
    assert (
        run(["events", "--json", "--kind", "broker_unfenced", "--bootstrap", cluster.bootstrap])
        == 0
    )
    (line,) = capfd.readouterr().out.splitlines()
    assert json.loads(line)["node"] == 1


def test_a_cluster_that_does_not_tell_says_how_to_make_it(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with Cluster(1) as silent:
        assert run(["events", "--bootstrap", silent.bootstrap]) == 1
    assert "its brokers need cotidal.events.enable=true" in capfd.readouterr().err
