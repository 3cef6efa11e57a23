"""This node's committed knowledge, as handlers may see it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from cotidal.api.view import QuorumView, VoterView
from cotidal.core.cluster.image import Image
from cotidal.core.partition.replica import Replica
from cotidal.node.state import NodeState
from cotidal.values import NodeId, TopicPartition


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
        voter = self._state.controller.voter
        wall = self._state.wall
        me = VoterView(voter.node_id, voter.directory_id, voter.end_offset, wall, wall)
        return QuorumView(voter.node_id, voter.epoch, voter.high_watermark, (me,))

    def replica(self, partition: TopicPartition) -> Replica | None:
        hosted = self._state.hosted.get(partition)
        return None if hosted is None else hosted.replica
