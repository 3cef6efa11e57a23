"""What every client can do, in the same words for each of them.

A client library is held behind ``Client``, so that one test can be said once for all. What a
broker refuses comes out as ``Refused`` with Kafka's error code, whatever the library calls it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

PATIENCE_SECONDS: Final = 15
"""Until a client gives up; a test then fails."""


class Sent(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp: int = 0
    """Milliseconds."""


class Got(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp: int
    timestamp_type: int
    """0: when it was made; 1: when it was appended."""


class Acks(NamedTuple):
    """How a producer waits for its records."""

    level: int
    """0, 1 or -1 for all."""
    idempotent: bool = False


class ClusterSeen(NamedTuple):
    cluster_id: str | None
    controller_id: int
    brokers: tuple[tuple[int, str, int], ...]
    """(id, host, port)."""


class Refused(Exception):
    """The broker said no."""

    def __init__(self, code: int, text: str = "") -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


class Client(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def codecs(self) -> tuple[str, ...]:
        """Those that it can write and read here."""

    def write(
        self, topic: str, partition: int, records: Sequence[Sent], *, codec: str, acks: Acks
    ) -> list[int]:
        """The offsets that were acknowledged, in the order of the records; none for acks=0."""

    def read(self, topic: str, partitions: Sequence[int], count: int) -> list[Got]:
        """So many records from the beginning of these partitions, by partition and offset."""

    def watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        """Where the log starts, and where it ends for readers."""

    def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        """The first offset with this timestamp or a later one."""

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def topics(self) -> set[str]: ...

    def add_partitions(self, topic: str, total: int) -> None: ...

    def partition_count(self, topic: str) -> int: ...

    def configs(self, topic: str) -> dict[str, str | None]: ...

    def alter_config(self, topic: str, name: str, value: str) -> None: ...

    def cluster(self) -> ClusterSeen: ...

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        """Where the log starts afterwards."""
