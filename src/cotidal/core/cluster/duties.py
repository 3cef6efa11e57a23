"""What the active controller does because time has passed. Pure.

Each duty has a clock of its own:

  fence           a broker whose session has expired (sessions.py), one broker a decision
  balance         every leader.imbalance.check.interval.seconds, if auto.leader.rebalance.enable:
                  preferred leaders get back what they lost (decide/elections.py)
  sweep           every unclean.leader.election.interval.ms: partitions without a leader that may
                  have one by now

``decide_due`` does one of them. Whoever appends its records asks again, until ``next_deadline`` is
in the future: each decision has to see what the one before it changed.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.brokers import decide_fence
from cotidal.core.cluster.decide.elections import (
    ELECTIONS_PER_PASS_MAX,
    decide_leaderless,
    decide_preferred,
)
from cotidal.core.cluster.image import MetadataRecord
from cotidal.core.cluster.sessions import Probe, Sessions
from cotidal.core.machine import Decision
from cotidal.values import Millis, NodeId, Offset

FULL_PASS_PAUSE_MS: Final = 10
"""Kafka's pause before the next pass when one pass was not enough."""

Due: TypeAlias = Decision[MetadataRecord, str]
"""Its reply says in one sentence what was done; empty for nothing."""


class Duties:
    """The clocks and the sessions of one term. Soft: every term begins them anew."""

    __slots__ = ("next_balance", "next_sweep", "sessions")

    def __init__(self, controller: Controller, now: Millis) -> None:
        self.sessions = Sessions(controller.number("broker.session.timeout.ms"))
        self.next_balance = Millis(now + _balance_interval_ms(controller))
        self.next_sweep = Millis(now + _sweep_interval_ms(controller))


def begin(
    controller: Controller, now: Millis, *, end_offset: Offset
) -> tuple[Duties, tuple[Probe, ...]]:
    """This controller has become active: its duties, and whom to probe."""
    duties = Duties(controller, now)
    return duties, duties.sessions.activate(controller.image, now, end_offset=end_offset)


def next_deadline(controller: Controller, duties: Duties) -> Millis:
    clocks = [duties.next_balance, duties.next_sweep]
    expiry = duties.sessions.next_deadline(controller.image)
    if expiry is not None:
        clocks.append(expiry)
    return min(clocks)


def decide_due(controller: Controller, duties: Duties, now: Millis) -> Due:
    silent = duties.sessions.expired(controller.image, now)
    if silent is not None:
        return _fence(controller, duties, silent, now)
    if now >= duties.next_balance:
        return _balance(controller, duties, now)
    if now >= duties.next_sweep:
        return _sweep(controller, duties, now)
    return Decision((), "")


def _fence(controller: Controller, duties: Duties, node_id: NodeId, now: Millis) -> Due:
    silent_ms = now - duties.sessions.of[node_id].last_contact
    records = decide_fence(controller, node_id)
    assert records, "only an unfenced broker's session expires"
    return Decision(records, f"fenced broker {node_id}: it was silent for {silent_ms} ms")


def _balance(controller: Controller, duties: Duties, now: Millis) -> Due:
    records = decide_preferred(controller) if _balances(controller) else ()
    pause = _pause(len(records), _balance_interval_ms(controller))
    duties.next_balance = Millis(now + pause)
    return Decision(records, _told(len(records), "gave back to their preferred leaders"))


def _sweep(controller: Controller, duties: Duties, now: Millis) -> Due:
    records = decide_leaderless(controller)
    pause = _pause(len(records), _sweep_interval_ms(controller))
    duties.next_sweep = Millis(now + pause)
    return Decision(records, _told(len(records), "found a leader for"))


def _pause(elections: int, interval_ms: int) -> int:
    return FULL_PASS_PAUSE_MS if elections == ELECTIONS_PER_PASS_MAX else interval_ms


def _told(elections: int, what: str) -> str:
    return f"{what}: {elections} partitions" if elections else ""


def _balances(controller: Controller) -> bool:
    return controller.flag("auto.leader.rebalance.enable")


def _balance_interval_ms(controller: Controller) -> int:
    return controller.number("leader.imbalance.check.interval.seconds") * 1000


def _sweep_interval_ms(controller: Controller) -> int:
    return controller.number("unclean.leader.election.interval.ms")
