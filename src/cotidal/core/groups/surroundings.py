"""What a group coordinator knows of the cluster around it. Pure.

The node shows it the committed metadata (node/groups.py): topics come and go, and grow, and a group
may have settings of its own. None of that is the coordinator's to replay.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from cotidal.values import Uuid


class KnownTopic(NamedTuple):
    name: str
    topic_id: Uuid
    partitions: int


class Surroundings(Protocol):
    @property
    def version(self) -> int:
        """Another number whenever topics may have changed."""

    def topic(self, name: str) -> KnownTopic | None: ...

    def topic_name(self, topic_id: Uuid) -> str | None: ...

    def topic_names(self) -> Iterable[str]: ...

    def session_timeout_ms(self, group_id: str) -> int:
        """consumer.session.timeout.ms of a group of the consumer protocol."""

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """consumer.heartbeat.interval.ms, likewise."""
