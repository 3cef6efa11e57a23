"""What is looked at every few hundred steps, and at the end: the logs themselves.

Each log is read once (mirror.py). Two logs with the same (offset, epoch) must have the same batch
there and the same one before it, and so, by induction, the same prefix: every batch that was ever
seen in any log, also in one that has been cut since, is remembered by (offset, epoch).

``sweep`` looks at what is new since the last one; ``audit`` forgets what it knows, reads every log
from its beginning, and must come to the same view of them.
"""

from __future__ import annotations

from functools import partial

from cotidal.core.cluster.image import Partition
from cotidal.core.partition.replica import Replica
from cotidal.invariants import (
    ACKED_IS_KEPT,
    COMMITTED_NEVER_CUT,
    ELIGIBLE_HOLD_COMMITTED,
    ELIGIBLE_NEVER_CUT,
    EPOCHS_MATCH_LOG,
    IMAGES_EQUAL,
    LEADER_HOLDS_ACKED,
    LOG_PREFIXES_MATCH,
    MAJORITY_HOLDS_COMMITTED,
    METADATA_COMMITTED_KEPT,
    SNAPSHOT_AT_LOG_START,
)
from cotidal.log.metadata_store import METADATA_PARTITION
from cotidal.sim.checkers.ghost import Ghost, PartitionGhost
from cotidal.sim.checkers.mirror import Held, Mirror
from cotidal.sim.checkers.steps import StepChecker
from cotidal.sim.checkers.window import (
    applied_by,
    broker_epoch_of,
    hosted_by,
    image_of,
    leads_quorum,
    quorum_of,
)
from cotidal.sim.probes import COMPACTED, COMPACTION_IN_VAIN, Probes
from cotidal.sim.process import Process
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.history import Acked, History
from cotidal.sim.world import World
from cotidal.values import NodeId, Offset, TopicPartition


