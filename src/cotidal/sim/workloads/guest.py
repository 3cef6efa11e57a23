"""Somebody who joins groups and makes a mess of it, in both protocols.

Guests share a few groups of their own. Each asks one thing after another, of which some is right
and some is not: it joins with what another one was given, syncs for a generation that is over,
subscribes by expressions that are none, leaves for others, commits as whoever it likes. None of
that is wrong of a coordinator to refuse, and none may take it down or leave it stuck. What is
looked at is in visitor.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cotidal.core.groups.subscription import write_assignment
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.consumer_group_describe import ConsumerGroupDescribeRequest
from cotidal.messages.rpc.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from cotidal.messages.rpc.delete_groups import DeleteGroupsRequest
from cotidal.messages.rpc.describe_groups import DescribeGroupsRequest
from cotidal.messages.rpc.heartbeat import HeartbeatRequest
from cotidal.messages.rpc.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from cotidal.messages.rpc.leave_group import LeaveGroupRequest, MemberIdentity
from cotidal.messages.rpc.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from cotidal.messages.rpc.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from cotidal.messages.rpc.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from cotidal.messages.rpc.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from cotidal.sim.probes import Probes
from cotidal.sim.workloads.patterns import PATTERNS, WRONG_PATTERNS
from cotidal.sim.workloads.visitor import Question, Visitor
from cotidal.sim.world import World
from cotidal.values import TopicPartition, Uuid

KNOWN_MAX: Final = 5
"""Members that a group of guests remembers."""
SESSION_MS: Final = 1_500
REBALANCE_MS: Final = 1_000
NOBODY: Final = "nobody"
INSTANCE: Final = "guest-instance"
NOWHERE: Final = Uuid(b"?" * 16)


class Household:
    """A group of guests, and what any of them was told of it."""

    __slots__ = ("epochs", "generation", "group", "members")

    def __init__(self, group: str) -> None:
        self.group = group
        self.generation = -1
        self.members: list[str] = []
        self.epochs: dict[str, int] = {}
        """Of members of the consumer protocol."""

    def met(self, member_id: str) -> None:
        if member_id and member_id not in self.members:
            self.members = [*self.members, member_id][-KNOWN_MAX:]


class Guest(Visitor):
    def __init__(
        self,
        world: World,
        name: str,
        households: tuple[Household, ...],
        partitions: tuple[TopicPartition, ...],
        probes: Probes,
    ) -> None:
        topics = tuple(dict.fromkeys(each.topic for each in partitions))
        super().__init__(world, name, topics, probes)
        self._households = households
        self._partitions = partitions
        self._questions: tuple[Callable[[Household], Question], ...] = (
            self._join, self._join, self._join, self._sync, self._sync, self._beat, self._leave,
            self._consume, self._consume, self._consume, self._leave_consumers, self._commit,
            self._fetch, self._delete_offsets, self._look, self._delete,
        )  # fmt: skip

    def question(self) -> tuple[str, Question]:
        home = self.pick(self._households)
        return home.group, self.pick(self._questions)(home)

    def _someone(self, home: Household) -> str:
        return str(self.pick((*home.members, *home.members, NOBODY)))

    def _generation(self, home: Household) -> int:
        return home.generation + int(self.pick((0, 0, 0, -1, 1)))

    # The classic protocol

    def _join(self, home: Household) -> Question:
        version = self.pick((0, 1, 4, 5, 9, 9))
        says = _subscription(self.topics)
        protocols = self.pick(
            (
                (JoinGroupRequestProtocol("range", says),),
                (JoinGroupRequestProtocol("range", says),),
                (JoinGroupRequestProtocol("range", says), JoinGroupRequestProtocol("own", b"?")),
                (JoinGroupRequestProtocol("own", b"?"), JoinGroupRequestProtocol("range", says)),
                (JoinGroupRequestProtocol("other", b""),),
                (),
            )
        )
        request = JoinGroupRequest(
            group_id=home.group,
            session_timeout_ms=self.pick((SESSION_MS, SESSION_MS, SESSION_MS, SESSION_MS, 1)),
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.pick(("", "", self._someone(home))),
            group_instance_id=self.pick((None, None, INSTANCE)) if version >= 5 else None,
            protocol_type=self.pick(("consumer", "consumer", "consumer", "connect", "")),
            protocols=protocols,
        )

        def told(reply: Any) -> None:
            home.met(reply.member_id)
            if not reply.error_code:
                home.generation = reply.generation_id

        return Question(ApiKey.JOIN_GROUP, version, request, told)

    def _sync(self, home: Household) -> Question:
        shares = write_assignment(0, self._partitions)
        everybody = tuple(SyncGroupRequestAssignment(each, shares) for each in home.members)
        version = self.pick((0, 3, 5))
        request = SyncGroupRequest(
            home.group,
            self._generation(home),
            self._someone(home),
            self._instance() if version >= 3 else None,
            protocol_type=self.pick((None, "consumer", "connect")),
            protocol_name=self.pick((None, "range", "other")),
            assignments=self.pick(((), everybody)),
        )
        return Question(ApiKey.SYNC_GROUP, version, request)

    def _instance(self) -> str | None:
        return self.pick((None, None, None, INSTANCE, "another"))  # type: ignore[no-any-return]

    def _beat(self, home: Household) -> Question:
        request = HeartbeatRequest(
            home.group, self._generation(home), self._someone(home), self._instance()
        )
        return Question(ApiKey.HEARTBEAT, 4, request)

    def _leave(self, home: Household) -> Question:
        if self.draw(3) == 0:
            alone = LeaveGroupRequest(home.group, self._someone(home))
            return Question(ApiKey.LEAVE_GROUP, 2, alone)
        members = (
            MemberIdentity(self._someone(home), self._instance()),
            MemberIdentity("", self._instance() or INSTANCE),
        )
        request = LeaveGroupRequest(home.group, members=members[: 1 + self.draw(2)])
        return Question(ApiKey.LEAVE_GROUP, 5, request)

    # The consumer protocol

    def _consume(self, home: Household) -> Question:
        """Joins, or goes on as somebody."""
        joins = self.draw(2) == 0 or not home.epochs
        member = f"{self.name}-{self.draw(2)}" if joins else self.pick(tuple(home.epochs))
        epoch = 0 if joins else home.epochs[member] + self.pick((0, 0, 0, 1, -1))
        topic_id = self.pick((*self.topic_ids.values(), NOWHERE))
        has = (ConsumerGroupHeartbeatRequestTopicPartitions(topic_id, (0,)),)
        regex = self.pick((None, None, self.pick(PATTERNS), self.pick(WRONG_PATTERNS)))
        request = ConsumerGroupHeartbeatRequest(
            group_id=home.group,
            member_id=member,
            member_epoch=epoch,
            instance_id=self.pick((None, None, None, INSTANCE)),
            rack_id=self.pick((None, "node-1")),
            rebalance_timeout_ms=self.pick((REBALANCE_MS, REBALANCE_MS, REBALANCE_MS, -1)),
            subscribed_topic_names=self.pick((self.topics, self.topics[:1], ("nowhere",), None)),
            subscribed_topic_regex=regex,
            server_assignor=self.pick((None, None, "range", "uniform", "none")),
            topic_partitions=self.pick(((), (), (), None, has)),
        )

        def told(reply: Any) -> None:
            if not reply.error_code and reply.member_id is not None:
                home.met(reply.member_id)
                home.epochs[reply.member_id] = reply.member_epoch

        version = 1 if regex or self.draw(3) else 0
        return Question(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, request, told)

    def _leave_consumers(self, home: Household) -> Question:
        member = self.pick((*home.epochs, NOBODY))
        epoch = self.pick((-1, -1, -2, -3))
        instance = self.pick((None, INSTANCE))
        request = ConsumerGroupHeartbeatRequest(home.group, member, epoch, instance)
        home.epochs.pop(member, None)
        return Question(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)

    # Offsets, and the whole

    def _commit(self, home: Household) -> Question:
        partition = self.pick(self._partitions)
        one = OffsetCommitRequestPartition(partition.partition, self.draw(100))
        topic = OffsetCommitRequestTopic(partition.topic, partitions=(one,))
        request = OffsetCommitRequest(
            home.group,
            self.pick((-1, self._generation(home), self.pick((*home.epochs.values(), 7)))),
            self.pick(("", self._someone(home))),
            self._instance(),
            topics=(topic,),
        )
        version = self.pick((2, 3, 4, 7, 9))
        if version <= 4:
            soon = request._replace(retention_time_ms=500)
            return Question(ApiKey.OFFSET_COMMIT, version, soon._replace(group_instance_id=None))
        return Question(ApiKey.OFFSET_COMMIT, version, request)

    def _fetch(self, home: Household) -> Question:
        partition = self.pick(self._partitions)
        topic = OffsetFetchRequestTopics(partition.topic, partition_indexes=(partition.partition,))
        group = OffsetFetchRequestGroup(
            home.group,
            self.pick((None, self._someone(home))),
            self.pick((-1, *home.epochs.values())),
            self.pick((None, (topic,))),
        )
        request = OffsetFetchRequest(groups=(group,), require_stable=self.draw(2) == 0)
        return Question(ApiKey.OFFSET_FETCH, 9, request)

    def _delete_offsets(self, home: Household) -> Question:
        partition = self.pick(self._partitions)
        one = OffsetDeleteRequestPartition(partition.partition)
        topic = OffsetDeleteRequestTopic(partition.topic, (one,))
        request = OffsetDeleteRequest(self.pick((home.group, NOBODY)), (topic,))
        return Question(ApiKey.OFFSET_DELETE, 0, request)

    def _look(self, home: Household) -> Question:
        if self.draw(2):
            return Question(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest((home.group,)))
        consumers = ConsumerGroupDescribeRequest((home.group,))
        return Question(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, consumers)

    def _delete(self, home: Household) -> Question:
        return Question(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest((home.group,)))


def _subscription(topics: tuple[str, ...]) -> bytes:
    names = b"".join(len(each).to_bytes(2, "big") + each.encode() for each in topics)
    return b"\x00\x00" + len(topics).to_bytes(4, "big") + names + b"\xff" * 4
