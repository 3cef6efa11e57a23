"""What a node does because time has passed. Pure.

High watermarks are written down every few seconds, so that a restarted replica does not begin at
zero; retention and the expiry of idle producers run every few minutes. Only a topic whose
cleanup.policy says ``delete`` loses records to time and size.
Owns of the state: next_checkpoint, next_retention.
"""

from __future__ import annotations

from typing import Final

from cotidal.node.effects import Retain, SaveHighWatermarks
from cotidal.node.state import NodeState
from cotidal.values import Millis, WallMillis

CHECKPOINT_INTERVAL: Final = "replica.high.watermark.checkpoint.interval.ms"
RETENTION_INTERVAL: Final = "log.retention.check.interval.ms"
PRODUCER_EXPIRY: Final = "producer.id.expiration.ms"


def start(state: NodeState) -> None:
    state.next_checkpoint = Millis(state.now + state.number(CHECKPOINT_INTERVAL))
    state.next_retention = Millis(state.now + state.number(RETENTION_INTERVAL))


def on_ticked(state: NodeState) -> None:
    if state.next_checkpoint is not None and state.now >= state.next_checkpoint:
        state.next_checkpoint = Millis(state.now + state.number(CHECKPOINT_INTERVAL))
        save_high_watermarks(state)
    if state.next_retention is not None and state.now >= state.next_retention:
        state.next_retention = Millis(state.now + state.number(RETENTION_INTERVAL))
        _retain(state)


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
    if state.next_checkpoint is None or state.next_retention is None:
        return None
    return min(state.next_checkpoint, state.next_retention)


def _retain(state: NodeState) -> None:
    oldest = WallMillis(state.wall - state.number(PRODUCER_EXPIRY))
    for partition, hosted in state.hosted.items():
        if hosted.replica.leadership is None:
            continue
        hosted.replica.producers.forget_before(oldest)
        if "delete" in hosted.settings.get("cleanup.policy", "").split(","):
            state.out.append(Retain(partition, hosted.replica.high_watermark))
