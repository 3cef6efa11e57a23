"""What a stream keeps between micro-batches to raise flags, and the records that it publishes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest

from cotidal.spark.flags import FLAPPING_WITHIN_MS
from cotidal.spark.health import ACK_QUANTILES, BROKER_COLUMNS, PARTITION_COLUMNS
from cotidal.spark.health_stream import (
    ALL_BROKERS,
    FLAG_SCHEMA,
    _flags_of,
    told_brokers,
    told_flags,
    told_partitions,
)

MINUTE = 60_000


class State:
    """As much of Spark's GroupState as is used. Times out when it is told to."""

    def __init__(self) -> None:
        self.kept: tuple[str, str] | None = None
        self.due = -1
        self.hasTimedOut = False
        self.watermark = 0

    @property
    def exists(self) -> bool:
        return self.kept is not None

    @property
    def get(self) -> tuple[str, str]:
        assert self.kept is not None
        return self.kept

    def update(self, kept: tuple[str, str]) -> None:
        self.kept = kept

    def remove(self) -> None:
        self.kept = None

    def getCurrentWatermarkMs(self) -> int:
        return self.watermark

    def setTimeoutTimestamp(self, due: int) -> None:
        assert due > self.watermark, "Spark refuses it"
        self.due = due


def flags(state: State, of: str, *rows: dict[str, Any]) -> list[dict[str, Any]]:
    frames = iter([pd.DataFrame(rows)] if rows else [])
    return [row for found in _flags_of((of,), frames, state) for row in found.to_dict("records")]


def left(time: int, *replicas: int) -> dict[str, Any]:
    return {"time": time, "topic": "a-b", "partition": 4, "removed": list(replicas)}


def test_departures_are_counted_over_micro_batches_until_time_has_passed() -> None:
    state = State()
    assert flags(state, "a-b-4", left(MINUTE, 2), left(0, 2)) == []
    (raised,) = flags(state, "a-b-4", left(2 * MINUTE, 2, 3))
    assert (raised["topic"], raised["partition"], raised["broker"]) == ("a-b", 4, 2)
    assert (raised["kind"], raised["number"], raised["raised"]) == ("flapping", 3, True)
    state.hasTimedOut, state.watermark = True, state.due
    assert state.due == FLAPPING_WITHIN_MS
    (lowered,) = flags(state, "a-b-4")
    assert (lowered["topic"], lowered["partition"], lowered["raised"]) == ("a-b", 4, False)
    state.watermark = 20 * MINUTE
    assert flags(state, "a-b-4") == []
    assert state.kept is None


def test_departures_of_one_micro_batch_are_taken_in_the_order_of_their_times() -> None:
    rows = [left(4 * MINUTE, 2), left(2 * MINUTE, 2), left(3 * MINUTE, 2)]
    (raised,) = flags(State(), "a-b-4", *rows)
    assert raised["time"] == 4 * MINUTE, "the third of them, wherever it stood"


def test_what_comes_late_is_looked_at_again_at_once() -> None:
    state = State()
    state.watermark = 20 * MINUTE
    assert flags(state, "a-b-4", left(0, 2)) == []
    assert state.due == state.watermark + 1


def test_leaderships_are_compared_over_micro_batches() -> None:
    state = State()
    told = [{"time": 5, "teller": broker, "leads": 4.0} for broker in (1, 2, 3)]
    assert flags(state, ALL_BROKERS, *told) == []
    (flag,) = flags(state, ALL_BROKERS, {"time": 6, "teller": 3, "leads": 40.0})
    assert (flag["kind"], flag["broker"], flag["number"], flag["share"]) == ("uneven", 3, 40, 16.0)


@pytest.mark.slow
def test_a_flag_is_a_record_with_what_it_is_about_for_its_key(spark: Any) -> None:
    rows = [
        ("flapping", 40, "orders", 0, 2, 3, None, True),
        ("uneven", 50, None, None, 1, 9, 4.5, False),
    ]
    records = told_flags(spark.createDataFrame(rows, FLAG_SCHEMA)).collect()
    assert {row.key: json.loads(row.value) for row in records} == {
        "flapping:orders-0:2:40": {
            "v": 1, "kind": "flapping", "time": 40, "topic": "orders", "partition": 0,
            "replica": 2, "times": 3, "raised": True,
        },
        "uneven:1:50": {
            "v": 1, "kind": "uneven", "time": 50, "broker": 1, "leads": 9, "share": 4.5,
            "raised": False,
        },
    }  # fmt: skip


@pytest.mark.slow
def test_a_window_is_a_record_with_its_subject_and_its_start_for_its_key(spark: Any) -> None:
    start, end = (datetime(2026, 11, 15, 12, 0, second, tzinfo=UTC) for second in (10, 20))
    milliseconds = int(start.timestamp() * 1000)
    window = "window struct<start: timestamp, end: timestamp>"

    def record(make: Any, first: tuple[Any, ...], names: tuple[str, ...], types: str) -> Any:
        """``first``: what it is about; the other columns are numbered."""
        values = (*first, *range(len(first), len(names)))
        columns = f"{window}, {types}, {', '.join(f'{n} int' for n in names[len(first) :])}"
        (row,) = make(spark.createDataFrame([((start, end), *values)], columns)).collect()
        return row.key, json.loads(row.value), dict(zip(names, values, strict=True))

    times = {"v": 1, "start": milliseconds, "end": milliseconds + 10_000}
    key, value, fields = record(
        told_partitions, ("a-b", 4), PARTITION_COLUMNS, "topic string, partition int"
    )
    assert key == f"partition:a-b-4:{milliseconds}"
    assert value == times | {"kind": "partition"} | fields
    names = (*BROKER_COLUMNS, "acks", *ACK_QUANTILES)
    key, value, fields = record(told_brokers, (3,), names, "broker int")
    assert key == f"broker:3:{milliseconds}"
    assert value == times | {"kind": "broker"} | fields