class LogChecker:
    def __init__(
        self,
        world: World,
        ghost: Ghost,
        steps: StepChecker,
        history: History,
        exempt: frozenset[str],
        probes: Probes,
    ) -> None:
        self._world = world
        self._ghost = ghost
        self._steps = steps
        self._probes = probes
        self._history = history
        self._exempt = exempt

    def watch_cuts(self, process: Process) -> None:
        node_id = process.node_id
        process.disk.on_cut = lambda partition, end: self._on_cut(node_id, partition, end)
        process.disk.on_compacted = partial(self._on_compacted, node_id)

    def audit(self) -> None:
        """Every log from its beginning: what was kept step by step must be what is there. A log
        that is being cut is not read on, so there may be more."""
        self.sweep()
        mirrors = [(key[0], mirror) for key, mirror in self._ghost.mirrors.items()]
        for node_id, mirror in (*mirrors, *self._ghost.metadata_mirrors.items()):
            anew = Mirror(mirror.log, mirror.name, numbered=mirror.numbered)
            anew.deleted_below = mirror.deleted_below
            with self._world.machines[node_id].files.unharmed():
                anew.read_on()
            start, end = mirror.log.start_offset, mirror.end
            kept = [held for held in mirror.batches if held.next_offset > start]
            found = [held for held in anew.batches if held.next_offset <= end]
            assert found == kept, f"the mirror of {mirror.name} is not what the log holds"
            mirror.verified = mirror.compared = 0
        self._ghost.losses += 1
        self.sweep()

    def sweep(self) -> None:
        """Read on in every log, then compare."""
        for process in self._world.running:
            self.read_logs(process)
            self._read_metadata(process)
            if process.serving:  # it has opened all its logs
                self._ghost.awaken(process.node_id)
        self._look_at_leaders()
        if ELIGIBLE_HOLD_COMMITTED not in self._exempt:
            self._look_at_eligible()
        if ACKED_IS_KEPT not in self._exempt:
            self._look_at_disks()
        self._look_at_majority()
        self._look_at_images()

    # Reading

    def read_logs(self, process: Process) -> None:
        node_id = process.node_id
        for key, known in list(self._ghost.mirrors.items()):
            if key[0] == node_id and process.disk.log_of(key[1]) is not known.log:
                del self._ghost.mirrors[key]  # its topic was deleted
        for partition, log in process.disk.logs():
            hosted = hosted_by(process).get(partition)
            if hosted is None or not hosted.replica.opened:
                continue
            mirror = self._mirror(process.node_id, partition)
            if mirror is None or mirror.log is not log:
                name = f"{partition} of node {process.node_id}"
                mirror = Mirror(log, name, hosted.replica.topic_id, numbered=not hosted.coordinated)
                self._ghost.mirrors[process.node_id, partition] = mirror
            seen = self._ghost.partition(hosted.replica.topic_id, partition.partition)
            seen.deleted_below = max(seen.deleted_below, log.start_offset)
            mirror.deleted_below = seen.deleted_below
            fresh: list[Held] = []
            if not mirror.is_current:
                with process.machine.files.unharmed():
                    fresh = mirror.read_on()
            if fresh and not log.config.compacted:  # else keys.py compares record by record
                self._remember(mirror, fresh, seen)
            replica = hosted.replica
            told = replica.is_steady and replica.start_offset == log.start_offset
            if told and replica.offline_reason is None:
                self._look_at_epochs(mirror, replica)

    def _look_at_epochs(self, mirror: Mirror, replica: Replica) -> None:
        """The cache is the log's epochs; a leader that has not written yet is one more."""
        held = mirror.epochs_from(replica.start_offset)
        cached = [(int(epoch), int(start)) for epoch, start in replica.epochs.entries]
        if cached != held and not (cached[:-1] == held and cached[-1][1] == replica.end_offset):
            raise Violation(
                EPOCHS_MATCH_LOG,
                f"{mirror.name} holds (epoch, first offset) {held}, and its cache says {cached}",
            )

    def _mirror(self, node_id: NodeId, partition: TopicPartition) -> Mirror | None:
        return self._ghost.mirrors.get((node_id, partition))

    def _remember(
        self,
        mirror: Mirror,
        fresh: list[Held],
        seen: PartitionGhost,
    ) -> None:
        writers, start = seen.writers, seen.deleted_below
        before = mirror.before(fresh[0])
        for held in fresh:
            place = (held.base_offset, held.epoch)
            said = (held.crc, *((-1, -1) if before is None else (before.base_offset, before.epoch)))
            known = writers.setdefault(place, said)
            if known != said and (known[0] != said[0] or min(known[1], said[1]) >= start):
                raise Violation(
                    LOG_PREFIXES_MATCH,
                    f"{mirror.name} at offset {held.base_offset}, epoch {held.epoch}: checksum"
                    f" {said[0]:08x} after (offset, epoch) {said[1:]}; elsewhere {known[0]:08x}"
                    f" after {known[1:]}",
                )
            before = held

    # Partitions

    def _look_at_leaders(self) -> None:
        """The leader of the furthest epoch: it has all that was acknowledged, and is the canon."""
        for partition, acked in self._history.acked.items():
            told = self._ghost.told(partition)
            if told is None or LEADER_HOLDS_ACKED in self._exempt:
                continue
            mirror = self._leading_mirror(partition, told.leader, told.leader_epoch)
            if mirror is None:
                continue
            for fact in acked[mirror.verified :]:
                held = mirror.at(fact.offset)
                if fact.offset < mirror.log.start_offset:
                    continue
                if held is None or held.crc != fact.crc:
                    what = "nothing" if held is None else f"{held.crc:08x} of epoch {held.epoch}"
                    raise Violation(
                        LEADER_HOLDS_ACKED,
                        f"{mirror.name}, leader in epoch {told.leader_epoch}, has {what} at"
                        f" {fact.offset}, where {fact.crc:08x} was acknowledged at"
                        f" {fact.moment_us / 1e6:.6f}",
                    )
            mirror.verified = len(acked)

    def _leading_mirror(
        self, partition: TopicPartition, leader: NodeId, epoch: int
    ) -> Mirror | None:
        machine = self._world.machines.get(leader)
        process = None if machine is None else machine.process
        if process is None:
            return None
        hosted = hosted_by(process).get(partition)
        if hosted is None or hosted.replica.leadership is None:
            return None
        if hosted.replica.leadership.epoch != epoch:
            return None
        return self._mirror(leader, partition)

    def _look_at_disks(self) -> None:
        """What was acknowledged is on a disk, if on none that runs then on one that rests."""
        ghost = self._ghost
        if ghost.uncertain:
            return  # nobody can tell yet what a power cut has left
        for partition, acked in self._history.acked.items():
            topic = ghost.image.topics.get(partition.topic)
            if topic is None:
                continue
            found = ghost.on_disk.get(partition, (0, 0))
            known = found[1] if found[0] == ghost.losses else 0
            if known == len(acked):
                continue
            holders = [
                mirror
                for mirrors in (ghost.mirrors, ghost.resting)
                for (_, place), mirror in mirrors.items()
                if place == partition and mirror.topic_id == topic.topic_id
            ]
            start = max((mirror.log.start_offset for mirror in holders), default=0)
            for fact in acked[known:]:
                if fact.offset >= start and not any(_holds(mirror, fact) for mirror in holders):
                    raise Violation(
                        ACKED_IS_KEPT,
                        f"{fact.crc:08x}, acknowledged at {fact.offset} of {partition}, is on no"
                        " disk any more",
                    )
            ghost.on_disk[partition] = (ghost.losses, len(acked))

    def _look_at_eligible(self) -> None:
        image = self._ghost.image
        for topic in image.topics.values():
            for number, told in topic.partitions.items():
                partition = TopicPartition(topic.name, number)
                seen = self._ghost.partitions.get((topic.topic_id, number))
                if seen is None or not seen.true_high_watermark:
                    continue
                for member in (*told.isr, *told.elr):
                    self._look_at_member(partition, member, seen)

    def on_partition_changed(
        self, partition: TopicPartition, before: Partition, after: Partition
    ) -> None:
        """Whoever has just joined an ISR has all that is committed: not only when the next sweep
        looks, for it may have caught up by then."""
        topic = self._ghost.image.topics.get(partition.topic)
        if topic is None or ELIGIBLE_HOLD_COMMITTED in self._exempt:
            return
        for member in after.isr:
            process = self._world.machines[member].process
            if member not in before.isr and process is not None:
                self.read_logs(process)  # its log may be another one than at the last sweep
                seen = self._ghost.partition(topic.topic_id, partition.partition)
                self._look_at_member(partition, member, seen)

    def on_fenced(self, node_id: NodeId) -> None: ...

    def on_registered(self, node_id: NodeId) -> None: ...

    def on_unregistered(self, node_id: NodeId) -> None: ...

    def _look_at_member(
        self, partition: TopicPartition, member: NodeId, seen: PartitionGhost
    ) -> None:
        end = self._steps.end_of(member, partition)
        mirror = self._mirror(member, partition)
        if end is None or mirror is None:
            return
        committed = seen.true_high_watermark
        if end < committed:
            raise Violation(
                ELIGIBLE_HOLD_COMMITTED,
                f"{mirror.name} ends at {end}, and {committed} is committed",
            )
        canon = seen.canon
        if mirror.log.config.compacted:
            return
        for held in mirror.batches[mirror.compared :]:
            if held.base_offset >= committed:
                break
            mirror.compared += 1
            if held.base_offset < seen.deleted_below:
                continue
            said = (held.epoch, held.crc)
            if canon.setdefault(held.base_offset, said) != said:
                raise Violation(
                    ELIGIBLE_HOLD_COMMITTED,
                    f"{mirror.name} has epoch {held.epoch}, checksum {held.crc:08x} at"
                    f" {held.base_offset}; committed is epoch, checksum"
                    f" {canon[held.base_offset]}",
                )

    def _on_metadata_cut(self, node_id: NodeId, end: Offset) -> None:
        mirror = self._ghost.metadata_mirrors.get(node_id)
        if mirror is not None and mirror.log.start_offset < end:
            mirror.cut(end)
        else:  # a snapshot has taken the place of all that was read
            self._ghost.metadata_mirrors.pop(node_id, None)
        process = self._world.machines[node_id].process
        if process is not None and end < quorum_of(process).high_watermark:
            raise Violation(
                COMMITTED_NEVER_CUT,
                f"node {node_id} cuts its metadata log to {end}; it knows that"
                f" {quorum_of(process).high_watermark} is committed",
            )

    def _on_cut(self, node_id: NodeId, partition: TopicPartition, end: Offset) -> None:
        if partition == METADATA_PARTITION:
            self._on_metadata_cut(node_id, end)
            return
        mirror = self._mirror(node_id, partition)
        if mirror is not None:
            mirror.cut(end)
            self._ghost.losses += 1
        process = self._world.machines[node_id].process
        if process is None or ELIGIBLE_NEVER_CUT in self._exempt:
            return
        broker = self._ghost.image.brokers.get(node_id)
        hosted = hosted_by(process).get(partition)
        if broker is None or hosted is None or broker.epoch != broker_epoch_of(process):
            return
        told = self._ghost.told_of(partition, hosted.replica.topic_id)
        if told is None:
            return
        seen = self._ghost.partition(hosted.replica.topic_id, partition.partition)
        eligible = node_id in told.isr or node_id in told.elr
        if eligible and end < seen.true_high_watermark:
            raise Violation(
                ELIGIBLE_NEVER_CUT,
                f"node {node_id} cuts {partition} to {end}; {seen.true_high_watermark} is committed"
                f" and it is in ISR {told.isr} or ELR {told.elr}",
            )

    def _on_compacted(self, node_id: NodeId, partition: TopicPartition, done: bool) -> None:
        """What was read of it is there no more: it is read anew."""
        self._probes.see(COMPACTED if done else COMPACTION_IN_VAIN)
        self._ghost.mirrors.pop((node_id, partition), None)

    # Metadata

    def _read_metadata(self, process: Process) -> None:
        ghost = self._ghost
        node_id = process.node_id
        log = process.disk.metadata.log
        mirror = ghost.metadata_mirrors.get(node_id)
        quorum = quorum_of(process)
        if mirror is None or mirror.log is not log or mirror.end < log.start_offset:
            # new; or what it has not read yet is in a snapshot already
            mirror = ghost.metadata_mirrors[node_id] = Mirror(log, f"metadata of node {node_id}")
        with process.machine.files.unharmed():
            mirror.read_on()
        # Files go as whole segments, and later than the machine decides: they may start earlier.
        if log.start_offset > max((each.id.end_offset for each in quorum.snapshots), default=0):
            raise Violation(
                SNAPSHOT_AT_LOG_START,
                f"{mirror.name} starts at {log.start_offset}, and no snapshot reaches that far",
            )
        if quorum.installing is not None:
            return  # the machine is at the snapshot, its files are still what it takes the place of
        for held in mirror.batches[mirror.compared :]:
            if held.next_offset > quorum.high_watermark:
                break
            mirror.compared += 1
            said = (held.epoch, held.crc)
            if ghost.metadata_canon.setdefault(held.base_offset, said) != said:
                raise Violation(
                    METADATA_COMMITTED_KEPT,
                    f"{mirror.name} has epoch, checksum {said} at {held.base_offset}; elsewhere"
                    f" {ghost.metadata_canon[held.base_offset]} is committed",
                )

    def note_metadata_end(self, process: Process) -> None:
        """How far its log reaches: of a machine that is down, as it was when it went down."""
        self._ghost.metadata_ends[process.node_id] = process.disk.metadata.log.end_offset

    def _look_at_majority(self) -> None:
        ghost = self._ghost
        for process in self._world.running:
            self.note_metadata_end(process)
        for process in self._world.running:
            if not leads_quorum(process):
                continue
            committed = quorum_of(process).high_watermark
            # A change of the voters is in force before it is committed: until then either set may
            # have been the one that was counted.
            history = quorum_of(process).voters
            counted = (history.before(committed), history.latest)
            if not any(self._holds(each.voters.ids, committed) for each in counted):
                raise Violation(
                    MAJORITY_HOLDS_COMMITTED,
                    f"node {process.node_id} has committed {committed}; logs end at"
                    f" {ghost.metadata_ends}",
                )

    def _holds(self, voters: tuple[NodeId, ...], committed: int) -> bool:
        """Whether a majority of these has it, as far as is known."""
        ends = self._ghost.metadata_ends
        behind = sum(1 for voter in voters if ends.get(voter, committed) < committed)
        return behind <= (len(voters) - 1) // 2

    def _look_at_images(self) -> None:
        ghost = self._ghost
        by_offset: dict[int, Process] = {}
        for process in self._world.running:
            if applied_by(process) == ghost.applied and image_of(process) != ghost.image:
                raise Violation(
                    IMAGES_EQUAL,
                    f"node {process.node_id} says otherwise than the log up to {ghost.applied}",
                )
            twin = by_offset.setdefault(applied_by(process), process)
            if twin is not process and image_of(twin) != image_of(process):
                raise Violation(
                    IMAGES_EQUAL,
                    f"nodes {twin.node_id} and {process.node_id} differ in what they say after"
                    f" offset {applied_by(process)}",
                )


def _holds(mirror: Mirror, fact: Acked) -> bool:
    held = mirror.at(fact.offset)
    return held is not None and held.crc == fact.crc
