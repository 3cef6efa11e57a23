"""What a log is told and what it answers: the values at its door. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from cotidal.log.compaction import CompactionRules
from cotidal.messages.batch import BatchHeader, Marker
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
    compaction: CompactionRules = CompactionRules()

    @property
    def roll_ms(self) -> int:
        """Age at which a segment is closed: only a closed one can be compacted in time."""
        return (
            min(self.segment_ms, self.compaction.max_lag_ms) if self.compacted else self.segment_ms
        )


def log_config(settings: Mapping[str, str]) -> LogConfig:
    """What files depend on, from a topic's effective settings."""
    default = LogConfig()
    rules = default.compaction

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
        compaction=CompactionRules(
            min_dirty_ratio=float(settings.get("min.cleanable.dirty.ratio", rules.min_dirty_ratio)),
            min_lag_ms=number("min.compaction.lag.ms", rules.min_lag_ms),
            max_lag_ms=number("max.compaction.lag.ms", rules.max_lag_ms),
            delete_retention_ms=number("delete.retention.ms", rules.delete_retention_ms),
        ),
    )


class Appended(NamedTuple):
    end_offset: Offset
    rolled: bool
    """A segment was closed: time for a producer snapshot and, off the loop, a flush."""


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


class Compacted(NamedTuple):
    """What a cleaning has done to a log."""

    cleaned_to: Offset
    sentence: str


class TimedOffset(NamedTuple):
    """A record found by its time."""

    offset: Offset
    timestamp: WallMillis
    leader_epoch: LeaderEpoch
