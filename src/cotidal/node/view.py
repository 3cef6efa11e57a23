"""This node's committed knowledge, as handlers may see it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from cotidal.api.view import ControllerView, QuorumView, VoterView
from cotidal.core.cluster.image import Image
from cotidal.core.partition.replica import Replica
from cotidal.core.quorum.node import ReplicaView
from cotidal.node import doubts
from cotidal.node.state import NodeState
from cotidal.values import NO_TIMESTAMP, Millis, NodeId, TopicPartition, WallMillis


class NodeView:
    """Implements ``api.view.View``."""

    __slots__ = ("_state",)

    def __init__(self, state: NodeState) -> None:
        self._state = state

    @property
    def node_id(self) -> NodeId:
        return self._state.config.node_id

    @property
    def cluster_id(self) -> str:
        return self._state.config.cluster_id

    @property
    def image(self) -> Image:
        return self._state.controller.committed

    @property
    def settings(self) -> Mapping[str, str]:
        return self._state.config.settings

    @property
    def quorum(self) -> QuorumView:
        state = self._state
        told = state.quorum.machine.view(state.now)
        in_force = state.quorum.machine.state.voters.latest
        return QuorumView(
            told.hint.leader_id,
            told.hint.epoch,
            told.high_watermark,
            tuple(self._replica_view(replica) for replica in told.voters),
            tuple(self._replica_view(replica) for replica in told.observers),
            tuple(
                ControllerView(NodeId(voter.voter_id), voter.endpoints)
                for voter in in_force.voters.voters
            ),
            in_force.kraft_version,
        )

    def _replica_view(self, replica: ReplicaView) -> VoterView:
        return VoterView(
            replica.key.node_id,
            replica.key.directory_id,
            replica.end_offset,
            self._wall_at(replica.fetched_at),
            self._wall_at(replica.caught_up_at),
        )

    def _wall_at(self, moment: Millis | None) -> WallMillis:
        if moment is None:
            return NO_TIMESTAMP
        return WallMillis(self._state.wall - (self._state.now - moment))

    def is_doubted(self, node_id: NodeId) -> bool:
        return doubts.is_doubted(self._state, node_id)

    def is_just_lost(self, node_id: NodeId) -> bool:
        return doubts.is_just_lost(self._state, node_id)

    def replica(self, partition: TopicPartition) -> Replica | None:
        hosted = self._state.hosted.get(partition)
        return None if hosted is None else hosted.replica
