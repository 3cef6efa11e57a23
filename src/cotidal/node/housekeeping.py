"""What a node does because time has passed. Pure.

High watermarks are written down every few seconds, so that a restarted replica does not begin at
zero; retention and the expiry of idle producers run every few minutes. Only a topic whose
cleanup.policy says ``delete`` loses records to time and size. One whose policy says ``compact`` is
looked at more often; each replica compacts its own log, below what it knows to be committed.
Owns of the state: next_checkpoint, next_retention, next_compaction, saved_watermarks.
"""

from __future__ import annotations

from typing import Final

from cotidal.node.effects import Compact, Compactable, Retain, SaveHighWatermarks
from cotidal.node.state import NodeState
from cotidal.values import Millis, WallMillis

CHECKPOINT_INTERVAL: Final = "replica.high.watermark.checkpoint.interval.ms"
RETENTION_INTERVAL: Final = "log.retention.check.interval.ms"
COMPACTION_ENABLED: Final = "log.cleaner.enable"
COMPACTION_INTERVAL: Final = "log.cleaner.backoff.ms"
PRODUCER_EXPIRY: Final = "producer.id.expiration.ms"


def start(state: NodeState) -> None:
    state.next_checkpoint = Millis(state.now + state.number(CHECKPOINT_INTERVAL))
    state.next_retention = Millis(state.now + state.number(RETENTION_INTERVAL))
    state.next_compaction = _after_pause(state)


def on_ticked(state: NodeState) -> None:
    if state.next_checkpoint is not None and state.now >= state.next_checkpoint:
        state.next_checkpoint = Millis(state.now + state.number(CHECKPOINT_INTERVAL))
        save_high_watermarks(state)
    if state.next_retention is not None and state.now >= state.next_retention:
        state.next_retention = Millis(state.now + state.number(RETENTION_INTERVAL))
        _retain(state)
    if state.next_compaction is not None and state.now >= state.next_compaction:
        state.next_compaction = _after_pause(state)
        _compact(state)


def save_high_watermarks(state: NodeState) -> None:
    """Nothing is written when nothing has moved."""
    watermarks = tuple(
        (partition, hosted.replica.high_watermark)
        for partition, hosted in state.hosted.items()
        if hosted.replica.opened and hosted.replica.offline_reason is None
    )
    if watermarks != state.saved_watermarks:
        state.saved_watermarks = watermarks
        state.out.append(SaveHighWatermarks(watermarks))


def next_deadline(state: NodeState) -> Millis | None:
    deadlines = (state.next_checkpoint, state.next_retention, state.next_compaction)
    return min([each for each in deadlines if each is not None], default=None)


def _retain(state: NodeState) -> None:
    oldest = WallMillis(state.wall - state.number(PRODUCER_EXPIRY))
    for partition, hosted in state.hosted.items():
        if hosted.replica.leadership is None:
            continue
        hosted.replica.producers.forget_before(oldest)
        if "delete" in hosted.settings.get("cleanup.policy", "").split(","):
            state.out.append(Retain(partition, hosted.replica.high_watermark))


def _compact(state: NodeState) -> None:
    logs = tuple(
        Compactable(partition, hosted.replica.last_stable_offset, hosted.replica.producers.ids())
        for partition, hosted in state.hosted.items()
        if hosted.replica.opened
        and hosted.replica.offline_reason is None
        and "compact" in hosted.settings.get("cleanup.policy", "").split(",")
    )
    if logs and state.setting(COMPACTION_ENABLED):
        memory = state.number("log.cleaner.dedupe.buffer.size")
        fill = state.setting("log.cleaner.io.buffer.load.factor")
        speed = state.setting("log.cleaner.io.max.bytes.per.second")
        assert isinstance(fill, float)
        assert isinstance(speed, float)
        state.out.append(Compact(logs, int(memory * fill), speed))


def _after_pause(state: NodeState) -> Millis:
    return Millis(state.now + max(1, state.number(COMPACTION_INTERVAL)))
