"""What is made of the brokers' events."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cotidal.client.cluster import Cluster as Client
from cotidal.spark import health, health_stream
from cotidal.spark.columns import arrow_schema, full_schema
from cotidal.spark.options import parse_source
from cotidal.spark.planning import plan_batch
from cotidal.spark.reading import read_ranges
from cotidal.testing.cluster import Cluster

SECOND = 1_000
_sequences = itertools.count(1)


def event(kind: str, at_s: float, **fields: Any) -> dict[str, Any]:
    return {
        "v": 1,
        "kind": kind,
        "time": int(at_s * SECOND),
        "teller": 1,
        "incarnation": "one",
        "sequence": next(_sequences),
        **fields,
    }


def of(kind: str, at_s: float, **fields: Any) -> dict[str, Any]:
    """Of partition orders-0."""
    return event(kind, at_s, topic="orders", partition=0, **fields)


def sample(at_s: float, *, lag: int = 0, well: bool = True, min_isr: bool = True) -> dict[str, Any]:
    followers = [{"node": 2, "in_sync": well, "lag_records": lag, "lag_ms": lag * 10}]
    listed = {
        "topic": "orders",
        "partition": 0,
        "high_watermark": 5,
        "end_offset": 5 + lag,
        "under_replicated": not well,
        "under_min_isr": not min_isr,
        "isr": [1],
        "followers": followers,
    }
    return event(
        "health", at_s, leads=4, replicas=6, under_replicated=int(not well), under_min_isr=0,
        offline_replicas=0, events_dropped=0, partitions=[listed],
    )  # fmt: skip


@pytest.fixture
def told(spark: Any) -> Any:
    def read(*events: dict[str, Any]) -> Any:
        rows = [(json.dumps(each).encode(),) for each in events]
        return health.events(spark.createDataFrame(rows, "value binary"))

    return read


def test_an_event_that_was_written_twice_counts_once(told: Any) -> None:
    twice = of("isr_shrunk", 1, removed=[2], isr=[1])
    (row,) = health.partitions(health.windows(told(twice, twice))).collect()
    assert row.left == 1


def test_a_window_tells_what_happened_to_a_partition(told: Any) -> None:
    happened = told(
        sample(1, lag=3),
        sample(2, lag=70, well=False),
        sample(3, lag=70, well=False, min_isr=False),
        of("isr_shrunk", 2, removed=[2], isr=[1]),
        of("isr_expanded", 4, added=[2], isr=[1, 2]),
        of("leader_changed", 5, previous=1, leader=2, leader_epoch=3),
        of("unclean_election", 5, leader=2, leader_epoch=3),
        of("log_truncated", 6, leader=2, leader_epoch=3, offset=9, records=12),
    )
    (row,) = health.partitions(health.windows(happened)).collect()
    assert (row.topic, row.partition) == ("orders", 0)
    assert (row.lag_records, row.lag_ms) == (70, 700)
    assert (row.under_replicated_s, row.under_min_isr_s) == (2, 1)
    assert (row.left, row.joined, row.elections, row.unclean) == (1, 1, 1, 1)
    assert row.records_cut == 12


def test_windows_stand_apart(told: Any) -> None:
    happened = told(sample(1, lag=3), sample(11, lag=4))
    rows = health.partitions(health.windows(happened)).collect()
    assert sorted(row.lag_records for row in rows) == [3, 4]
    (row,) = health.partitions(health.windows(happened, None)).collect()
    assert row.lag_records == 4


def test_events_of_no_partition_are_no_partitions(told: Any) -> None:
    assert health.windows(told(event("broker_fenced", 1, node=2))).collect() == []


def test_an_outage_lasts_until_somebody_leads(told: Any) -> None:
    (row,) = health.outages(
        told(
            of("leader_changed", 1, previous=1, leader=-1, leader_epoch=3),
            of("leader_changed", 3.5, previous=-1, leader=2, leader_epoch=4),
            of("leader_changed", 9, previous=2, leader=1, leader_epoch=5),
        )
    ).collect()
    assert (row.led_before, row.led_after, row.without_leader_ms) == (1, 2, 2_500)


def test_an_outage_that_lasts_has_no_end_yet(told: Any) -> None:
    (row,) = health.outages(
        told(of("leader_changed", 1, previous=1, leader=-1, leader_epoch=3))
    ).collect()
    assert row.without_leader_ms is None


def test_a_replica_that_leaves_again_and_again_flaps(told: Any) -> None:
    leaves = [of("isr_shrunk", each, removed=[2], isr=[1]) for each in (1, 20, 40)]
    (row,) = health.flapping(told(*leaves, of("isr_shrunk", 50, removed=[3], isr=[1]))).collect()
    assert (row.replica, row.times) == (2, 3)


def test_a_broker_that_leads_most_is_uneven(told: Any) -> None:
    samples = [
        sample(1) | {"teller": each, "leads": leads} for each, leads in ((1, 9), (2, 1), (3, 2))
    ]
    by_broker = health.brokers(health.windows(told(*samples)))
    assert {row.broker: row.leads for row in by_broker.collect()} == {1: 9, 2: 1, 3: 2}
    assert [row.broker for row in health.uneven(by_broker).collect()] == [1]


def test_a_window_tells_how_long_acknowledgements_took(told: Any) -> None:
    silent, once = ({"teller": each, "ack_ms": spans} for each, spans in ((1, []), (2, [98])))
    happened = told(
        sample(1) | silent,
        sample(1) | once,
        sample(2) | once | {"ack_ms": [0, 0, 0, 3, 1]},
    )
    rows = health.brokers(health.windows(happened)).orderBy("broker").collect()
    quantiles = [(row.acks, row.ack_p50_ms, row.ack_p99_ms, row.ack_max_ms) for row in rows]
    assert quantiles == [(0, None, None, None), (102, 1, 8, 16)]


def published(given: dict[str, str]) -> list[dict[str, Any]]:
    options = parse_source(given, streaming=False)
    schema = arrow_schema(full_schema(headers=False))
    return [
        json.loads(value)
        for batch in read_ranges(options, plan_batch(options), schema)
        for value in batch.column("value").to_pylist()
    ]


@pytest.mark.slow
def test_a_stream_keeps_and_publishes_windows_and_flags(
    spark: Any,
    cluster: Cluster,
    new_topic: Callable[..., str],
    source: Callable[..., dict[str, str]],
    write: Callable[..., None],
    tmp_path: Path,
) -> None:
    events, into = new_topic(), new_topic()
    leaves = [of("isr_shrunk", each, removed=[2], isr=[1]) for each in (1, 20, 40)]
    leads = sample(41) | {"leads": 20, "ack_ms": [1, 2]}, sample(41) | {"teller": 2}
    later = of("isr_expanded", 3_000, added=[2], isr=[1, 2])  # the windows before it are over
    write(events, [json.dumps(each).encode() for each in (*leaves, *leads, later)])
    seen: list[Any] = []
    follower = health_stream.Follower(
        spark, cluster.bootstrap, str(tmp_path), into, on_windows=seen.extend, events=events
    )
    follower.run(once=True)
    assert [(row.topic, row.left) for row in seen] == [("orders", 1)] * 3
    rows = published(source(into))
    by_kind = {row["kind"]: row for row in reversed(rows)}
    assert by_kind["partition"].keys() >= {"v", "start", "end", "topic", "lag_ms", "left"}
    assert [row["ack_p99_ms"] for row in rows if row.get("acks")] == [2]
    assert by_kind["flapping"] == {
        "v": 1, "kind": "flapping", "time": 40_000, "topic": "orders", "partition": 0,
        "replica": 2, "times": 3, "raised": True,
    }  # fmt: skip
    assert (by_kind["uneven"]["broker"], by_kind["uneven"]["raised"]) == (1, True)
    flags = spark.read.parquet(f"{tmp_path}/flags").where("raised").collect()
    assert {(row.kind, row.broker) for row in flags} == {("flapping", 2), ("uneven", 1)}
    follower.run(once=True)  # there is nothing more
    assert published(source(into)) == rows


@pytest.mark.slow
def test_a_micro_batch_of_windows_that_is_done_again_changes_no_file(
    spark: Any,
    cluster: Cluster,
    client: Client,
    new_topic: Callable[..., str],
    source: Callable[..., dict[str, str]],
    write: Callable[..., None],
    tmp_path: Path,
) -> None:
    events = new_topic()
    into = f"{events}-health"
    leaves = [of("isr_shrunk", each, removed=[2], isr=[1]) for each in (1, 20, 40)]
    later = of("isr_expanded", 3_000, added=[2], isr=[1, 2])
    write(events, [json.dumps(each).encode() for each in (*leaves, later)])
    follower = health_stream.Follower(spark, cluster.bootstrap, str(tmp_path), into, events=events)
    follower.run(once=True)
    (about,) = client.metadata([into]).topics
    assert len(about.partitions) == 1

    def kept(name: str) -> list[Any]:
        return sorted(spark.read.parquet(f"{tmp_path}/{name}").collect())

    before, told = (kept("windows"), kept("flags")), published(source(into))
    assert (len(before[0]), len(before[1])) == (3, 1), "and one flag"
    for place in ("checkpoint", "checkpoint-flags"):  # as a driver that dies before it has noted it
        commits = tmp_path / place / "commits"
        last = max(int(each.name) for each in commits.iterdir() if each.name.isdigit())
        for each in (commits / str(last), commits / f".{last}.crc"):
            each.unlink()
    follower.run(once=True)
    assert (kept("windows"), kept("flags")) == before
    again = published(source(into))
    assert len(again) > len(told), "published again, with the same keys and values"
    assert {json.dumps(each) for each in again} == {json.dumps(each) for each in told}
