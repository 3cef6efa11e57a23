"""What must hold in every state of the partition's world. Pure.

Each promise is judged of a state, never of a move, so that the order of moves that do not touch
each other says nothing: brokers, the controller's last word, and what is known to be committed and
acknowledged.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.core.partition.isr import maximal_isr
from cotidal.core.partition.progress import NEVER
from cotidal.core.partition.replica import Leadership
from cotidal.invariants import (
    ACKED_IS_KEPT,
    CONSUMED_NEVER_CHANGES,
    ELIGIBLE_HOLD_COMMITTED,
    HIGH_WATERMARK_WAITS,
    JOINS_AFTER_FETCH,
    LEADER_HOLDS_ACKED,
    MAXIMAL_ISR_COVERS,
    ONE_LEADER_PER_EPOCH,
)
from cotidal.sim.explore.held import Held, compare_logs, told
from cotidal.sim.explore.replica_broker import Broker
from cotidal.sim.explore.replica_controller import Decided
from cotidal.sim.explore.replica_events import Acked, Heard
from cotidal.sim.violation import Violation


class Truth(NamedTuple):
    """What no broker knows: everything ever committed, everything ever acknowledged."""

    committed: tuple[Held, ...] = ()
    acked: tuple[Acked, ...] = ()

    def after(self, heard: Heard) -> Truth:
        """A leader's high watermark may be behind what was committed before it; never beside it."""
        for offset, (known, now) in enumerate(zip(self.committed, heard.committed, strict=False)):
            if known != now:
                raise Violation(
                    CONSUMED_NEVER_CHANGES,
                    f"{now.value} of epoch {now.epoch} is committed at {offset}, where"
                    f" {known.value} of epoch {known.epoch} was",
                )
        longest = max(self.committed, heard.committed, key=len)
        return Truth(longest, tuple(sorted({*self.acked, *heard.acked})))


class Seen(NamedTuple):
    """A broker, to be looked at only."""

    broker: Broker
    held: tuple[Held, ...]

    @classmethod
    def of(cls, broker: Broker) -> Seen:
        return cls(broker, broker.held())


def judge(seen: tuple[Seen, ...], decided: Decided, truth: Truth) -> None:
    """Raise the first Violation there is."""
    brokers = tuple([each.broker for each in seen])
    held = [each.held for each in seen]
    compare_logs([f"broker {broker.node_id}" for broker in brokers], held)
    _look_for_acked(held, truth)
    for broker, records in zip(brokers, held, strict=True):
        if broker.replica is None:
            continue
        _look_at_readable(broker, records, truth)
        _look_at_eligible(broker, records, decided, truth)
        if broker.replica.leadership is not None:
            _look_at_leader(broker, broker.replica.leadership, brokers, decided, truth, records)


def _look_for_acked(held: list[tuple[Held, ...]], truth: Truth) -> None:
    for offset, record in truth.acked:
        if not any(records[offset : offset + 1] == (record,) for records in held):
            raise Violation(
                ACKED_IS_KEPT, f"{record.value} was acknowledged at {offset} and is nowhere"
            )


def _look_at_readable(broker: Broker, records: tuple[Held, ...], truth: Truth) -> None:
    """What a consumer could read from this broker now."""
    assert broker.replica is not None
    readable = records[: broker.replica.high_watermark]
    if readable != truth.committed[: len(readable)]:
        raise Violation(
            CONSUMED_NEVER_CHANGES,
            f"broker {broker.node_id} lets {told(readable)} be read; committed is"
            f" {told(truth.committed)}",
        )


def _look_at_eligible(
    broker: Broker, records: tuple[Held, ...], decided: Decided, truth: Truth
) -> None:
    partition = decided.partition
    is_eligible = broker.node_id in (*partition.isr, *partition.elr)
    if not is_eligible or broker.life != decided.broker(broker.node_id).epoch:
        return
    if records[: len(truth.committed)] != truth.committed:
        raise Violation(
            ELIGIBLE_HOLD_COMMITTED,
            f"broker {broker.node_id} is in ISR {partition.isr} or ELR {partition.elr} and holds"
            f" {told(records)}; committed is {told(truth.committed)}",
        )


def _look_at_leader(
    broker: Broker,
    leadership: Leadership,
    brokers: tuple[Broker, ...],
    decided: Decided,
    truth: Truth,
    held: tuple[Held, ...],
) -> None:
    node_id, epoch, partition = broker.node_id, leadership.epoch, decided.partition
    if decided.leader_of(epoch) != node_id:
        raise Violation(
            ONE_LEADER_PER_EPOCH,
            f"broker {node_id} leads in epoch {epoch}; {decided.leader_of(epoch)} should",
        )
    for member in leadership.proposed or ():
        progress = leadership.followers.get(member)
        if member not in leadership.isr and progress is not None and progress.last_fetch == NEVER:
            raise Violation(
                JOINS_AFTER_FETCH,
                f"broker {member} is proposed for the ISR in epoch {epoch}, never having fetched",
            )
    if partition.leader_epoch != epoch or broker.life != decided.broker(node_id).epoch:
        return  # deposed, and does not know it
    _look_at_coverage(broker, leadership, brokers, decided)
    for offset, record in truth.acked:
        if held[offset : offset + 1] != (record,):
            raise Violation(
                LEADER_HOLDS_ACKED,
                f"broker {node_id}, leader in epoch {epoch}, holds {told(held)};"
                f" {record.value} of epoch {record.epoch} was acknowledged at {offset}",
            )


def _look_at_coverage(
    broker: Broker, leadership: Leadership, brokers: tuple[Broker, ...], decided: Decided
) -> None:
    assert broker.replica is not None
    partition = decided.partition
    if len(leadership.isr) < leadership.min_isr:
        return
    covered = maximal_isr(leadership)
    for member in (*partition.isr, *partition.elr):
        if member not in covered:
            raise Violation(
                MAXIMAL_ISR_COVERS,
                f"broker {broker.node_id} waits for {covered}; the controller has ISR"
                f" {partition.isr}, ELR {partition.elr}",
            )
    for other in brokers:
        is_member = other.node_id in partition.isr and other.replica is not None
        is_same_life = other.life == decided.broker(other.node_id).epoch
        if is_member and is_same_life and other.end < broker.replica.high_watermark:
            raise Violation(
                HIGH_WATERMARK_WAITS,
                f"the high watermark of broker {broker.node_id} is"
                f" {broker.replica.high_watermark}; broker {other.node_id} of the ISR ends at"
                f" {other.end}",
            )
