"""What a replica says (core.partition.effects), obeyed: wake-ups and writes. Pure.

Everything that moves a partition ends here, whether a client, a follower, a leader, the controller
or the disk moved it. A fetch that is woken is only marked: node.fetch looks at it at the end of the
step. An assertion of a replica's machine that fails takes that replica offline, and nothing else:
node.offline does the rest at the end of the step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, Final, ParamSpec, assert_never

from cotidal.core.partition.effects import (
    AdvanceLogStart,
    AppendFetched,
    CompleteAcks,
    EndMoved,
    LeadershipLost,
    PartitionEffect,
    ProposeIsr,
    Readable,
    RememberAborted,
    RememberEpochs,
    RememberProducers,
    StartOver,
    Truncate,
)
from cotidal.core.partition.replica import Replica, on_log_failed
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.batch import Placed
from cotidal.node import acks, chronicle, deletions
from cotidal.node.effects import (
    AdvanceStart,
    Append,
    Note,
    SaveAborted,
    SaveEpochs,
    SaveProducers,
    TruncateTo,
)
from cotidal.node.effects import StartOver as StartLogOver
from cotidal.node.hosting import Hosted
from cotidal.node.resting import disturb
from cotidal.node.state import NodeState
from cotidal.values import NO_EPOCH, Offset

P = ParamSpec("P")

_new: Final = tuple.__new__


def move(
    state: NodeState,
    hosted: Hosted,
    step: Callable[Concatenate[Replica, P], tuple[PartitionEffect, ...]],
    *args: P.args,
    **named: P.kwargs,
) -> None:
    """Move a replica's machine, and obey what it says."""
    state.tally.partition_events += 1
    replica = hosted.replica
    before = replica.high_watermark
    try:
        effects = step(replica, *args, **named)
    except AssertionError as fault:
        on_fault(state, hosted, fault)
        return
    if replica.high_watermark < before:
        chronicle.on_regressed(state, replica, before)
    obey(state, hosted, effects)
    if hosted.deletions:
        deletions.settle(state, hosted)


def on_fault(state: NodeState, hosted: Hosted, fault: AssertionError) -> Refusal:
    """A promise about this replica is broken: it takes no part in anything from here on."""
    replica = hosted.replica
    reason = f"{replica.partition}: {fault or 'an assertion'} does not hold"
    on_log_failed(replica, reason)
    state.faulted.setdefault(replica.partition, fault)
    return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, reason)


def obey(state: NodeState, hosted: Hosted, effects: tuple[PartitionEffect, ...]) -> None:
    """Turn what a replica says into wake-ups and writes."""
    partition = hosted.replica.partition
    for effect in effects:
        match effect:
            case LeadershipLost():
                acks.on_unserved(state, hosted, effect)
                wake_all_fetches(state, hosted)
                deletions.on_unserved(state, hosted)
            case RememberEpochs(entries):
                state.out.append(SaveEpochs(partition, entries))
            case RememberProducers(snapshot):
                state.out.append(SaveProducers(partition, snapshot))
            case RememberAborted(transactions):
                state.out.append(SaveAborted(partition, transactions))
            case Readable():
                wake_fetches(state, hosted)
            case CompleteAcks():
                acks.on_progress(state, hosted, effect)
            case EndMoved():
                acks.on_progress(state, hosted, effect)
                wake_replica_fetches(state, hosted)
            case ProposeIsr():
                state.isr_proposals[partition] = effect
            case AppendFetched(batches):
                entry = _new(Placed, (None, NO_EPOCH, batches))
                state.out.append(_new(Append, (partition, (entry,), False)))
                hosted.unread_bytes += len(batches.data)
            case Truncate(offset):
                _tell_cut(state, hosted, offset)
                hosted.cutting = True
                state.out.append(TruncateTo(partition, offset))
            case StartOver(offset):
                _tell_cut(state, hosted, hosted.replica.start_offset)
                hosted.cutting = True
                state.out.append(StartLogOver(partition, offset))
            case AdvanceLogStart(offset):
                state.out.append(AdvanceStart(partition, offset))
            case _:
                assert_never(effect)


def _tell_cut(state: NodeState, hosted: Hosted, offset: Offset) -> None:
    """Records that go are told: whoever looks for one finds out where it went."""
    replica = hosted.replica
    chronicle.on_cut(state, replica, offset)
    last = replica.end_offset - 1
    if offset <= last:
        told = f"{replica.partition} drops offsets {offset} to {last}: its leader has others there"
        state.out.append(Note("info", told))


def wake_fetches(state: NodeState, hosted: Hosted) -> None:
    """More of this partition may be read."""
    for pending in hosted.fetches:
        pending.missing_bytes -= hosted.unread_bytes
        if pending.missing_bytes <= 0:
            state.dirty_fetches[pending] = None
    hosted.unread_bytes = 0


def wake_replica_fetches(state: NodeState, hosted: Hosted) -> None:
    """More is written: followers may have it at once, consumers when it is committed."""
    for pending in hosted.replica_fetches:
        state.dirty_fetches[pending] = None
    if hosted.resting:
        for pending in disturb(hosted):
            state.dirty_fetches[pending] = None


def wake_all_fetches(state: NodeState, hosted: Hosted) -> None:
    """The partition is no longer served from here: its fetches are told so."""
    for pending in (*hosted.fetches, *hosted.replica_fetches, *disturb(hosted)):
        state.dirty_fetches[pending] = None
