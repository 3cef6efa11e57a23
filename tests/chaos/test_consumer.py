"""A reader whose librdkafka stands still is known by what it tells, and goes on where it was."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as Place

from tests.chaos.consumer import (
    DEADLOCK,
    IN_VAIN,
    MUTE_S,
    STATISTICS_MS,
    VAIN_S,
    AssignedConsumer,
    Statistics,
)

INTERVALS = int(VAIN_S * 1000) // STATISTICS_MS + 1


class Clock:
    def __init__(self) -> None:
        self.now_us = 0

    def __call__(self) -> int:
        return self.now_us

    def go(self, seconds: float) -> None:
        self.now_us += int(seconds * 1e6)


def told(*, asked: int, state: str = "validate-epoch-wait", broker: int = 1) -> dict[str, Any]:
    """What librdkafka says of a partition that node 3 leads, as far as it is looked at."""
    partition = {"fetch_state": state, "broker": broker, "leader": 3, "leader_epoch": 3}
    return {
        "brokers": {"one/1": {"name": "one/1", "state": "UP", "req": {"Metadata": asked}}},
        "topics": {"storm": {"partitions": {"0": partition}}},
    }


class FakeMessage:
    def __init__(self, offset: int) -> None:
        self._offset = offset

    def topic(self) -> str:
        return "storm"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def error(self) -> None:
        return None


class FakeConsumer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.hear = settings["stats_cb"]
        self.assigned: list[int] = []
        self.messages: list[FakeMessage] = []
        self.closed = False

    def assign(self, places: list[Place]) -> None:
        self.assigned.append(places[0].offset)

    def consume(self, most: int, timeout: float) -> list[Message]:
        messages, self.messages = self.messages, []
        return cast("list[Message]", messages)

    def close(self) -> None:
        self.closed = True


class Reading:
    """An assigned consumer, every librdkafka that was made for it, and the time."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.made: list[FakeConsumer] = []
        self.consumer = AssignedConsumer(
            {}, [Place("storm", 0, 0)], make=self._make, clock_us=self.clock
        )

    def _make(self, settings: dict[str, Any]) -> Consumer:
        self.made.append(FakeConsumer(settings))
        return cast("Consumer", self.made[-1])

    def read(self, offset: int) -> None:
        self.made[-1].messages = [FakeMessage(offset)]
        self.consumer.consume()

    def tell(self, statistics: dict[str, Any]) -> None:
        self.clock.go(STATISTICS_MS / 1000)
        self.made[-1].hear(json.dumps({"ts": self.clock.now_us, **statistics}))
        self.consumer.consume()


def test_a_reader_that_validates_in_vain_is_assigned_again_where_it_was() -> None:
    reading = Reading()
    reading.read(6)
    for number in range(INTERVALS + 1):
        reading.tell(told(asked=1_000 * number))
    assert reading.made[0].assigned == [0, 7]
    assert reading.consumer.helped == {IN_VAIN: 1}
    for number in range(INTERVALS - 1):
        reading.tell(told(asked=1_000 * number))
    assert reading.made[0].assigned == [0, 7]  # it has as long again


def test_a_validation_that_a_leader_does_not_answer_is_none_in_vain() -> None:
    reading = Reading()
    for number in range(4 * INTERVALS):
        reading.tell(told(asked=20 * number))
    for number in range(4 * INTERVALS):
        reading.tell(told(asked=1_000 * number, broker=3))
    for number in range(4 * INTERVALS):
        reading.tell(told(asked=1_000 * number, state="active"))
    assert reading.made[0].assigned == [0]
    assert not reading.consumer.helped


def test_another_consumer_takes_the_place_of_one_that_is_mute() -> None:
    reading = Reading()
    reading.read(6)
    reading.clock.go(MUTE_S - 1)
    reading.consumer.consume()
    assert len(reading.made) == 1
    reading.clock.go(2)
    reading.read(7)  # there was something left, so it may have told more by now
    assert len(reading.made) == 1
    reading.consumer.consume()
    assert [each.assigned for each in reading.made] == [[0], [8]]
    assert not reading.made[0].closed
    assert reading.consumer.helped == {DEADLOCK: 1}
    assert reading.consumer.is_awake


def test_only_what_still_tells_of_itself_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.chaos.consumer.CLOSING_S", 0.0)
    reading = Reading()
    reading.consumer.close()
    assert reading.made[0].closed
    mute = Reading()
    mute.tell(told(asked=1))
    mute.clock.go(0.1)
    mute.consumer.close()
    assert not mute.made[0].closed


def test_a_belief_says_how_old_it_is() -> None:
    clock = Clock()
    statistics = Statistics(clock)
    clock.go(1)
    statistics.hear(json.dumps({"ts": 0, **told(asked=1)}))
    clock.go(6)
    assert statistics.believed("storm", lambda each: str(each["fetch_state"])) == (
        "told 7 s ago; one/1 UP; storm-0 led by 3 in epoch 3, handled by 1, validate-epoch-wait"
    )
