"""What a BROKER handler may look at: this broker's committed knowledge. Pure.

Nothing speculative is visible here, so an answer never reveals a decision that could still be lost
(DURABLE_BEFORE_TOLD).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from cotidal.core.cluster.image import Image
from cotidal.core.partition.replica import Replica
from cotidal.messages.records.quorum import Endpoint
from cotidal.values import LeaderEpoch, NodeId, Offset, TopicPartition, Uuid, WallMillis


class VoterView(NamedTuple):
    """How far a voter or observer of the metadata quorum has got, as its leader knows it."""

    node_id: NodeId
    directory_id: Uuid
    end_offset: Offset
    last_fetch_ms: WallMillis
    """-1 where it is not known."""
    last_caught_up_ms: WallMillis


class ControllerView(NamedTuple):
    """A voter, and where it listens."""

    node_id: NodeId
    endpoints: tuple[Endpoint, ...]


class QuorumView(NamedTuple):
    leader_id: NodeId
    """NO_NODE while an election is under way."""
    leader_epoch: LeaderEpoch
    high_watermark: Offset
    voters: tuple[VoterView, ...]
    observers: tuple[VoterView, ...] = ()
    controllers: tuple[ControllerView, ...] = ()
    """The voters in force."""
    kraft_version: int = 0


class View(Protocol):
    @property
    def node_id(self) -> NodeId: ...

    @property
    def cluster_id(self) -> str: ...

    @property
    def image(self) -> Image:
        """The committed image. Read only."""

    @property
    def settings(self) -> Mapping[str, str]:
        """Static settings, as in server.properties."""

    @property
    def quorum(self) -> QuorumView: ...

    def is_doubted(self, node_id: NodeId) -> bool:
        """Whether that broker has perhaps just died, and nobody has decided anything yet."""

    def is_just_lost(self, node_id: NodeId) -> bool:
        """Whether that broker was there a moment ago, whatever has been decided about it since."""

    def replica(self, partition: TopicPartition) -> Replica | None:
        """This broker's replica of a partition, if it has one."""
