"""A world for scripts: the real controller, and brokers that only register and beat. Shipped.

Every decision is made by ``core.cluster`` and replayed at once, as if a quorum of one had committed
it; each record is told as a line. Time stands still until it is moved. ``cluster_world`` gives the
brokers logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from cotidal.core.cluster.controller import Controller, Decided
from cotidal.core.cluster.decide.brokers import Heartbeat, HeartbeatDecided, Registration
from cotidal.core.cluster.decide.features import bootstrap_records
from cotidal.core.cluster.duties import Duties, begin, decide_due, next_deadline
from cotidal.core.cluster.image import ELR_VERSION, Endpoint, Image, MetadataRecord, check
from cotidal.core.cluster.sessions import (
    Probe,
    decide_beat,
    decide_refused,
    decide_registration,
)
from cotidal.core.machine import Entropy
from cotidal.core.trace import line, tell_record
from cotidal.errors import Refusal
from cotidal.messages.records.metadata import FeatureLevelRecord
from cotidal.testing.scripts import ScriptError
from cotidal.values import NO_BROKER_EPOCH, BrokerEpoch, Millis, NodeId, Offset, Uuid

BEAT_MS: Final = 500
"""broker.heartbeat.interval.ms: how often brokers that can be heard are heard."""


class BrokerLife:
    """What a broker's process knows of itself between its heartbeats."""

    __slots__ = ("clean_epoch", "is_cut", "is_running", "life", "node_id", "rack")

    def __init__(self, node_id: NodeId, rack: str | None) -> None:
        self.node_id = node_id
        self.rack = rack
        self.life = 0
        self.is_running = False
        self.is_cut = False
        """It runs, but the controller does not hear it and it does not hear the controller."""
        self.clean_epoch = NO_BROKER_EPOCH
        """The epoch in which it was last stopped cleanly: on its disk until it starts."""

    @property
    def is_heard(self) -> bool:
        return self.is_running and not self.is_cut


class ControllerWorld:
    def __init__(self, say: Callable[[str], None]) -> None:
        self.now = Millis(0)
        self.lives: dict[NodeId, BrokerLife] = {}
        self.log: list[str] = []
        """The metadata log, a line a record."""
        self._say = say
        self.controller = Controller(Image(), Entropy(1), {}, node_id=1)
        self.duties: Duties
        self.probes: tuple[Probe, ...] = ()
        self.take_over()

    @property
    def image(self) -> Image:
        return self.controller.image

    @property
    def end_offset(self) -> Offset:
        return Offset(len(self.log))

    # --- decisions ------------------------------------------------------------------------------

    def apply(self, decided: Decided, *, quietly: bool = False) -> bool:
        """Commit what was decided and tell it; True if something changed."""
        if isinstance(decided, Refusal):
            self._say(line(decided))
            return False
        for record in decided:
            self._replay(record, quietly=quietly)
        check(self.image)
        return bool(decided)

    def _replay(self, record: MetadataRecord, *, quietly: bool) -> None:
        told = tell_record(record, self.image).line
        self.log.append(told)
        self.image.replay(record)
        if not quietly:
            self._say(told)

    def take_over(self) -> None:
        """Another controller becomes active: it knows the image and nobody's heartbeats."""
        self.duties, self.probes = begin(self.controller, self.now, end_offset=self.end_offset)

    # --- brokers --------------------------------------------------------------------------------

    def found_cluster(self, brokers: Iterable[BrokerLife], *, elr: bool) -> None:
        """Format, and let these brokers in; not told, for it is before the story."""
        self.apply(bootstrap_records(self.controller), quietly=True)
        if not elr:
            off = FeatureLevelRecord(name=ELR_VERSION, feature_level=0)
            self.apply((off,), quietly=True)
        for life in brokers:
            self.lives[life.node_id] = life
            self.register(life, quietly=True)
            self.beat(life, quietly=True)

    def life(self, number: int) -> BrokerLife:
        found = self.lives.get(NodeId(number))
        if found is None:
            raise ScriptError(f"there is no broker {number} in this script")
        return found

    def epoch_of(self, node_id: NodeId) -> BrokerEpoch:
        return self.image.brokers[node_id].epoch

    def register(self, life: BrokerLife, *, quietly: bool = False) -> bool:
        """A new process says who it is; the marker of a clean stop is used up."""
        life.life += 1
        life.is_running = True
        asked = Registration(
            node_id=life.node_id,
            incarnation_id=Uuid(bytes([life.life]) * 15 + bytes([life.node_id])),
            endpoints=(Endpoint("PLAINTEXT", f"host-{life.node_id}", 9092),),
            rack=life.rack,
            previous_epoch=life.clean_epoch,
        )
        life.clean_epoch = NO_BROKER_EPOCH
        decided = decide_registration(
            self.controller,
            self.duties.sessions,
            asked,
            now=self.now,
            end_offset=self.end_offset,
        )
        return self.apply(decided, quietly=quietly)

    def beat(
        self,
        life: BrokerLife,
        *,
        applied: Offset | None = None,
        wants_shutdown: bool = False,
        quietly: bool = False,
    ) -> HeartbeatDecided | None:
        """One heartbeat. Unless it is said otherwise, the broker has applied all there is."""
        beat = Heartbeat(
            life.node_id,
            self.epoch_of(life.node_id),
            Offset(self.end_offset - 1) if applied is None else applied,
            want_fence=False,
            want_shutdown=wants_shutdown,
        )
        decided = decide_beat(
            self.controller, self.duties.sessions, beat, now=self.now, end_offset=self.end_offset
        )
        if isinstance(decided, Refusal):
            self._say(line(decided))
            return None
        self.apply(decided.records, quietly=quietly)
        return decided

    def refuse(self, life: BrokerLife) -> None:
        """The controller tries to connect, and nobody listens there."""
        probe = Probe(life.node_id, self.epoch_of(life.node_id))
        self.apply(decide_refused(self.controller, self.duties.sessions, probe))

    def stop(self, life: BrokerLife) -> None:
        """A controlled shutdown, beat by beat, until the broker may go."""
        for _ in range(4):
            decided = self.beat(life, wants_shutdown=True)
            if decided is None or decided.should_shut_down:
                break
            for other in self.lives.values():
                if other.is_heard and other is not life:
                    self.beat(other)
        life.clean_epoch = self.epoch_of(life.node_id)
        life.is_running = False

    # --- time -----------------------------------------------------------------------------------

    def pass_time(self, passed_ms: int) -> None:
        """Whoever can be heard beats; then whatever is due is decided."""
        self.now = Millis(self.now + passed_ms)
        for life in self.lives.values():
            broker = self.image.brokers[life.node_id]
            if life.is_heard and not broker.fenced:
                self.beat(life)
        while next_deadline(self.controller, self.duties) <= self.now:
            decision = decide_due(self.controller, self.duties, self.now)
            self.apply(decision.records)
