"""Where the answers that a node waits for go: of other nodes, and of its disk. Pure.

Whoever asks leaves what it asked for under the token of the call or read; here an answer, or the
news that there will be none, finds its way back to it.
"""

from __future__ import annotations

from typing import Any

from cotidal.node import (
    chronicle,
    controller,
    coordinators,
    decisions,
    doubts,
    enrolment,
    fetch,
    fetchers,
    housing,
    lifecycle,
    producer_ids,
    proposals,
    quorum,
    transactional_offsets,
    transactions,
    verification,
    voters,
)
from cotidal.node.effects import CallToken
from cotidal.node.events import CallFailed, ReadDone
from cotidal.node.fetch import PendingFetch
from cotidal.node.state import NodeState


def on_read_done(state: NodeState, event: ReadDone) -> None:
    waiting = state.reads.pop(event.token)
    if isinstance(waiting, PendingFetch):
        fetch.on_read_done(state, waiting, event)
    elif isinstance(waiting, coordinators.Loading):
        coordinators.on_read_done(state, waiting, event)
    else:
        assert isinstance(waiting, quorum.Reading)
        quorum.on_read_done(state, event, waiting)


def on_replied(state: NodeState, token: CallToken, message: Any) -> None:
    owner = state.calls.pop(token, None)
    match owner:
        case None:
            pass  # it came after its time-out
        case quorum.Asked():
            quorum.on_answered(state, owner, message)
        case fetchers.FetchCall():
            doubts.on_connected(state, owner.leader)
            fetchers.on_fetch_answered(state, owner, message)
        case fetchers.EndsCall():
            fetchers.on_ends_answered(state, owner, message)
        case proposals.IsrCall():
            proposals.on_answered(state, owner, message)
        case housing.HousingCall():
            housing.on_answered(state, owner, message)
        case lifecycle.Registering():
            lifecycle.on_registered(state, message)
        case lifecycle.Beating():
            lifecycle.on_beat_answered(state, owner, message)
        case enrolment.Enrolling():
            enrolment.on_answered(state, message)
        case controller.Forwarded():
            controller.on_forwarded(state, owner, message)
        case controller.CreateCall(slot):
            state.again.append(slot)
        case producer_ids.BlockAsked():
            producer_ids.on_block(state, message)
        case transactions.MarkersCall():
            transactions.on_answered(state, owner, message)
        case verification.Verifying():
            verification.on_answered(state, owner, message)
        case transactional_offsets.Confirming():
            transactional_offsets.on_answered(state, owner, message)
        case decisions.Probing():
            pass  # somebody listens there
        case voters.Probed():
            voters.on_probed(state, owner, message)
        case chronicle.Writing():
            chronicle.on_written(state, message)
        case chronicle.Creating():
            chronicle.on_created(state)
        case _:
            raise AssertionError(owner)


def on_call_failed(state: NodeState, event: CallFailed) -> None:
    owner = state.calls.pop(event.token, None)
    match owner:
        case None:
            pass
        case quorum.Asked():
            quorum.on_call_failed(state, owner, event)
        case fetchers.FetchCall():
            fetchers.on_fetch_failed(state, owner)
            doubts.on_lost(state, owner.leader, refused=event.refused)
            controller.probe_broker(state, owner.leader)
        case fetchers.EndsCall():
            fetchers.on_ends_failed(state, owner)
        case proposals.IsrCall():
            proposals.on_failed(state, owner)
        case housing.HousingCall():
            housing.on_failed(state, owner)
        case lifecycle.Registering() | lifecycle.Beating():
            lifecycle.on_failed(state)
        case enrolment.Enrolling():
            enrolment.on_failed(state)
        case controller.Forwarded():
            controller.on_forward_failed(state, owner)
        case controller.CreateCall(slot):
            state.again.append(slot)
        case producer_ids.BlockAsked():
            producer_ids.on_no_block(state)
        case transactions.MarkersCall():
            transactions.on_failed(state, owner)
        case verification.Verifying() | transactional_offsets.Confirming():
            on_unanswered(state, owner)
        case decisions.Probing():
            controller.on_probe_failed(state, owner, refused=event.refused)
        case voters.Probed():
            voters.on_not_probed(state, owner, event.reason)
        case chronicle.Writing():
            chronicle.on_failed(state)
        case chronicle.Creating():
            chronicle.on_created(state)
        case _:
            raise AssertionError(owner)


def on_unanswered(state: NodeState, owner: verification.Owner) -> None:
    match owner:
        case verification.Verifying():
            verification.on_failed(state, owner)
        case transactional_offsets.Confirming():
            transactional_offsets.on_failed(state, owner)
        case _:
            raise AssertionError(owner)
