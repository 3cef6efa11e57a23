"""What is looked at after every step of a node: cheap promises about replicas and voters.

Only the node that was stepped is looked at, and of it only what the event can have moved.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.fetch import REPLICA_STATE_SINCE
from cotidal.core.cluster.image import Partition
from cotidal.core.partition.isr import maximal_isr
from cotidal.core.partition.progress import NEVER
from cotidal.core.partition.replica import Leadership, Replica
from cotidal.core.quorum.states import Leader, Quorum
from cotidal.invariants import (
    HIGH_WATERMARK_IN_LOG,
    HIGH_WATERMARK_MONOTONIC,
    HIGH_WATERMARK_WAITS,
    JOINS_AFTER_FETCH,
    MAXIMAL_ISR_COVERS,
    METADATA_ASCENDS,
    ONE_LEADER_PER_EPOCH,
    ONE_QUORUM_LEADER,
    ONLY_ELIGIBLE_HOLD_BACK,
    QUORUM_LEADER_HOLDS_COMMITTED,
    VOTE_ONCE_PER_EPOCH,
)
from cotidal.messages.rpc.apis import ApiKey
from cotidal.node.events import (
    Appended,
    ConnectionLost,
    ConnectionOpened,
    Event,
    ReadDone,
    Received,
)
from cotidal.sim.checkers.ghost import Ghost, PartitionGhost
from cotidal.sim.checkers.metadata import MetadataChecker
from cotidal.sim.checkers.window import (
    broker_epoch_of,
    hosted_by,
    image_of,
    state_of,
)
from cotidal.sim.process import Process
from cotidal.sim.violation import Violation
from cotidal.sim.world import World
from cotidal.values import NodeId, TopicPartition, Uuid

_CHANGES_NOTHING: Final = frozenset({ReadDone, ConnectionOpened, ConnectionLost})
"""Events that move no replica and no voter."""

_Standing = tuple[object, ...]
"""All that a look at a replica judges: while it is the same, so is the verdict."""


class StepChecker:
    def __init__(
        self, world: World, ghost: Ghost, metadata: MetadataChecker, exempt: frozenset[str]
    ) -> None:
        self._world = world
        self._ghost = ghost
        self._metadata = metadata
        self._exempt = exempt
        self._roles: dict[tuple[NodeId, Uuid, int], tuple[int, int]] = {}
        """Node and partition -> incarnation, and the leader epoch in which it has a role."""
        self._looked_at: dict[NodeId, dict[TopicPartition, _Standing | None]] = {}
        """How each replica stood when it was last looked at."""

    def look(self, process: Process, event: Event) -> None:
        kind = event.__class__
        if kind in _CHANGES_NOTHING:
            return
        state = state_of(process)
        if state.quorum.applied > self._ghost.applied:
            self._metadata.follow(process)
        self._look_at_quorum(process, state.quorum.machine.state)
        if kind is Appended:
            hosted = state.hosted.get(event.partition)  # type: ignore[union-attr]
            if hosted is not None:
                self._look_at_replica(process, hosted.replica)
            return
        if kind is Received:
            self._note_fetches(event)  # type: ignore[arg-type]
        looked_at = self._looked_at.setdefault(process.node_id, {})
        for partition, hosted in state.hosted.items():
            standing = _standing(hosted.replica, self._ghost.applied)
            if standing is None or standing != looked_at.get(partition):
                looked_at[partition] = standing
                self._look_at_replica(process, hosted.replica)

    def _note_fetches(self, event: Received) -> None:
        """Who fetched what, as whom, and in which leader epoch: before anybody may join an ISR."""
        for request in event.requests:
            if request.api_key == ApiKey.FETCH and request.api_version >= REPLICA_STATE_SINCE:
                state = request.message.replica_state  # type: ignore[attr-defined]
                if state.replica_id >= 0:
                    for topic in request.message.topics:  # type: ignore[attr-defined]
                        for asked in topic.partitions:
                            seen = self._ghost.partition(topic.topic_id, asked.partition)
                            as_whom = (state.replica_epoch, asked.current_leader_epoch)
                            follower = state.replica_id
                            # One that comes late tells nothing new.
                            if follower not in seen.fetched or seen.fetched[follower] < as_whom:
                                seen.fetched[follower] = as_whom

    def _look_at_replica(self, process: Process, replica: Replica) -> None:
        if not (
            replica.start_offset
            <= replica.last_stable_offset
            <= replica.high_watermark
            <= replica.end_offset
            <= replica.next_offset
        ):
            raise Violation(
                HIGH_WATERMARK_IN_LOG,
                f"node {process.node_id}, {replica.partition}: start {replica.start_offset}, last"
                f" stable {replica.last_stable_offset}, high watermark {replica.high_watermark},"
                f" end {replica.end_offset}, next {replica.next_offset}",
            )
        leadership = replica.leadership
        if leadership is not None:
            self._look_at_leader(process, replica.partition, replica, leadership)
        elif replica.following is not None:
            self._look_at_epoch(process, replica, replica.following.epoch)

    def _look_at_epoch(self, process: Process, replica: Replica, epoch: int) -> None:
        """Within one life of a node, whom it follows or that it leads only becomes newer."""
        key = (process.node_id, replica.topic_id, replica.partition.partition)
        before = self._roles.get(key)
        if before is None or before[0] != process.incarnation or before[1] < epoch:
            self._roles[key] = (process.incarnation, epoch)
        elif epoch < before[1]:
            raise Violation(
                ONE_LEADER_PER_EPOCH,
                f"node {process.node_id} goes back from leader epoch {before[1]} to {epoch} of"
                f" {replica.partition}",
            )

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
        if before is None or before != (incarnation, epoch, watermark):
            self._look_at_epoch(process, replica, epoch)
            seen.watermarks[node_id] = (incarnation, epoch, watermark)
            if watermark > seen.true_high_watermark:
                seen.true_high_watermark = watermark
                self._look_at_advance(partition, replica.topic_id, watermark, leader)
        if watermark != replica.end_offset and len(leader.isr) >= leader.min_isr:
            self._look_for_delay(process, replica, leader)
        told = self._ghost.told_of(partition, replica.topic_id)
        if told is not None:
            looked_at = (leader, leader.isr, leader.proposal, told)
            if looked_at != seen.covered:
                seen.covered = looked_at
                self._look_at_isr(partition, leader, told)
        if leader.proposal is not None and leader.proposal is not seen.proposed:
            self._look_at_proposal(partition, leader, seen)

    def _look_at_isr(self, partition: TopicPartition, leader: Leadership, told: Partition) -> None:
        """A leader that is not out of date counts everyone whom the controller might elect."""
        if told.leader_epoch != leader.epoch or len(leader.isr) < leader.min_isr:
            return
        covered = maximal_isr(leader)
        for member in (*told.isr, *told.elr):
            if member not in covered:
                raise Violation(
                    MAXIMAL_ISR_COVERS,
                    f"{partition}: node {leader.node_id} counts {covered}, and the controller has"
                    f" ISR {told.isr}, ELR {told.elr}",
                )

    def _look_for_delay(self, process: Process, replica: Replica, leader: Leadership) -> None:
        """What everybody has who may be in the ISR, as the leader's own metadata says, is
        committed. Who is caught up, and so really waited for, is not asked here."""
        brokers, members = image_of(process).brokers, maximal_isr(leader)
        reached: int = replica.end_offset
        for node_id, progress in leader.followers.items():
            broker = brokers.get(node_id)
            if node_id in members or (broker is not None and broker.active):
                reached = min(reached, progress.end_offset)
        if replica.high_watermark < reached:
            raise Violation(
                ONLY_ELIGIBLE_HOLD_BACK,
                f"{replica.partition} at node {process.node_id}: everybody in the ISR {members}, or"
                f" active, has {reached}, and the high watermark is {replica.high_watermark}",
            )

    def _look_at_advance(
        self, partition: TopicPartition, topic_id: Uuid, watermark: int, leader: Leadership
    ) -> None:
        """The high watermark has just moved: every member of the ISR has reached it, and whoever
        is about to be one."""
        told = self._ghost.told_of(partition, topic_id)
        if told is None or HIGH_WATERMARK_WAITS in self._exempt:
            return
        members = told.isr
        if told.leader_epoch == leader.epoch:
            counted = (node for node in maximal_isr(leader) if self._is_as_seen(leader, node))
            members = tuple(dict.fromkeys((*members, *counted)))
        for member in members:
            end = self.end_of(member, partition)
            if end is not None and end < watermark:
                raise Violation(
                    HIGH_WATERMARK_WAITS,
                    f"{partition}: the high watermark is {watermark}, and node {member} of the ISR"
                    f" ends at {end}",
                )

    def _is_as_seen(self, leader: Leadership, follower: NodeId) -> bool:
        """The life of a follower of which its leader knows is the one that it is in."""
        progress, process = leader.followers.get(follower), self._world.machines[follower].process
        return (
            progress is not None
            and process is not None
            and progress.broker_epoch == broker_epoch_of(process)
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
        seen.proposed = leader.proposal
        for member in leader.proposed or ():
            progress = leader.followers.get(member)
            if member not in leader.isr and progress is not None and progress.last_fetch == NEVER:
                raise Violation(
                    JOINS_AFTER_FETCH,
                    f"{partition}: node {member} is proposed for the ISR in epoch {leader.epoch}"
                    " and has not fetched in it",
                )

    # The quorum

    def _look_at_quorum(self, process: Process, quorum: Quorum) -> None:
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
        if isinstance(quorum.role, Leader):
            me = (process.node_id, process.incarnation)
            if ghost.quorum_leaders.setdefault(int(epoch), me) != me:
                raise Violation(
                    ONE_QUORUM_LEADER,
                    f"epoch {epoch} of the quorum is led by node, incarnation"
                    f" {ghost.quorum_leaders[int(epoch)]} and by {me}",
                )
            self._look_at_quorum_leader(process, quorum)

    def _look_at_quorum_leader(self, process: Process, quorum: Quorum) -> None:
        """All that leaders of earlier epochs committed is in its log, and below what it commits."""
        role = quorum.role
        committed_by = self._ghost.committed_by
        epoch, committed = int(quorum.epoch), int(quorum.high_watermark)
        assert isinstance(role, Leader)
        if committed == committed_by.get(epoch):
            return
        earlier = max((end for term, end in committed_by.items() if term < epoch), default=0)
        if quorum.log.end_offset < earlier:
            raise Violation(
                QUORUM_LEADER_HOLDS_COMMITTED,
                f"node {process.node_id} leads epoch {epoch} with a log that ends at"
                f" {quorum.log.end_offset}; {earlier} is committed",
            )
        if not role.commits_own_epoch:
            return
        if committed < max(earlier, committed_by.get(epoch, 0)):
            raise Violation(
                METADATA_ASCENDS,
                f"node {process.node_id} commits {committed} in epoch {epoch}; {earlier} was"
                f" committed before it, {committed_by.get(epoch, 0)} by itself",
            )
        committed_by[epoch] = committed


def _standing(replica: Replica, applied: int) -> _Standing | None:
    """None if that is not all of it: whether something is held back depends on the followers."""
    leader, end = replica.leadership, replica.end_offset
    start, reached, next_offset = replica.start_offset, replica.high_watermark, replica.next_offset
    unstable = replica.producers.transactions.first_unstable
    if leader is None:
        role = replica.following
        epoch = None if role is None else role.epoch
        return (replica, role, epoch, start, unstable, reached, end, next_offset)
    if reached != end:
        return None
    who = (leader, leader.epoch, leader.isr, leader.min_isr, leader.proposal, applied)
    return (replica, start, unstable, reached, next_offset, who)
