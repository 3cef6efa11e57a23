"""What is looked at whenever a snapshot of the metadata log is written or loaded.

Nobody writes one past what a leader has committed, and whoever sums up the same prefix says the
same: same last epoch, same image, same voters.
"""

from __future__ import annotations

from typing import NamedTuple, cast

from cotidal.core.cluster.image import Image, MetadataRecord
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.invariants import IMAGES_EQUAL, SNAPSHOT_IS_COMMITTED
from cotidal.messages.records.quorum import KRaftVersionRecord, VotersRecord
from cotidal.node.effects import Effect, WriteSnapshot
from cotidal.node.events import Event, Persisted
from cotidal.sim import probes as seen
from cotidal.sim.checkers.window import quorum_of
from cotidal.sim.probes import Probes
from cotidal.sim.process import Process, Watcher
from cotidal.sim.violation import Violation


class Summed(NamedTuple):
    """What a snapshot says."""

    epoch: int
    image: Image
    control: tuple[object, ...]


class SnapshotChecker(Watcher):
    def __init__(self, probes: Probes) -> None:
        self._probes = probes
        self._committed = 0
        """As far as any leader has ever committed."""
        self._summed: dict[int, Summed] = {}

    def on_stepped(self, process: Process, event: Event, effects: tuple[Effect, ...]) -> None:
        quorum = quorum_of(process)
        if quorum.leader_id == process.node_id and quorum.high_watermark > self._committed:
            self._committed = quorum.high_watermark  # also if it has resigned in this very step
        for effect in effects:
            if effect.__class__ is WriteSnapshot:
                self._look(process, effect.id, effect.records, effect.control)
        if event.__class__ is Persisted and event.installed is not None:
            batches = event.installed.batches
            self._look(
                process,
                event.installed.id,
                tuple(each for batch in batches if not batch.control for each in batch.records),
                tuple(each for batch in batches if batch.control for each in batch.records),
            )
            voter = quorum.is_voter
            self._probes.see(seen.SNAPSHOT_LOADED if voter else seen.SNAPSHOT_LOADED_BY_OBSERVER)

    def _look(
        self,
        process: Process,
        id_: SnapshotId,
        records: tuple[object, ...],
        control: tuple[object, ...],
    ) -> None:
        if id_.end_offset > self._committed:
            raise Violation(
                SNAPSHOT_IS_COMMITTED,
                f"node {process.node_id} sums up everything below {id_.end_offset}, and"
                f" {self._committed} is committed",
            )
        image = Image()
        for record in records:
            image.replay(cast("MetadataRecord", record))
        about = (KRaftVersionRecord, VotersRecord)
        mine = Summed(id_.epoch, image, tuple(each for each in control if isinstance(each, about)))
        if self._summed.setdefault(id_.end_offset, mine) != mine:
            raise Violation(
                IMAGES_EQUAL,
                f"node {process.node_id} has another snapshot of everything below"
                f" {id_.end_offset} than was written or loaded elsewhere",
            )
