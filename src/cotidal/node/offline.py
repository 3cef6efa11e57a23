"""Replicas whose log has failed: out of service, told to the controller, mended if possible. Pure.

    Online     the disk refuses, damage is found, an assertion fails         -> Offline
    Offline    nothing is served (KAFKA_STORAGE_ERROR); until the controller
               has taken it out of ISR and leadership, it is said to be lost
      only damaged, and another replica leads, and this one is in neither
      ISR nor ELR                                                            -> Cutting
    Cutting    the disk cuts the log where the damage begins                 -> Online, a follower
                                                                                that fetches again

What was acknowledged is never cut by a replica that somebody counts on: it says that it is lost,
and so leaves the ISR; then that it is back, as a replica without what was acknowledged, and so
leaves the ELR (decide/directories.py); only then it cuts. A replica that is the last one waits
for the operator: it is opened again when the node restarts.
Owns of the state: faulted, failed_directories; of a hosted partition: damaged_at.
"""

from __future__ import annotations

import traceback

from cotidal.core.cluster.registered import LOST_DIRECTORY, MIGRATING_DIRECTORY, Partition
from cotidal.core.partition.effects import LeadershipLost
from cotidal.core.partition.replica import on_log_failed
from cotidal.node import chronicle, fetchers, housing
from cotidal.node.effects import Fault, Note, TruncateTo
from cotidal.node.events import DirectoryFailed, LogFailed
from cotidal.node.happenings import DirectoryOffline, LogOffline
from cotidal.node.hosting import Hosted
from cotidal.node.partition_effects import obey
from cotidal.node.state import NodeState
from cotidal.values import NO_NODE, ZERO_UUID, Offset, uuid_text
from cotidal.words import counted

ADVICE_DISK = "mend the disk and restart this node to open it again"
ADVICE_FAULT = "please report the lines above; it is opened again when this node restarts"
ADVICE_DAMAGE = (
    "it is fetched again once another replica leads; the last replica stays offline until this"
    " node restarts"
)


def on_failed(state: NodeState, event: LogFailed) -> None:
    hosted = state.hosted_of(event.partition, event.topic_id)
    if hosted is None:  # deleted meanwhile
        return
    state.opening.pop(event.partition, None)
    damaged_at = event.damaged_at
    if hosted.cutting and hosted.damaged_at is not None and damaged_at is not None:
        # The cut met damage again: worth another one only if that lies before the first.
        damaged_at = damaged_at if damaged_at < hosted.damaged_at else None
    take_offline(state, hosted, event.reason, damaged_at=damaged_at)


def on_faults(state: NodeState) -> None:
    """At the end of a step: replicas whose machine has broken a promise in it."""
    faulted, state.faulted = state.faulted, {}
    for partition, fault in faulted.items():
        hosted = state.hosted.get(partition)
        where = "".join(traceback.format_exception(fault)).rstrip()
        state.out.append(Fault(partition, str(fault), where))
        if hosted is not None:
            reason = hosted.replica.offline_reason or f"{partition}: {fault} does not hold"
            on_log_failed(hosted.replica, reason)
            chronicle.tell(state, LogOffline(*partition, reason))
            state.out.append(Note("error", f"{reason}; this replica is offline: {ADVICE_FAULT}"))
            take_offline(state, hosted, reason)


def take_offline(
    state: NodeState, hosted: Hosted, reason: str, *, damaged_at: Offset | None = None
) -> None:
    """``damaged_at``: below it all is well, and a cut there mends it; None if that is not so."""
    replica = hosted.replica
    if replica.offline_reason is None:
        chronicle.tell(state, LogOffline(*replica.partition, reason))
        advice = ADVICE_DISK if damaged_at is None else ADVICE_DAMAGE
        state.out.append(Note("error", f"{reason}; this replica is offline: {advice}"))
    hosted.damaged_at = damaged_at
    hosted.cutting = False
    state.tally.partition_events += 1
    on_log_failed(replica, reason)
    fetchers.forget(state, replica.partition)
    state.isr_proposals.pop(replica.partition, None)
    obey(state, hosted, (LeadershipLost(reason),))
    told = state.controller.committed.partition(*replica.partition)
    if told is not None:
        go_on(state, hosted, told)


def go_on(state: NodeState, hosted: Hosted, told: Partition) -> None:
    """What committed metadata allows next for a replica that is offline."""
    me = state.config.node_id
    if hosted.cutting:
        return
    is_counted_on = me in told.isr or told.leader in (me, NO_NODE)
    if _is_known_to_be_offline(state, told):
        hosted.housed_in = None
    elif hosted.damaged_at is None or hosted.directory is None or is_counted_on:
        housing.say(state, hosted, LOST_DIRECTORY)
    elif told.directory(me) == LOST_DIRECTORY:
        housing.say(state, hosted, hosted.directory)
    elif me in told.elr:
        housing.say(state, hosted, LOST_DIRECTORY)
    else:
        _cut(state, hosted, told, hosted.damaged_at)


def on_directory_failed(state: NodeState, event: DirectoryFailed) -> None:
    """Every replica in it is offline. Heartbeats name the directory from now on."""
    state.failed_directories[event.directory] = None
    logs = [each for each in state.hosted.values() if each.directory == event.directory]
    offline = f"{counted(len(logs), 'replica')} in it went offline"
    state.out.append(Note("error", f"{event.reason}; {offline}: {ADVICE_DISK}"))
    chronicle.tell(state, DirectoryOffline(uuid_text(event.directory), event.reason))
    for hosted in logs:
        if hosted.replica.offline_reason is None:
            chronicle.tell(state, LogOffline(*hosted.replica.partition, event.reason))
        on_log_failed(hosted.replica, event.reason)
        take_offline(state, hosted, event.reason)


def _is_known_to_be_offline(state: NodeState, told: Partition) -> bool:
    """The controller knows that the replica's whole directory is not there, or is about to."""
    directory = told.directory(state.config.node_id)
    if directory in (ZERO_UUID, MIGRATING_DIRECTORY, LOST_DIRECTORY):
        return False
    working = state.config.log_directories
    return directory not in working or directory in state.failed_directories


def on_cut(hosted: Hosted) -> None:
    """The damage is gone: this replica is a follower like any other again."""
    hosted.damaged_at = None
    hosted.replica.offline_reason = None


def _cut(state: NodeState, hosted: Hosted, told: Partition, damaged_at: Offset) -> None:
    replica = hosted.replica
    chronicle.on_cut(state, replica, damaged_at)
    hosted.cutting = True
    replica.opened = False
    sentence = f"{replica.partition}: cut at offset {damaged_at}, to be fetched again from"
    state.out.append(Note("warning", f"{sentence} broker {told.leader}"))
    state.out.append(TruncateTo(replica.partition, damaged_at))
