"""What is true of the whole cluster, which no node knows: the furthest metadata, who led what.

Kept while nodes step; the checkers judge nodes and logs against it.
"""

from __future__ import annotations

from cotidal.api.coordination import OFFSETS_TOPIC
from cotidal.core.cluster.image import Image, Partition
from cotidal.core.coordinator import partition_of
from cotidal.core.partition.effects import ProposeIsr
from cotidal.sim.checkers.mirror import Mirror
from cotidal.sim.network import Address
from cotidal.sim.process import Process
from cotidal.values import NodeId, TopicPartition, Uuid

PartitionKey = tuple[Uuid, int]


class PartitionGhost:
    """One partition, for ever."""

    __slots__ = (
        "canon",
        "covered",
        "deleted_below",
        "fetched",
        "leaders",
        "proposed",
        "true_high_watermark",
        "watermarks",
        "writers",
    )

    def __init__(self) -> None:
        self.leaders: dict[int, tuple[NodeId, int]] = {}
        """Leader epoch -> node and incarnation."""
        self.true_high_watermark = 0
        """The highest that any leader has ever had: everything below is committed."""
        self.watermarks: dict[NodeId, tuple[int, int, int]] = {}
        """Node -> incarnation, epoch, high watermark of its last look as leader."""
        self.canon: dict[int, tuple[int, int]] = {}
        """Base offset -> epoch and checksum of every batch known to be committed."""
        self.writers: dict[tuple[int, int], tuple[int, int, int]] = {}
        """(Base offset, epoch) -> checksum, and the (base offset, epoch) before it."""
        self.proposed: ProposeIsr | None = None
        """The last proposal of an ISR that was looked at."""
        self.covered: tuple[object, ...] = ()
        """What was looked at when the leader's ISR was last compared with the controller's."""
        self.deleted_below = 0
        """The furthest that any replica's log has begun. What a slow replica still holds below is
        of no concern: it may be what nobody else ever had, cut to where its leader's log begins."""
        self.fetched: dict[int, tuple[int, int]] = {}
        """Follower -> broker epoch and leader epoch of its last fetch."""


class Ghost:
    def __init__(self) -> None:
        self.applied = 0
        self.image = Image()
        """All that any node has applied, replayed from the logs' bytes and from nowhere else."""
        self.broker_epochs: dict[NodeId, int] = {}
        """The latest of each broker, also of one that was unregistered since."""
        self.partitions: dict[PartitionKey, PartitionGhost] = {}
        self.mirrors: dict[tuple[NodeId, TopicPartition], Mirror] = {}
        self.resting: dict[tuple[NodeId, TopicPartition], Mirror] = {}
        """Of machines whose process has ended: their disks hold what they held."""
        self.uncertain: dict[NodeId, None] = {}
        """Machines that lost power: what their disks hold is known when they have started."""
        self.losses = 0
        """How often some log lost something."""
        self.on_disk: dict[TopicPartition, tuple[int, int]] = {}
        """Partition -> ``losses``, and how many acknowledged batches were found on disks then."""
        self.metadata_mirrors: dict[NodeId, Mirror] = {}
        self.metadata_canon: dict[int, tuple[int, int]] = {}
        self.committed_by: dict[int, int] = {}
        """Quorum epoch -> the high watermark of its leader, once that is its own."""
        self.metadata_ends: dict[NodeId, int] = {}
        """How far the metadata log of each machine reaches."""
        self.quorum_leaders: dict[int, tuple[NodeId, int]] = {}
        self.votes: dict[tuple[Uuid, int], NodeId] = {}
        self.epochs: dict[Uuid, int] = {}

    def partition(self, topic_id: Uuid, number: int) -> PartitionGhost:
        key = (topic_id, number)
        found = self.partitions.get(key)
        if found is None:
            found = self.partitions[key] = PartitionGhost()
        return found

    def told(self, partition: TopicPartition) -> Partition | None:
        """What the controller has committed about it."""
        return self.image.partition(*partition)

    def coordinator(self, group: str) -> Address | None:
        """Whom the metadata log names as the coordinator of a group."""
        topic = self.image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return None
        leader = topic.partitions[partition_of(group, len(topic.partitions))].leader
        broker = self.image.brokers.get(leader)
        if broker is None:
            return None
        (point,) = broker.endpoints
        return point.host, point.port

    def told_of(self, partition: TopicPartition, topic_id: Uuid) -> Partition | None:
        """The same, unless the topic has been deleted: one of its name may have been created."""
        topic = self.image.topics.get(partition.topic)
        if topic is None or topic.topic_id != topic_id:
            return None
        return topic.partitions.get(partition.partition)

    def forget_process(self, process: Process, *, keeps_disk: bool) -> None:
        """Its logs are closed; the next incarnation's are read anew."""
        node_id = process.node_id
        for key in [key for key in self.mirrors if key[0] == node_id]:
            mirror = self.mirrors.pop(key)
            if keeps_disk:
                self.resting[key] = mirror
        if not keeps_disk:
            self.losses += 1
            self.uncertain[node_id] = None
        self.metadata_mirrors.pop(node_id, None)

    def awaken(self, node_id: NodeId) -> None:
        """All logs of this node are read again: what was known of its disk is superseded."""
        self.uncertain.pop(node_id, None)
        for key in [key for key in self.resting if key[0] == node_id]:
            del self.resting[key]
            self.losses += 1
