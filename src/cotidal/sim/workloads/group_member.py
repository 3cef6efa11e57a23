"""A member of a consumer group: joins, is assigned partitions, commits, leaves and comes back.

    looking   for the coordinator                     -> where it was: joining, syncing, working
    joining   JoinGroup, SyncGroup (the leader assigns), what is committed is fetched -> working
    working   heartbeats and commits, each commit one more than the last,
              until it is told to rebalance                                          -> joining
    away      it left in order, or fell silent; after a while it is somebody new, or
              a static member's next life                                            -> looking

It claims every partition that it is assigned (ONE_OWNER), holds what it is told against what was
acknowledged to anybody before it asked (COMMITS_KEPT), and complains if it is forgotten sooner
after a heartbeat than any time-out allows (MEMBERS_KEPT). It reads no records.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from cotidal.errors import ErrorCode
from cotidal.invariants import MEMBERS_KEPT
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.find_coordinator import FindCoordinatorRequest
from cotidal.messages.rpc.heartbeat import HeartbeatRequest
from cotidal.messages.rpc.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from cotidal.messages.rpc.leave_group import LeaveGroupRequest, MemberIdentity
from cotidal.messages.rpc.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from cotidal.messages.rpc.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from cotidal.messages.rpc.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from cotidal.sim import probes as seen
from cotidal.sim.agenda import MS, SECOND
from cotidal.sim.network import Address
from cotidal.sim.probes import Probes
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.client import Client
from cotidal.sim.workloads.group_ledger import GroupLedger
from cotidal.sim.world import World
from cotidal.values import TopicPartition, by_topic

JOIN_VERSIONS: Final = (1, 4, 5, 9)
STATIC_SINCE: Final = 5
FIND_VERSION, SYNC_VERSION, BEAT_VERSION, LEAVE_VERSION = 4, 3, 3, 3
COMMIT_VERSION, FETCH_VERSION = 8, 8
SESSION_MS: Final = 3_000
REBALANCE_MS: Final = 2_000
BEAT_GAP_US: Final = 300 * MS
COMMIT_GAP_US: Final = 60 * MS
KEPT_US: Final = REBALANCE_MS * MS * 9 // 10
"""A rebalance that it has not heard of began after its heartbeat; clocks may be a little off."""
AWAY_ONE_IN: Final = 60
"""Heartbeats after which a member goes away."""
AWAY_US: Final = 4 * SECOND
NO_ASSIGNMENT: Final = b""


class GroupMember(Client):
    STABLE: ClassVar[bool] = False
    """Whether it wants to be told no offset that a transaction may be about to replace."""

    def __init__(
        self,
        world: World,
        name: str,
        group: str,
        partitions: tuple[TopicPartition, ...],
        ledger: GroupLedger,
        probes: Probes,
        *,
        static: bool,
    ) -> None:
        super().__init__(world, name, tuple(dict.fromkeys(each.topic for each in partitions)))
        self._group = group
        self._partitions = partitions
        self._ledger = ledger
        self._probes = probes
        self._join_version = JOIN_VERSIONS[self.draw(len(JOIN_VERSIONS))]
        self._instance = f"{name}-instance" if static else None
        if static:
            self._join_version = JOIN_VERSIONS[-1]
        self._coordinator: Address | None = None
        self._member_id = ""
        self._generation = -1
        self._owned: dict[TopicPartition, int] = {}
        """What was last committed of each; -1: nothing yet."""
        self._joined: JoinGroupResponse | None = None
        """Since then it waits for its assignment."""
        self._works = False
        self._beaten_us: int | None = None
        """When it sent the last heartbeat that was answered well."""
        self._life = 0
        """Answers to what an earlier life asked mean nothing."""
        self.settled = False
        """It works, and its last heartbeat said so."""
        self.restless = True

    def begin(self) -> None:
        self._look()

    # Looking for the coordinator

    def _look(self) -> None:
        self.settled = False
        self._life += 1
        self._coordinator = None
        self.after(self.back_off(), self._find, self._life)

    def _find(self, life: int) -> None:
        if life != self._life:
            return
        request = FindCoordinatorRequest(coordinator_keys=(self._group,))

        def found(reply: Any) -> None:
            if life != self._life:
                return
            told = None if reply is None else reply.coordinators[0]
            if told is None or told.error_code:
                self._look()
                return
            self._coordinator = (told.host, told.port)
            if self._works:
                self._work()
            elif self._joined is not None:
                self._sync(self._joined)
            else:
                self._join()

        self.ask(self.anyone(), ApiKey.FIND_COORDINATOR, FIND_VERSION, request, found)

    def _put(self, key: ApiKey, version: int, request: Any, then: Any) -> None:
        """Ask the coordinator; ``then`` hears of answers to this life only, None for silence."""
        life = self._life
        assert self._coordinator is not None

        def told(reply: Any) -> None:
            if life == self._life:
                if reply is None:
                    self._look()
                else:
                    then(reply)

        self.ask(self._coordinator, key, version, request, told, 8 * SECOND)

    def _on_error(self, error: int) -> None:
        """What a client does about each."""
        self._probes.see(f"a member refused with {ErrorCode(error).name}")
        match error:
            case ErrorCode.REBALANCE_IN_PROGRESS | ErrorCode.ILLEGAL_GENERATION:
                self._join()
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.FENCED_INSTANCE_ID:
                self._check_kept()
                self._member_id = ""
                self._join()
            case _:
                self._look()

    def _check_kept(self) -> None:
        beaten = self._beaten_us
        if beaten is not None and self.world.now - beaten < KEPT_US:
            raise Violation(
                MEMBERS_KEPT,
                f"{self.name} ({self._member_id}) is unknown to {self._group}"
                f" {(self.world.now - beaten) // MS} ms after a heartbeat",
            )

    # Joining

    def _join(self) -> None:
        self.settled = self._works = False
        self._joined = self._beaten_us = None
        self._life += 1
        self._owned = {}
        names = b"".join(len(t).to_bytes(2, "big") + t.encode() for t in self.topics)
        said = b"\x00\x00" + len(self.topics).to_bytes(4, "big") + names + b"\xff" * 4
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self._member_id,
            group_instance_id=self._instance,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol("range", said),),
        )
        self._put(ApiKey.JOIN_GROUP, self._join_version, request, self._on_joined)

    def _on_joined(self, reply: JoinGroupResponse) -> None:
        if reply.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = reply.member_id
            self._join()
        elif reply.error_code:
            self._on_error(reply.error_code)
        else:
            self._member_id = reply.member_id
            self._generation = reply.generation_id
            self._joined = reply
            self._sync(reply)

    def _sync(self, joined: JoinGroupResponse) -> None:
        assignments: tuple[SyncGroupRequestAssignment, ...] = ()
        if joined.leader == self._member_id and not joined.skip_assignment:
            members = sorted(each.member_id for each in joined.members)
            assignments = tuple(
                SyncGroupRequestAssignment(member, _written(self._partitions[at :: len(members)]))
                for at, member in enumerate(members)
            )
        request = SyncGroupRequest(
            self._group, self._generation, self._member_id, self._instance, assignments=assignments
        )
        self._put(ApiKey.SYNC_GROUP, SYNC_VERSION, request, self._on_synced)

    def _on_synced(self, reply: SyncGroupResponse) -> None:
        if reply.error_code:
            self._on_error(reply.error_code)
            return
        owned = _read(reply.assignment)
        self._ledger.on_assigned(
            self._group, self._generation, self._instance or self._member_id, owned
        )
        self._probes.see(seen.GROUP_REBALANCED)
        self._owned = dict.fromkeys(owned, -1)
        self._fetch()

    def _fetch(self) -> None:
        topics = tuple(
            OffsetFetchRequestTopics(name, partition_indexes=own)
            for name, own in by_topic(self._owned).items()
        )
        group = OffsetFetchRequestGroup(self._group, topics=topics)
        at_least = {each: self._ledger.highest(self._group, each) for each in self._owned}
        request = OffsetFetchRequest(groups=(group,), require_stable=self.STABLE)
        self._put(
            ApiKey.OFFSET_FETCH,
            FETCH_VERSION,
            request,
            lambda reply: self._on_fetched(reply, at_least),
        )

    def _on_fetched(self, reply: OffsetFetchResponse, at_least: dict[TopicPartition, int]) -> None:
        (group,) = reply.groups
        if group.error_code:
            self._on_error(group.error_code)
            return
        if any(told.error_code for topic in group.topics for told in topic.partitions):
            self._probes.see(seen.OFFSETS_UNSTABLE)
            self.after(self.back_off(), self._fetch_again, self._life)
            return
        for topic in group.topics:
            for told in topic.partitions:
                partition = TopicPartition(topic.name, told.partition_index)
                self._ledger.on_fetched(
                    self._group, partition, told.committed_offset, at_least[partition]
                )
                self._owned[partition] = told.committed_offset
        self._works = True
        self._work()

    def _fetch_again(self, life: int) -> None:
        if life == self._life:
            self._fetch()

    # Working

    def _work(self) -> None:
        self.after(self.draw(BEAT_GAP_US), self._beat, self._life)
        self.after(self.draw(COMMIT_GAP_US), self._commit, self._life)

    def _beat(self, life: int) -> None:
        if life != self._life:
            return
        if self.restless and self.draw(AWAY_ONE_IN) == 0:
            self._go_away()
            return
        request = HeartbeatRequest(self._group, self._generation, self._member_id, self._instance)
        sent = self.world.now

        def told(reply: Any) -> None:
            if reply.error_code:
                self._on_error(reply.error_code)
                return
            self.settled = True
            self._beaten_us = sent
            self.after(BEAT_GAP_US, self._beat, self._life)

        self._put(ApiKey.HEARTBEAT, BEAT_VERSION, request, told)

    def _commit(self, life: int) -> None:
        if life != self._life or not self._owned or self.stopped:
            return
        owned = tuple(self._owned)
        partition = owned[self.draw(len(owned))]
        value = self._owned[partition] + 1
        one = OffsetCommitRequestPartition(partition.partition, value)
        request = OffsetCommitRequest(
            self._group,
            self._generation,
            self._member_id,
            self._instance,
            topics=(OffsetCommitRequestTopic(partition.topic, partitions=(one,)),),
        )

        def told(reply: OffsetCommitResponse) -> None:
            error = reply.topics[0].partitions[0].error_code
            if error:
                self._on_error(error)
                return
            self._owned[partition] = value
            self._ledger.on_committed(self._group, partition, value)
            self.after(1 + self.draw(2 * COMMIT_GAP_US), self._commit, self._life)

        self._put(ApiKey.OFFSET_COMMIT, COMMIT_VERSION, request, told)

    # Going away

    def _go_away(self) -> None:
        in_order = self.draw(2) == 0 and self._coordinator is not None
        if in_order:
            self._probes.see(seen.MEMBER_LEFT)
            leaving = MemberIdentity(self._member_id, self._instance)
            request = LeaveGroupRequest(self._group, members=(leaving,))
            self._put(ApiKey.LEAVE_GROUP, LEAVE_VERSION, request, lambda _: None)
        else:
            self._probes.see(seen.MEMBER_FELL_SILENT)
        self.settled = self._works = False
        self._joined = self._beaten_us = None
        self._life += 1
        self._member_id = ""
        self.after(self.draw(AWAY_US), self._come_back, self._life)

    def _come_back(self, life: int) -> None:
        if life == self._life:
            self._look()

    def stop(self) -> None:
        """Commit nothing more, and stay."""
        self.stopped = True
        self.restless = False


def _written(partitions: tuple[TopicPartition, ...]) -> bytes:
    return ",".join(f"{each.topic}/{each.partition}" for each in partitions).encode()


def _read(assignment: bytes) -> tuple[TopicPartition, ...]:
    if assignment == NO_ASSIGNMENT:
        return ()
    named = (text.rpartition("/") for text in assignment.decode().split(","))
    return tuple(TopicPartition(topic, int(number)) for topic, _, number in named)
