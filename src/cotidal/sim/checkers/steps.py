"""What is looked at after every step of a node: cheap promises about replicas and voters."""

from __future__ import annotations

from typing import Final

from cotidal.core.partition.isr import maximal_isr
from cotidal.core.partition.progress import NEVER
from cotidal.core.partition.replica import Leadership, Replica
from cotidal.invariants import (
    HIGH_WATERMARK_IN_LOG,
    HIGH_WATERMARK_MONOTONIC,
    HIGH_WATERMARK_WAITS,
    ISR_WELL_FORMED,
    JOINS_AFTER_FETCH,
    MAXIMAL_ISR_COVERS,
    ONE_LEADER_PER_EPOCH,
    ONE_QUORUM_LEADER,
    VOTE_ONCE_PER_EPOCH,
)
from cotidal.node.events import ConnectionLost, ConnectionOpened, Event, ReadDone
from cotidal.sim.checkers.ghost import Ghost, PartitionGhost
from cotidal.sim.checkers.window import (
    applied_by,
    broker_epoch_of,
    hosted_by,
    image_of,
    leads_quorum,
    quorum_of,
)
from cotidal.sim.process import Process
from cotidal.sim.violation import Violation
from cotidal.sim.world import World
from cotidal.values import NO_NODE, NodeId, TopicPartition, Uuid

_CHANGES_NOTHING: Final = frozenset({ReadDone, ConnectionOpened, ConnectionLost})
"""Events that move no replica and no voter."""


