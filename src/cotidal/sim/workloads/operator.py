"""An operator: moves partitions, elects leaders, changes the rules, deletes records.

What it does to the workload's topics must cost nobody a record. Whether it may do what can (an
unclean election) is the plan's to say. It is told nothing about faults, except which node is down
when it unregisters one: nobody unregisters a broker that runs. Sometimes it errs (blunders.py), or
takes itself for a node (impostor.py).

Answers are only counted. One that never came may have been obeyed all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from cotidal.core.cluster.image import Image
from cotidal.messages.rpc.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from cotidal.messages.rpc.describe_log_dirs import DescribeLogDirsRequest
from cotidal.messages.rpc.describe_replicas import DescribeReplicasRequest
from cotidal.messages.rpc.elect_leaders import ElectLeadersRequest, TopicPartitions
from cotidal.messages.rpc.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from cotidal.messages.rpc.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from cotidal.messages.rpc.list_partition_reassignments import ListPartitionReassignmentsRequest
from cotidal.messages.rpc.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from cotidal.messages.rpc.unregister_broker import UnregisterBrokerRequest
from cotidal.sim.agenda import SECOND
from cotidal.sim.probes import Probes
from cotidal.sim.workloads.blunders import blunder
from cotidal.sim.workloads.client import Client
from cotidal.sim.workloads.impostor import Cluster, claim
from cotidal.sim.workloads.registrar import entry
from cotidal.sim.world import CONTROLLER_PORT, World
from cotidal.values import TopicPartition

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
SET: Final = 0
DELETE: Final = 1
PREFERRED: Final = 0
UNCLEAN: Final = 1
TIMEOUT_MS: Final = 5_000
WALL_START: Final = 1_700_000_000_000


class Operator(Client):
    def __init__(
        self,
        world: World,
        probes: Probes,
        *,
        partitions: tuple[TopicPartition, ...],
        duties: Mapping[str, int],
        replicas_min: int,
        min_isr: int,
        gap_us: int,
        furthest: Callable[[], Image],
    ) -> None:
        """``duties``: what to do -> weight, in an order that is part of the plan. ``furthest``: the
        latest committed image of any node."""
        topics = tuple(dict.fromkeys(each.topic for each in partitions))
        super().__init__(world, "operator", topics)
        self._probes = probes
        self._partitions = partitions
        self._replicas_min = replicas_min
        self._min_isr = min_isr
        self._gap_us = gap_us
        self._furthest = furthest
        self._bag = [name for name, weight in duties.items() for _ in range(weight)]
        self._duties: dict[str, Callable[[TopicPartition], None]] = {
            "reassign": self._reassign,
            "cancel": self._cancel,
            "prefer": lambda partition: self._elect(partition, PREFERRED),
            "elect-unclean": lambda partition: self._elect(partition, UNCLEAN),
            "min-isr": self._change_min_isr,
            "unclean": self._change_unclean,
            "throttle": self._change_throttle,
            "delete-records": self._delete_records,
            "unregister": self._unregister,
            "look": self._look,
            "stand": self._stand,
            "list-moves": self._list_moves,
            "err": self._err,
            "pose": self._pose,
            "register": self._register,
        }

    def begin(self) -> None:
        if self._bag:
            self.refresh()
            self.after(self.draw(self._gap_us) + SECOND, self._act)

    def stop(self) -> None:
        self.stopped = True

    def _act(self) -> None:
        if self.stopped:
            return
        self.after(self._gap_us // 2 + self.draw(self._gap_us), self._act)
        duty = self._bag[self.draw(len(self._bag))]
        self._duties[duty](self._partitions[self.draw(len(self._partitions))])

    def _send(self, what: str, key: ApiKey, version: int, request: Any) -> None:
        self.ask(self.anyone(), key, version, request, self._told(what))

    def _send_to_leader(
        self, what: str, partition: TopicPartition, key: ApiKey, version: int, request: Any
    ) -> None:
        self.refresh()  # for the next time
        leader = self.leaders.get(partition)
        if leader is not None:
            self.ask(leader.address, key, version, request, self._told(what))

    def _told(self, what: str) -> Callable[[Any], None]:
        return lambda reply: self._probes.see(
            f"operator: {what}, {'no answer' if reply is None else 'answered'}"
        )

    # Where partitions are

    def _reassign(self, partition: TopicPartition) -> None:
        nodes = [int(each.node_id) for each in self.world.brokers]
        for place in range(len(nodes) - 1):
            other = place + self.draw(len(nodes) - place)
            nodes[place], nodes[other] = nodes[other], nodes[place]
        count = self._replicas_min + self.draw(len(nodes) - self._replicas_min + 1)
        self._move("reassign", partition, tuple(nodes[:count]))

    def _cancel(self, partition: TopicPartition) -> None:
        self._move("cancel", partition, None)

    def _move(self, what: str, partition: TopicPartition, target: tuple[int, ...] | None) -> None:
        moved = ReassignablePartition(partition.partition, target)
        topic = ReassignableTopic(partition.topic, (moved,))
        request = AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=(topic,))
        self._send(what, ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, request)

    def _elect(self, partition: TopicPartition, kind: int) -> None:
        chosen = None
        if kind == UNCLEAN or self.draw(2):
            chosen = (TopicPartitions(partition.topic, (partition.partition,)),)
        request = ElectLeadersRequest(kind, chosen, TIMEOUT_MS)
        self._send("elect", ApiKey.ELECT_LEADERS, 2, request)

    def _unregister(self, partition: TopicPartition) -> None:
        down = [each.node_id for each in self.world.brokers if each.process is None]
        if down:
            request = UnregisterBrokerRequest(down[self.draw(len(down))])
            self._send("unregister", ApiKey.UNREGISTER_BROKER, 0, request)

    # The rules

    def _change_min_isr(self, partition: TopicPartition) -> None:
        value = str(1 + self.draw(self._min_isr))
        self._configure(partition.topic, "min.insync.replicas", value)

    def _change_unclean(self, partition: TopicPartition) -> None:
        value = ("true", "false", None)[self.draw(3)]
        self._configure(partition.topic, "unclean.leader.election.enable", value)

    def _change_throttle(self, partition: TopicPartition) -> None:
        """Who is throttled, or how much: of everybody or of one; sometimes of nobody."""
        side = ("leader", "follower")[self.draw(2)]
        node = 1 + self.draw(len(self.world.brokers))
        if self.draw(2):
            value = ("*", f"{partition.partition}:{node}", None)[self.draw(3)]
            self._configure(partition.topic, f"{side}.replication.throttled.replicas", value)
        else:
            rate = ("0", "30", "300", None)[self.draw(4)]
            whose = ("", str(node))[self.draw(2)]
            name = f"{side}.replication.throttled.rate"
            self._configure(whose, name, rate, kind=BROKER_RESOURCE)

    def _configure(
        self, whose: str, name: str, value: str | None, *, kind: int = TOPIC_RESOURCE
    ) -> None:
        changed = AlterableConfig(name, DELETE if value is None else SET, value)
        resource = AlterConfigsResource(kind, whose, (changed,))
        request = IncrementalAlterConfigsRequest(resources=(resource,))
        self._send(f"set {name}", ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)

    # Records

    def _delete_records(self, partition: TopicPartition) -> None:
        offset = -1 if self.draw(8) == 0 else self.draw(60)
        deleted = DeleteRecordsPartition(partition.partition, offset)
        topic = DeleteRecordsTopic(partition.topic, (deleted,))
        request = DeleteRecordsRequest((topic,), TIMEOUT_MS)
        self._send_to_leader("delete records", partition, ApiKey.DELETE_RECORDS, 2, request)

    def _look(self, partition: TopicPartition) -> None:
        match self.draw(3):
            case 0:
                request: Any = DescribeLogDirsRequest(topics=None)
                self._send("log dirs", ApiKey.DESCRIBE_LOG_DIRS, 4, request)
            case 1:
                asked = OffsetForLeaderPartition(
                    partition.partition, leader_epoch=self.draw(1 + self._epoch(partition))
                )
                topic = OffsetForLeaderTopic(partition.topic, (asked,))
                request = OffsetForLeaderEpochRequest(replica_id=-1, topics=(topic,))
                key = ApiKey.OFFSET_FOR_LEADER_EPOCH
                self._send_to_leader("epoch end", partition, key, 4, request)
            case _:
                times = (-1, -2, -3, WALL_START + self.world.now // 2_000)
                time = times[self.draw(len(times))]
                wanted = ListOffsetsPartition(partition.partition, -1, time)
                listed = ListOffsetsTopic(partition.topic, (wanted,))
                request = ListOffsetsRequest(replica_id=-1, topics=(listed,))
                self._send_to_leader("offsets", partition, ApiKey.LIST_OFFSETS, 7, request)

    def _stand(self, partition: TopicPartition) -> None:
        topics = None if self.draw(2) else (partition.topic,)
        request = DescribeReplicasRequest(topics)
        self._send("describe replicas", ApiKey.DESCRIBE_REPLICAS, 0, request)

    def _list_moves(self, partition: TopicPartition) -> None:
        request = ListPartitionReassignmentsRequest(TIMEOUT_MS)
        self._send("list moves", ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request)

    def _err(self, partition: TopicPartition) -> None:
        wrong = blunder(self.draw, partition.topic, len(self.world.brokers))
        if wrong.key == ApiKey.PRODUCE and wrong.request.acks == 0:
            leader = self.leaders.get(partition)
            if leader is not None:
                self.ask(leader.address, wrong.key, wrong.version, wrong.request, None)
        elif wrong.to_leader:
            self._send_to_leader("err", partition, wrong.key, wrong.version, wrong.request)
        else:
            self._send("err", wrong.key, wrong.version, wrong.request)

    def _register(self, partition: TopicPartition) -> None:
        written = entry(self.draw, partition.topic)
        self._send("register", written.key, written.version, written.request)

    def _pose(self, partition: TopicPartition) -> None:
        """As a node, to the controllers' own listeners."""
        nodes = len(self.world.machines)
        cluster = Cluster(self.world.cluster_id, self._furthest(), nodes)
        claimed = claim(self.draw, cluster, partition)
        if claimed is not None:
            name, _ = self.anyone()
            address = (name, CONTROLLER_PORT)
            self.ask(address, claimed.key, claimed.version, claimed.request, self._told("pose"))

    def _epoch(self, partition: TopicPartition) -> int:
        leader = self.leaders.get(partition)
        return 1 if leader is None else leader.epoch + 1
