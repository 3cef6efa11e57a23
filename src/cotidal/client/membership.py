"""One member of a consumer group, with the classic protocol and the range assignor.

``join`` takes part in a rebalance and tells which partitions are ours; ``keep`` is called between
reads and says when to join again. Whoever does not call it for SESSION_MS is no member any more.

Not there: cooperative rebalancing, static members.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final, TypeVar

from cotidal.client.backoff import Backoff
from cotidal.client.cluster import Cluster
from cotidal.client.connection import Connection
from cotidal.client.failures import Refused, TimedOut, Unreachable, known_code
from cotidal.client.groups import commit_offsets, find_coordinator, read_assignment
from cotidal.errors import RETRIABLE, ErrorCode
from cotidal.messages.records.group import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.heartbeat import HeartbeatRequest, HeartbeatResponse
from cotidal.messages.rpc.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from cotidal.messages.rpc.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from cotidal.messages.rpc.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from cotidal.values import Offset, TopicPartition
from cotidal.wire.codec import encode_record

SESSION_MS: Final = 45_000
REBALANCE_MS: Final = 60_000
BEAT_S: Final = 1.0
PROTOCOL_TYPE: Final = "consumer"
RANGE: Final = "range"
WRITTEN_VERSION: Final = 0
"""Of subscriptions and assignments: every client reads it."""

Response = TypeVar("Response")


class Membership:
    """``topic`` is what it subscribes to."""

    def __init__(self, cluster: Cluster, group: str, topic: str) -> None:
        self._cluster = cluster
        self._group = group
        self._topic = topic
        self._connection: Connection | None = None
        self._member_id = ""
        self._generation = -1
        self._beaten_at = 0.0

    def join(self) -> tuple[TopicPartition, ...]:
        """Wait for the others, and be assigned partitions."""
        backoff = Backoff(timeout_s=self._cluster.timeout_s)
        while True:
            try:
                found = self._try_to_join()
            except (Unreachable, TimedOut) as failure:
                self._forget_coordinator()
                if not backoff.wait():
                    raise failure
                continue
            if not isinstance(found, ErrorCode):
                self._beaten_at = time.monotonic()
                return found
            self._on_error(found)
            if found is not ErrorCode.MEMBER_ID_REQUIRED and not backoff.wait():
                raise Refused(f"group '{self._group}'", found)

    def keep(self) -> bool:
        """Heartbeat when one is due; False: the group rebalances, join again."""
        if time.monotonic() - self._beaten_at < BEAT_S:
            return True
        request = HeartbeatRequest(self._group, self._generation, self._member_id)
        try:
            code = self._call(ApiKey.HEARTBEAT, request, HeartbeatResponse).error_code
        except (Unreachable, TimedOut):
            self._forget_coordinator()
            return True  # the next coordinator knows us
        error = known_code(code)
        if error in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            self._forget_coordinator()
            return True
        if error is not ErrorCode.NONE:
            self._on_error(error)
            return False
        self._beaten_at = time.monotonic()
        return True

    def commit(self, positions: Mapping[TopicPartition, Offset]) -> None:
        """Refused while the group rebalances: others read it again then."""
        if positions:
            commit_offsets(
                self._cluster,
                self._group,
                positions,
                generation=self._generation,
                member_id=self._member_id,
            )

    def leave(self) -> None:
        if self._member_id:
            leaving = (MemberIdentity(self._member_id),)
            request = LeaveGroupRequest(self._group, members=leaving)
            try:
                self._call(ApiKey.LEAVE_GROUP, request, LeaveGroupResponse)
            except (Unreachable, TimedOut):
                pass  # its session runs out
        self._forget_coordinator()

    def _try_to_join(self) -> tuple[TopicPartition, ...] | ErrorCode:
        said = encode_record(
            ConsumerProtocolSubscription((self._topic,)), WRITTEN_VERSION, bytearray(2)
        )
        request = JoinGroupRequest(
            self._group,
            SESSION_MS,
            REBALANCE_MS,
            self._member_id,
            None,
            PROTOCOL_TYPE,
            (JoinGroupRequestProtocol(RANGE, bytes(said)),),
        )
        joined = self._call(ApiKey.JOIN_GROUP, request, JoinGroupResponse)
        if joined.error_code:
            if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self._member_id = joined.member_id
            return known_code(joined.error_code)
        self._member_id, self._generation = joined.member_id, joined.generation_id
        asked = SyncGroupRequest(
            self._group,
            self._generation,
            self._member_id,
            None,
            joined.protocol_type,
            joined.protocol_name,
            self._assignments(joined),
        )
        synced = self._call(ApiKey.SYNC_GROUP, asked, SyncGroupResponse)
        if synced.error_code:
            return known_code(synced.error_code)
        return read_assignment(synced.assignment)

    def _assignments(self, joined: JoinGroupResponse) -> tuple[SyncGroupRequestAssignment, ...]:
        """If we lead: the partitions of each topic in ranges over those who subscribe to it."""
        if joined.leader != joined.member_id or joined.skip_assignment:
            return ()
        subscribed = {each.member_id: subscription(each.metadata) for each in joined.members}
        given: dict[str, list[ConsumerProtocolAssignmentTopicPartition]] = {
            member: [] for member in subscribed
        }
        topics = sorted({topic for own in subscribed.values() for topic in own})
        for topic in self._cluster.metadata(topics).topics:
            readers = sorted(member for member, own in subscribed.items() if topic.name in own)
            for member, span in ranges(readers, len(topic.partitions)).items():
                one = ConsumerProtocolAssignmentTopicPartition(topic.name, tuple(span))
                given[member].append(one)
        return tuple(
            SyncGroupRequestAssignment(
                member,
                bytes(
                    encode_record(
                        ConsumerProtocolAssignment(tuple(own)), WRITTEN_VERSION, bytearray(2)
                    )
                ),
            )
            for member, own in given.items()
        )

    def _on_error(self, error: ErrorCode) -> None:
        match error:
            case ErrorCode.MEMBER_ID_REQUIRED:
                pass
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = ""
            case ErrorCode.ILLEGAL_GENERATION | ErrorCode.REBALANCE_IN_PROGRESS:
                pass
            case _ if error in RETRIABLE:
                self._forget_coordinator()
            case _:
                raise Refused(f"group '{self._group}'", error)

    def _call(self, key: ApiKey, request: object, answer: type[Response]) -> Response:
        if self._connection is None or not self._connection.is_open:
            found = find_coordinator(self._cluster, self._group)
            self._connection = self._cluster.open_connection(found)
        wait_s = REBALANCE_MS / 1000 + self._cluster.timeout_s
        return self._connection.call(key, request, answer, timeout_s=wait_s)

    def _forget_coordinator(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def subscription(metadata: bytes) -> tuple[str, ...]:
    """The topics in what a member says. Every version begins like the first."""
    at = 6
    names = []
    for _ in range(int.from_bytes(metadata[2:6], "big")):
        length = int.from_bytes(metadata[at : at + 2], "big")
        names.append(metadata[at + 2 : at + 2 + length].decode("utf-8", "replace"))
        at += 2 + length
    return tuple(names)


def ranges(members: list[str], partitions: int) -> dict[str, range]:
    """Consecutive partitions for each; the first ones get one more where it does not divide.

    >>> ranges(["a", "b"], 3)
    {'a': range(0, 2), 'b': range(2, 3)}
    """
    found: dict[str, range] = {}
    if not members:
        return found
    each, more = divmod(partitions, len(members))
    first = 0
    for position, member in enumerate(members):
        count = each + (position < more)
        found[member] = range(first, first + count)
        first += count
    return found