class StepChecker:
    def __init__(self, world: World, ghost: Ghost, exempt: frozenset[str]) -> None:
        self._world = world
        self._ghost = ghost
        self._exempt = exempt

    def look(self, process: Process, event: Event) -> None:
        if event.__class__ in _CHANGES_NOTHING:
            return
        applied = applied_by(process)
        ghost = self._ghost
        if applied > ghost.applied:
            ghost.applied = applied
            ghost.image = image_of(process)
            self._look_at_image()
        self._look_at_quorum(process)
        for partition, hosted in hosted_by(process).items():
            replica = hosted.replica
            if not (
                replica.start_offset
                <= replica.high_watermark
                <= replica.end_offset
                <= replica.next_offset
            ):
                raise Violation(
                    HIGH_WATERMARK_IN_LOG,
                    f"node {process.node_id}, {partition}: start {replica.start_offset}, high"
                    f" watermark {replica.high_watermark}, end {replica.end_offset}, next"
                    f" {replica.next_offset}",
                )
            leadership = replica.leadership
            if leadership is not None:
                self._look_at_leader(process, partition, replica, leadership)

    def _look_at_leader(
        self, process: Process, partition: TopicPartition, replica: Replica, leader: Leadership
    ) -> None:
        seen = self._ghost.partition(replica.topic_id, partition.partition)
        node_id, incarnation, epoch = process.node_id, process.incarnation, leader.epoch
        before = seen.watermarks.get(node_id)
        watermark = replica.high_watermark
        if before is not None and before[0] == incarnation and before[1] == epoch:
            if watermark < before[2]:
                raise Violation(
                    HIGH_WATERMARK_MONOTONIC,
                    f"{partition} at node {node_id} in epoch {epoch}: from {before[2]} back to"
                    f" {watermark}",
                )
        else:
            me = (node_id, incarnation)
            if seen.leaders.setdefault(epoch, me) != me:
                raise Violation(
                    ONE_LEADER_PER_EPOCH,
                    f"{partition} is led in epoch {epoch} by node, incarnation"
                    f" {seen.leaders[epoch]} and by {me}",
                )
        if before is None or before[2] != watermark or before[1] != epoch:
            seen.watermarks[node_id] = (incarnation, epoch, watermark)
            if watermark > seen.true_high_watermark:
                seen.true_high_watermark = watermark
                self._look_at_advance(partition, replica.topic_id, watermark, leader)
        if leader.proposed is not None and leader.proposed is not seen.proposed:
            self._look_at_proposal(partition, leader, seen)

    def _look_at_advance(
        self, partition: TopicPartition, topic_id: Uuid, watermark: int, leader: Leadership
    ) -> None:
        """The high watermark has just moved: everybody who might be elected has reached it."""
        told = self._ghost.told_of(partition, topic_id)
        if told is None:
            return
        if (
            MAXIMAL_ISR_COVERS not in self._exempt
            and told.leader_epoch == leader.epoch
            and len(leader.isr) >= leader.min_isr
        ):
            covered = maximal_isr(leader)
            for member in (*told.isr, *told.elr):
                if member not in covered:
                    raise Violation(
                        MAXIMAL_ISR_COVERS,
                        f"{partition}: node {leader.node_id} moves the high watermark with"
                        f" {covered}, and the controller has ISR {told.isr}, ELR {told.elr}",
                    )
        if HIGH_WATERMARK_WAITS in self._exempt:
            return
        for member in told.isr:
            end = self.end_of(member, partition)
            if end is not None and end < watermark:
                raise Violation(
                    HIGH_WATERMARK_WAITS,
                    f"{partition}: the high watermark is {watermark}, and node {member} of the ISR"
                    f" ends at {end}",
                )

    def end_of(self, member: NodeId, partition: TopicPartition) -> int | None:
        """Where the log of an eligible replica ends; None if it is not there to be looked at."""
        process = self._world.machines[member].process
        broker = self._ghost.image.brokers.get(member)
        if process is None or broker is None or broker_epoch_of(process) != broker.epoch:
            return None
        hosted = hosted_by(process).get(partition)
        told = self._ghost.image.topics.get(partition.topic)
        if hosted is None or told is None or hosted.replica.topic_id != told.topic_id:
            return None
        if not hosted.replica.opened or hosted.replica.offline_reason is not None:
            return None
        log = process.disk.log_of(partition)
        return None if log is None else int(log.end_offset)

    def _look_at_proposal(
        self, partition: TopicPartition, leader: Leadership, seen: PartitionGhost
    ) -> None:
        seen.proposed = leader.proposed
        assert leader.proposed is not None
        for member in leader.proposed:
            progress = leader.followers.get(member)
            if member not in leader.isr and progress is not None and progress.last_fetch == NEVER:
                raise Violation(
                    JOINS_AFTER_FETCH,
                    f"{partition}: node {member} is proposed for the ISR in epoch {leader.epoch}"
                    " and has not fetched in it",
                )

    # The controller's word

    def _look_at_image(self) -> None:
        image = self._ghost.image
        for topic in image.topics.values():
            for number, told in topic.partitions.items():
                both = (*told.isr, *told.elr)
                wrong = None
                if len(set(both)) != len(both) or not set(both) <= set(told.replicas):
                    wrong = "ISR and ELR are not disjoint parts of the replicas"
                elif told.leader != NO_NODE and told.leader not in told.isr:
                    wrong = "the leader is not in the ISR"
                elif any(image.brokers[member].fenced for member in told.isr):
                    wrong = "a fenced broker is in the ISR"
                if wrong is not None:
                    raise Violation(ISR_WELL_FORMED, f"{topic.name}-{number}: {wrong}: {told}")

    def _look_at_quorum(self, process: Process) -> None:
        quorum = quorum_of(process)
        epoch = quorum.epoch
        directory = process.machine.config.directory_id
        ghost = self._ghost
        before = ghost.epochs.get(directory, 0)
        if epoch < before:
            raise Violation(
                VOTE_ONCE_PER_EPOCH,
                f"voter {process.node_id} goes back from epoch {before} to {epoch}",
            )
        outbox = quorum.outbox
        if outbox.durable < outbox.state_number:
            return  # nobody has been told of it yet: a crash may undo it
        ghost.epochs[directory] = epoch
        voted = quorum.voted
        if voted is not None:
            key = (directory, int(epoch))
            if ghost.votes.setdefault(key, voted.node_id) != voted.node_id:
                raise Violation(
                    VOTE_ONCE_PER_EPOCH,
                    f"voter {process.node_id} voted for {ghost.votes[key]} and for"
                    f" {voted.node_id} in epoch {epoch}",
                )
        if leads_quorum(process):
            me = (process.node_id, process.incarnation)
            if ghost.quorum_leaders.setdefault(int(epoch), me) != me:
                raise Violation(
                    ONE_QUORUM_LEADER,
                    f"epoch {epoch} of the quorum is led by node, incarnation"
                    f" {ghost.quorum_leaders[int(epoch)]} and by {me}",
                )
