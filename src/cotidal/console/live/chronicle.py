"""What the brokers write into __cotidal_events, read as it comes.

Reading begins a little before it is begun, so that a page that is opened after something happened
still tells it. What is told twice (docs/events.md says when) is given once.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from typing import Any, Final

from cotidal.client.cluster import Cluster
from cotidal.client.consumer import Consumer, Fetched
from cotidal.client.failures import ClientError
from cotidal.client.offsets import start_offsets
from cotidal.client.start import AtTime
from cotidal.values import TopicPartition

TOPIC: Final = "__cotidal_events"
BEFORE_MS: Final = 60 * 1000
TIME_MS_MAX: Final = 1 << 42
"""Later than that is no time that anybody meant: the year 2109."""
SEEN_MAX: Final = 2_000
"""Happenings that are remembered, so that each is told once."""


class Chronicle:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._consumer: Consumer | None = None
        self._next: dict[TopicPartition, int] = {}
        self._seen: OrderedDict[object, None] = OrderedDict()

    def news(self) -> list[dict[str, Any]]:
        """What has come since; nothing while the topic cannot be read."""
        try:
            return [event for record in self._read() if (event := self._event(record)) is not None]
        except ClientError:
            self.close()  # begun anew at the next look, where it was
            return []

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _read(self) -> list[Fetched]:
        if self._consumer is None:
            partition = TopicPartition(TOPIC, 0)
            start = AtTime(int(time.time() * 1000) - BEFORE_MS)
            positions = self._next or start_offsets(self._cluster, [partition], start)
            self._consumer = Consumer(self._cluster, positions)  # type: ignore[arg-type]
        found = []
        while records := self._consumer.poll(timeout_s=0.0):
            found += records
        self._next = dict(self._consumer.positions)
        return found

    def _event(self, record: Fetched) -> dict[str, Any] | None:
        """None for what was told already, for health, and for what is no event at all: anybody may
        write into a topic."""
        try:
            event = json.loads(record.value or b"")
        except (ValueError, RecursionError):
            return None
        if not isinstance(event, dict) or event.get("kind") in (None, "health"):
            return None
        if not isinstance(event["kind"], str) or not _is_time(event.get("time")):
            return None
        key: object = (event.get("incarnation"), event.get("sequence"))
        if "metadata_offset" in event:
            key = tuple(event.get(name) for name in ("kind", "topic", "partition", "node"))
            key = (key, event["metadata_offset"])
        key = repr(key)  # whatever it is made of
        if key in self._seen:
            return None
        self._seen[key] = None
        if len(self._seen) > SEEN_MAX:
            self._seen.popitem(last=False)
        return event


def _is_time(told: object) -> bool:
    return isinstance(told, int) and 0 <= told < TIME_MS_MAX
