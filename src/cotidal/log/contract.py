"""What a log is told and what it answers: the values at its door. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from cotidal.messages.batch import BatchHeader
from cotidal.messages.producers import ProducerSnapshot
from cotidal.values import EpochEntry, LeaderEpoch, Offset, WallMillis

_DAY_MS: Final = 24 * 60 * 60 * 1000


class LogConfig(NamedTuple):
    """The topic settings that files depend on, by Kafka's names and with its defaults."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * _DAY_MS
    segment_jitter_ms: int = 0
    index_interval_bytes: int = 4096
    segment_index_bytes: int = 10 << 20
    retention_ms: int = 7 * _DAY_MS
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    compacted: bool = False
    """Gaps between segments are compaction's work, not a crash's."""


def log_config(settings: Mapping[str, str]) -> LogConfig:
    """What files depend on, from a topic's effective settings."""
    default = LogConfig()

    def number(name: str, otherwise: int) -> int:
        return int(settings.get(name, otherwise))

    return LogConfig(
        segment_bytes=number("segment.bytes", default.segment_bytes),
        segment_ms=number("segment.ms", default.segment_ms),
        segment_jitter_ms=number("segment.jitter.ms", default.segment_jitter_ms),
        index_interval_bytes=number("index.interval.bytes", default.index_interval_bytes),
        segment_index_bytes=number("segment.index.bytes", default.segment_index_bytes),
        retention_ms=number("retention.ms", default.retention_ms),
        retention_bytes=number("retention.bytes", default.retention_bytes),
        file_delete_delay_ms=number("file.delete.delay.ms", default.file_delete_delay_ms),
        compacted="compact" in settings.get("cleanup.policy", ""),
    )


class Appended(NamedTuple):
    end_offset: Offset
    rolled: bool
    """A segment was closed: time for a producer snapshot and, off the loop, a flush."""


class Marker(NamedTuple):
    """The end of a transaction, as its control batch tells it."""

    offset: Offset
    committed: bool
    coordinator_epoch: int


class Opened(NamedTuple):
    """What a log held when it was opened or after it was truncated: the core starts from this."""

    start_offset: Offset
    end_offset: Offset
    epochs: tuple[EpochEntry, ...]
    producer_snapshot: ProducerSnapshot | None
    headers_after: tuple[BatchHeader, ...]
    """Of the batches from the snapshot's offset (or the start) on that have a producer id."""
    markers: tuple[Marker, ...]
    """What the control batches among them say, in the same order."""
    repaired: tuple[str, ...]
    """What was cut or made anew, a sentence each."""


class Retained(NamedTuple):
    start_offset: Offset
    removed: tuple[str, ...]
    """A sentence for each segment that went."""


class TimedOffset(NamedTuple):
    """A record found by its time."""

    offset: Offset
    timestamp: WallMillis
    leader_epoch: LeaderEpoch
