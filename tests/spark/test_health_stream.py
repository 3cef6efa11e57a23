"""What a stream keeps between micro-batches to raise flags, and the records that it publishes."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

from cotidal.spark.flags import FLAPPING_WITHIN_MS
from cotidal.spark.health_stream import ALL_BROKERS, FLAG_SCHEMA, _flags_of, told_flags

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
