"""A member of a consumer group: joins, is assigned partitions, commits, leaves and comes back.

    looking   for the coordinator                     -> where it was: joining, syncing, working
    joining   JoinGroup, SyncGroup (the leader assigns), what is committed is fetched -> working
    working   heartbeats and commits, each commit one more than the last,
              until it is told to rebalance                                          -> joining
    away      it left in order, or fell silent; after a while it is somebody new, or
              a static member's next life                                            -> looking

It is eager: it gives up everything as it joins again. What it promises and watches is in member.py.
"""

from __future__ import annotations

from typing import Any, Final

from cotidal.core.groups.subscription import read_assignment, write_assignment
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.heartbeat import HeartbeatRequest
from cotidal.messages.rpc.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from cotidal.messages.rpc.leave_group import LeaveGroupRequest, MemberIdentity
from cotidal.messages.rpc.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from cotidal.sim import probes as seen
from cotidal.sim.probes import Probes
from cotidal.sim.workloads.group_ledger import REBALANCE_MS, GroupLedger
from cotidal.sim.workloads.member import BEAT_GAP_US, COMMIT_GAP_US, Member
from cotidal.sim.world import World
from cotidal.values import TopicPartition

JOIN_VERSIONS: Final = (1, 4, 5, 9)
SYNC_VERSION, BEAT_VERSION, LEAVE_VERSION = 3, 3, 3
SESSION_MS: Final = 3_000
VERSION: Final = 0
"""Of subscriptions and assignments."""


class GroupMember(Member):
    offsets_version = 8

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
        super().__init__(world, name, group, partitions, ledger, probes, static=static)
        self._join_version = JOIN_VERSIONS[self.draw(len(JOIN_VERSIONS))]
        if static:
            self._join_version = JOIN_VERSIONS[-1]
        self._joined: JoinGroupResponse | None = None
        """Since then it waits for its assignment."""

    def _on_coordinator(self) -> None:
        if self._works:
            self._work()
        elif self._joined is not None:
            self._sync(self._joined)
        else:
            self._join()

    def _on_error(self, error: int) -> None:
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

    def _asker(self) -> tuple[str | None, int]:
        return None, -1

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
                SyncGroupRequestAssignment(
                    member,
                    write_assignment(VERSION, self._partitions[at :: len(members)]),
                )
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
        owned = read_assignment(reply.assignment)
        self._ledger.on_assigned(
            self._group, self._generation, self._instance or self._member_id, owned
        )
        self._probes.see(seen.GROUP_REBALANCED)
        self._owned = dict.fromkeys(owned, -1)
        self._fetch()

    def _unknown(self) -> tuple[TopicPartition, ...]:
        return tuple(self._owned)

    def _on_ready(self) -> None:
        self._works = True
        self._work()

    # Working

    def _work(self) -> None:
        self.after(self.draw(BEAT_GAP_US), self._beat, self._life)
        self.after(self.draw(COMMIT_GAP_US), self._commit, self._life)

    def _beat(self, life: int) -> None:
        if life != self._life:
            return
        if self._is_restless():
            self._go_away()
            return
        request = HeartbeatRequest(self._group, self._generation, self._member_id, self._instance)
        sent = self.world.now

        def told(reply: Any) -> None:
            if reply.error_code:
                self._on_error(reply.error_code)
                return
            self.settled = True
            if self._ledger.is_coordinator(self._group, self._coordinator):
                self._beaten_us = sent
            self.after(BEAT_GAP_US, self._beat, self._life)

        self._put(ApiKey.HEARTBEAT, BEAT_VERSION, request, told)

    def _go_away(self) -> None:
        super()._go_away()
        self._joined = None

    def _leave(self) -> None:
        leaving = MemberIdentity(self._member_id, self._instance)
        request = LeaveGroupRequest(self._group, members=(leaving,))
        self._put(ApiKey.LEAVE_GROUP, LEAVE_VERSION, request, lambda _: None)
