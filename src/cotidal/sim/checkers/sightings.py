"""Looks for the rare situations of probes.py in what nodes do. It judges nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cotidal.core.cluster.image import RECOVERING, Partition
from cotidal.core.quorum.majority import committed_offset
from cotidal.core.quorum.replication import end_of_voter
from cotidal.core.quorum.states import Leader, Resigned, Role
from cotidal.core.quorum.voters import key_of
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.alter_partition import AlterPartitionResponse
from cotidal.messages.rpc.apis import ApiKey
from cotidal.node import effects as fx
from cotidal.node.events import Event, LogFailed, Received, ShutdownRequested, Ticked
from cotidal.sim import probes as seen
from cotidal.sim.checkers.ghost import Ghost
from cotidal.sim.checkers.window import hosted_by, leads_quorum, quorum_of, state_of
from cotidal.sim.probes import Probes
from cotidal.sim.process import Process, Watcher
from cotidal.sim.world import World
from cotidal.values import NO_NODE, NodeId, TopicPartition

_PROPOSAL_ERRORS: Final = {
    ErrorCode.FENCED_LEADER_EPOCH: seen.ZOMBIE_FENCED,
    ErrorCode.INVALID_UPDATE_VERSION: seen.STALE_PROPOSAL,
    ErrorCode.INELIGIBLE_REPLICA: seen.INELIGIBLE,
}
CUTS_IN_A_ROW: Final = 3


class Sightings(Watcher):
    def __init__(self, world: World, ghost: Ghost, probes: Probes) -> None:
        self._world = world
        self._ghost = ghost
        self._probes = probes
        self._cuts: dict[tuple[NodeId, TopicPartition], int] = {}
        """How often in a row a log was cut, with nothing written in between."""
        self._batches: dict[tuple[object, ...], None] = {}
        """Idempotent batches with acks=all that some process has been sent."""
        self._roles: dict[NodeId, Role] = {}
        """In the quorum."""
        self._all_down = False
        self._gone: dict[NodeId, None] = {}
        """Brokers that are not registered, and were."""
        self._on_effect: dict[type, Callable[[Process, Any], None]] = {
            fx.TruncateTo: self._on_cut,
            fx.StartOver: self._on_start_over,
            fx.Append: self._on_append,
            fx.Persist: self._on_persist,
            fx.Respond: self._on_respond,
        }

    # What nodes do

    def on_stepped(self, process: Process, event: Event, effects: tuple[fx.Effect, ...]) -> None:
        kind = event.__class__
        if kind is Received:
            self._look_at_requests(process, event)  # type: ignore[arg-type]
        elif kind is ShutdownRequested:
            self._look_at_stop(process)
        elif kind is Ticked:
            self._look_at_throttles(process)
        elif kind is LogFailed:
            self._probes.see(seen.LOG_OFFLINE)
        for effect in effects:
            look = self._on_effect.get(effect.__class__)
            if look is not None:
                look(process, effect)
        self._look_at_quorum(process)
        if self._all_down and process.serving:
            self._all_down = False
            self._probes.see(seen.ALL_BACK)

    def on_ended(self, process: Process, reason: str) -> None:
        self._roles.pop(process.node_id, None)
        if all(each is process for each in self._world.running):
            self._all_down = True
            self._probes.see(seen.ALL_DOWN)

    def _look_at_requests(self, process: Process, event: Received) -> None:
        for request in event.requests:
            if request.api_key != ApiKey.PRODUCE:
                continue
            message: Any = request.message
            if message.acks != -1:
                continue
            for topic in message.topic_data:
                name = topic.name or self._ghost.image.topic_names.get(topic.topic_id, "")
                for data in topic.partition_data:
                    place = TopicPartition(name, data.partition_index)
                    for header in data.records.headers[:1]:
                        if header.producer_id >= 0:
                            self._look_at_batch(process, place, header)

    def _look_at_batch(self, process: Process, place: TopicPartition, header: Any) -> None:
        sequence = (header.producer_id, header.producer_epoch, header.base_sequence)
        key = (process.node_id, process.incarnation, place, *sequence)
        if key not in self._batches:
            self._batches[key] = None
            return
        hosted = hosted_by(process).get(place)
        if hosted is not None:
            waiting = [each.base_offset for each in hosted.until_committed._line]
            if len(set(waiting)) < len(waiting):
                self._probes.see(seen.DUPLICATE_PARKED)

    def _on_respond(self, process: Process, effect: fx.Respond) -> None:
        """What the controller refuses, whether or not the leader ever hears of it."""
        if isinstance(effect.message, AlterPartitionResponse):
            for topic in effect.message.topics:
                for told in topic.partitions:
                    situation = _PROPOSAL_ERRORS.get(ErrorCode(told.error_code))
                    if situation is not None:
                        self._probes.see(situation)

    def _look_at_stop(self, process: Process) -> None:
        if state_of(process).parked_produces:
            self._probes.see(seen.STOPPED_UNDER_LOAD)

    def _look_at_throttles(self, process: Process) -> None:
        state = state_of(process)
        if state.leader_throttle.held_back:
            self._probes.see(seen.LEADER_THROTTLES)
        if state.follower_throttle.held_back:
            self._probes.see(seen.FOLLOWER_THROTTLES)

    def _on_cut(self, process: Process, effect: fx.TruncateTo) -> None:
        self._probes.see(seen.TRUNCATED)
        key = (process.node_id, effect.partition)
        self._cuts[key] = self._cuts.get(key, 0) + 1
        if self._cuts[key] == CUTS_IN_A_ROW:
            self._probes.see(seen.TRUNCATED_THRICE)

    def _on_start_over(self, process: Process, effect: fx.StartOver) -> None:
        self._probes.see(seen.STARTED_OVER)

    def _on_append(self, process: Process, effect: fx.Append) -> None:
        self._cuts.pop((process.node_id, effect.partition), None)
        replica = hosted_by(process)[effect.partition].replica
        told = self._ghost.told_of(effect.partition, replica.topic_id)
        leadership = replica.leadership
        if told is not None and leadership is not None and leadership.epoch < told.leader_epoch:
            self._probes.see(seen.ZOMBIE_WRITES)

    def _on_persist(self, process: Process, effect: fx.Persist) -> None:
        if any(isinstance(write, fx.CutMetadata) for write in effect.writes):
            self._probes.see(seen.METADATA_CUT)

    def _look_at_quorum(self, process: Process) -> None:
        quorum = quorum_of(process)
        role = quorum.role
        before = self._roles.get(process.node_id)
        if role is before and (role.__class__ is not Leader or role.commits_own_epoch):
            return
        self._roles[process.node_id] = role
        led = isinstance(before, Leader)
        if led and isinstance(role, Resigned) and not quorum.is_stopping:
            self._probes.see(seen.QUORUM_RESIGNED)
        if not isinstance(role, Leader):
            return
        if not led and sum(map(leads_quorum, self._world.running)) > 1:
            self._probes.see(seen.TWO_QUORUM_LEADERS)
        if not role.commits_own_epoch:
            voters = quorum.voter_set.voters
            held = committed_offset([end_of_voter(quorum, role, key_of(each)) for each in voters])
            if quorum.high_watermark < held <= role.epoch_start:
                self._probes.see(seen.OLD_EPOCH_ON_MAJORITY)

    # What was decided

    def on_fenced(self, node_id: NodeId) -> None:
        self._probes.see(seen.BROKER_FENCED)

    def on_registered(self, node_id: NodeId) -> None:
        if node_id in self._gone:
            del self._gone[node_id]
            self._probes.see(seen.UNREGISTERED)

    def on_unregistered(self, node_id: NodeId) -> None:
        self._gone[node_id] = None

    def on_partition_changed(
        self, partition: TopicPartition, before: Partition, after: Partition
    ) -> None:
        if len(after.isr) == 1 < len(before.isr):
            self._probes.see(seen.ISR_OF_ONE)
        if after.leader != before.leader:
            self._look_at_election(before, after)
        if before.reassigning and not after.reassigning:
            origin = [node for node in before.replicas if node not in before.adding]
            cancelled = sorted(after.replicas) == sorted(origin)
            self._probes.see(seen.CANCELLED if cancelled else seen.REASSIGNED)

    def _look_at_election(self, before: Partition, after: Partition) -> None:
        leader = after.leader
        if leader == NO_NODE:
            self._probes.see(seen.LEADERLESS)
        elif leader in before.isr:
            if leader == after.replicas[0] and before.leader in after.isr:
                self._probes.see(seen.PREFERRED_REGAINED)
        elif leader in before.elr:
            self._probes.see(seen.ELR_ELECTED)
        elif leader in before.last_known_elr:
            self._probes.see(seen.LAST_LEADER_ELECTED)
        elif after.recovery_state == RECOVERING:
            self._probes.see(seen.UNCLEAN_ELECTED)
