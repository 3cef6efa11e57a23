"""Which brokers are alive, as far as this controller can tell. Pure. SOFT state.

Never in the image, never in a record; empty after a failover. All that follows from it is written
as decisions: a broker that is silent for a session is fenced.

  S1  a session expires ``broker.session.timeout.ms`` after the last word of its broker
  S2  a new controller has heard of nobody: every unfenced broker gets a fresh session, and a probe;
      whoever refuses the connection is fenced at once
  S3  a refused connection is a claim about one incarnation: it says nothing of a later one, and it
      is not believed again when the broker has spoken after it (its listener is elsewhere)
  S4  another incarnation of a broker is refused while the old one is alive: it is active, its
      session has not expired, and its listener has not refused since it last spoke. So a restart
      after kill -9 need not wait for a session to end
  S5  a broker that shuts down may go when every active broker has applied the records that took its
      leaderships away

The three decisions here are those of decide/brokers.py with what they need to know from here.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.core.cluster.controller import Controller, Decided, Records
from cotidal.core.cluster.decide.brokers import (
    Heartbeat,
    HeartbeatDecided,
    Registration,
    decide_fence,
    decide_heartbeat,
    decide_register,
)
from cotidal.core.cluster.image import Image
from cotidal.errors import Refusal
from cotidal.values import NO_OFFSET, BrokerEpoch, Millis, NodeId, Offset


class Probe(NamedTuple):
    """Try to connect to this broker's listener."""

    node_id: NodeId
    epoch: BrokerEpoch
    """Of the incarnation that is asked after."""


class Session:
    """What is known of one broker's life."""

    __slots__ = (
        "epoch",
        "heard",
        "last_contact",
        "metadata_offset",
        "refusals_lie",
        "refused",
        "shutdown_offset",
    )

    def __init__(self, epoch: BrokerEpoch, now: Millis, *, heard: bool) -> None:
        self.epoch = epoch
        self.last_contact = now
        self.heard = heard
        """It has spoken in this controller's term."""
        self.refused = False
        """Its listener refused a connection, and it has not spoken since."""
        self.refusals_lie = False
        """It has spoken after a refusal."""
        self.metadata_offset = NO_OFFSET
        """The last offset that it has applied, as it said itself."""
        self.shutdown_offset: Offset | None = None
        """The last record of its controlled shutdown."""


class Sessions:
    __slots__ = ("of", "timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self.of: dict[NodeId, Session] = {}

    def activate(self, image: Image, now: Millis, *, end_offset: Offset) -> tuple[Probe, ...]:
        """This controller has become active (S2); whom to probe."""
        for broker in image.brokers.values():
            if not broker.fenced:
                session = self.of[broker.node_id] = Session(broker.epoch, now, heard=False)
                if broker.in_controlled_shutdown:
                    session.shutdown_offset = Offset(end_offset - 1)
        return self.unheard(image)

    def unheard(self, image: Image) -> tuple[Probe, ...]:
        """Unfenced brokers that have not spoken in this term."""
        return tuple(
            Probe(node_id, session.epoch)
            for node_id, session in self.of.items()
            if not session.heard and _unfenced(image, node_id)
        )

    def expired(self, image: Image, now: Millis) -> NodeId | None:
        """The broker that has been silent for longest, if its session is over (S1)."""
        deadline = self.next_deadline(image)
        if deadline is None or deadline > now:
            return None
        silent = (node_id for node_id in self.of if _unfenced(image, node_id))
        return min(silent, key=lambda node_id: self.of[node_id].last_contact)

    def next_deadline(self, image: Image) -> Millis | None:
        contacts = [
            session.last_contact
            for node_id, session in self.of.items()
            if _unfenced(image, node_id)
        ]
        return Millis(min(contacts) + self.timeout_ms) if contacts else None

    def is_alive(self, node_id: NodeId, now: Millis) -> bool:
        """S4, of the incarnation that is registered."""
        session = self.of.get(node_id)
        if session is None or now >= session.last_contact + self.timeout_ms:
            return False
        return not session.refused

    def everyone_knows(self, image: Image, node_id: NodeId) -> bool:
        """S5. Whoever is active and has not said yet how far it is does not know."""
        session = self.of.get(node_id)
        if session is None or session.shutdown_offset is None:
            return False
        for broker in image.brokers.values():
            if broker.active and broker.node_id != node_id:
                other = self.of.get(broker.node_id)
                if other is None or other.metadata_offset < session.shutdown_offset:
                    return False
        return True

    def on_contact(self, node_id: NodeId, epoch: BrokerEpoch, now: Millis) -> Session:
        """A broker has spoken, under its registered epoch."""
        session = self.of.get(node_id)
        if session is None or session.epoch != epoch:
            session = self.of[node_id] = Session(epoch, now, heard=True)
        session.refusals_lie = session.refusals_lie or session.refused
        session.refused = False
        session.heard = True
        session.last_contact = now
        return session


def decide_registration(
    controller: Controller,
    sessions: Sessions,
    asked: Registration,
    *,
    now: Millis,
    end_offset: Offset,
) -> Decided:
    """``end_offset``: the offset at which the first record of this decision will be written."""
    decided = decide_register(
        controller,
        asked,
        epoch=BrokerEpoch(end_offset),
        old_is_alive=sessions.is_alive(asked.node_id, now),
    )
    if not isinstance(decided, Refusal):
        old = controller.image.brokers.get(asked.node_id)
        same = old is not None and old.incarnation_id == asked.incarnation_id
        epoch = old.epoch if same and old is not None else BrokerEpoch(end_offset)
        sessions.on_contact(asked.node_id, epoch, now)
    return decided


def decide_beat(
    controller: Controller,
    sessions: Sessions,
    beat: Heartbeat,
    *,
    now: Millis,
    end_offset: Offset,
) -> HeartbeatDecided | Refusal:
    """``end_offset``: as above."""
    image = controller.image
    decided = decide_heartbeat(
        controller, beat, everyone_knows=sessions.everyone_knows(image, beat.node_id)
    )
    if isinstance(decided, Refusal):
        return decided
    session = sessions.on_contact(beat.node_id, beat.epoch, now)
    session.metadata_offset = max(session.metadata_offset, beat.metadata_offset)
    leaving = beat.want_shutdown or image.brokers[beat.node_id].in_controlled_shutdown
    if leaving and not decided.should_shut_down and session.shutdown_offset is None:
        session.shutdown_offset = Offset(end_offset + len(decided.records) - 1)
    return decided


def decide_refused(controller: Controller, sessions: Sessions, probe: Probe) -> Records:
    """A broker's listener refused a connection: there is nobody behind it (S2, S3)."""
    session = sessions.of.get(probe.node_id)
    if session is None or session.epoch != probe.epoch or session.refusals_lie:
        return ()
    session.refused = True
    return decide_fence(controller, probe.node_id)


def _unfenced(image: Image, node_id: NodeId) -> bool:
    broker = image.brokers.get(node_id)
    return broker is not None and not broker.fenced
