"""A librdkafka consumer of assigned partitions, helped on where librdkafka stands still.

librdkafka 2.16 has two ways to stand still, for minutes or for ever. Both need nothing but what any
broker may say while leaders move, and ``client.rack`` makes them likely:

  in vain    A partition is read from a follower, its leader was out of the metadata for a moment
             and is back. rd_kafka_toppar_leader_update keeps the handle that is gone, because the
             leader's id is the same. rd_kafka_offset_validate asks that handle about the leader's
             epoch, is told that it is destroyed, asks for metadata, and begins again: hundreds of
             times a second, and nothing is fetched meanwhile. To be assigned again ends it, and so
             does its lease on the follower, after five minutes.
  deadlock   rd_kafka_toppar_handle_OffsetForLeaderEpoch waits for the client's lock and holds a
             partition's, rd_kafka_toppar_delegate_to_leader the other way round (its issue 5476).
             Whatever asks its main thread for something hangs then. Nothing ends it: another
             consumer takes its place, and it is left where it is.

Both are known by what librdkafka tells of itself, and by nothing else, so that a broker which does
not answer is not taken for one of them.
"""

from __future__ import annotations

import ctypes
import json
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as Place

STATISTICS_MS: Final = 500
AWAKE_S: Final = 1.5
"""Whoever told of itself so lately may be asked for something."""
MUTE_S: Final = 20.0
VAIN_S: Final = 10.0
"""A validation takes milliseconds; or 5 s, if its leader does not answer."""
VAIN_ASKED_MIN: Final = 50
"""Requests for metadata from one statistics to the next; those in need ask every 50 ms."""
CLOSING_S: Final = 5.0

IN_VAIN: Final = "in vain"
DEADLOCK: Final = "deadlock"


def now_us() -> int:
    return time.monotonic_ns() // 1_000


class Statistics:
    """What a librdkafka last told of itself."""

    def __init__(self, clock_us: Callable[[], int] = now_us) -> None:
        self._clock_us = clock_us
        self._told = "{}"
        self._asked = 0
        self.told_us = self._sound_us = clock_us()
        """When: by its own clock, which is ours, for what it tells may wait for us in a queue."""

    @property
    def age_s(self) -> float:
        """Since it told anything."""
        return (self._clock_us() - self.told_us) / 1e6

    @property
    def in_vain_s(self) -> float:
        """For how long it has told nothing but that it validates in vain."""
        return (self.told_us - self._sound_us) / 1e6

    def hear(self, told: str) -> None:
        self._told = told
        statistics = json.loads(told)
        self.told_us = statistics["ts"]
        before, self._asked = self._asked, _metadata_asked(statistics)
        if not _waits_at_a_follower(statistics) or self._asked - before < VAIN_ASKED_MIN:
            self._sound_us = self.told_us

    def forgive(self) -> None:
        """Something was done about it."""
        self._sound_us = self.told_us

    def believed(self, topic: str, more: Callable[[dict[str, Any]], str]) -> str:
        """What it held to be true of brokers, and of who leads and who serves what."""
        told = json.loads(self._told)
        brokers = [f"{each['name']} {each['state']}" for each in told.get("brokers", {}).values()]
        led = [
            f"{topic}-{number} led by {each['leader']} in epoch {each.get('leader_epoch')},"
            f" handled by {each['broker']}, {more(each)}"
            for number, each in told.get("topics", {}).get(topic, {}).get("partitions", {}).items()
            if number != "-1"
        ]
        return "; ".join([f"told {self.age_s:.0f} s ago", *brokers, *led])


def _waits_at_a_follower(statistics: dict[str, Any]) -> bool:
    return any(
        each["fetch_state"] == "validate-epoch-wait" and each["broker"] != each["leader"]
        for topic in statistics["topics"].values()
        for each in topic["partitions"].values()
    )


def _metadata_asked(statistics: dict[str, Any]) -> int:
    return sum(each["req"].get("Metadata", 0) for each in statistics["brokers"].values())


class AssignedConsumer:
    def __init__(
        self,
        settings: dict[str, Any],
        places: list[Place],
        *,
        make: Callable[[dict[str, Any]], Consumer] = Consumer,
        clock_us: Callable[[], int] = now_us,
    ) -> None:
        self.helped: Counter[str] = Counter()
        """How often it stood still, and how."""
        self._make = make
        self._clock_us = clock_us
        self._settings = settings
        self._next: dict[tuple[str, int], int] = {}
        self._begin()
        self.assign(places)

    @property
    def is_awake(self) -> bool:
        return self.statistics.age_s < AWAKE_S

    def assign(self, places: list[Place]) -> None:
        """Hangs with a librdkafka that is in a deadlock: to be asked of one that is awake."""
        self._next = {(each.topic, each.partition): each.offset for each in places}
        self._consumer.assign(places)

    def consume(self) -> list[Message]:
        messages = self._consumer.consume(1_000, 0)
        for message in messages:
            topic, number, offset = message.topic(), message.partition(), message.offset()
            if message.error() is None:
                assert topic is not None
                assert number is not None
                assert offset is not None
                self._next[topic, number] = offset + 1
        if not messages:
            self._help()
        return messages

    def end_of(self, place: Place) -> int:
        found = self._consumer.get_watermark_offsets(place, timeout=20)
        return -1 if found is None else found[1]

    def close(self) -> None:
        """Only one that still tells of itself: closing hangs, too."""
        asked_us = self._clock_us()
        until = time.monotonic() + CLOSING_S
        while self.statistics.told_us < asked_us and time.monotonic() < until:
            self._consumer.poll(0.05)
        if self.statistics.told_us < asked_us:
            self._leave()
        else:
            self._consumer.close()

    def _begin(self) -> None:
        self.statistics = Statistics(self._clock_us)
        self._consumer = self._make(
            {
                **self._settings,
                "statistics.interval.ms": STATISTICS_MS,
                "stats_cb": self.statistics.hear,
            }
        )

    def _help(self) -> None:
        if self.statistics.age_s > MUTE_S:
            self.helped[DEADLOCK] += 1
            self._leave()
            self._begin()
            self._go_on()
        elif self.is_awake and self.statistics.in_vain_s > VAIN_S:
            self.helped[IN_VAIN] += 1
            self.statistics.forgive()
            self._go_on()

    def _go_on(self) -> None:
        self.assign([Place(*where, offset) for where, offset in self._next.items()])

    def _leave(self) -> None:
        """Never to be destroyed, for that hangs as well: not even when this process ends."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._consumer))
