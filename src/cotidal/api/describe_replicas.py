"""DescribeReplicas (key 30000), version 0. Our own (docs/adr/0004): no API of Kafka's tells this.

What the replicas on one broker hold, by leader epoch; of those that it leads, when each follower
fetched last and how fast it catches up; how long it has known which brokers to be fenced. Times
count back from the answer, so that no two clocks are compared. -1: not known, or never.
"""

from __future__ import annotations

from collections.abc import Callable

from cotidal.core.partition.progress import NEVER, Progress
from cotidal.core.partition.replica import Replica
from cotidal.messages.rpc.describe_replicas import (
    EpochStart,
    FollowerProgress,
    HostedPartition,
)
from cotidal.values import NO_NODE, Millis, NodeId

Pace = Callable[[NodeId], tuple[int, bool]]
"""Of a follower: bytes a second, and whether it is throttled."""


def described(replica: Replica, *, node_id: NodeId, now: Millis, pace: Pace) -> HostedPartition:
    leadership = replica.leadership
    followers = () if leadership is None else tuple(leadership.followers.items())
    return HostedPartition(
        partition_index=replica.partition.partition,
        leader_id=_leader(replica, node_id),
        leader_epoch=replica.leader_epoch,
        offline_reason=replica.offline_reason,
        start_offset=replica.start_offset,
        high_watermark=replica.high_watermark,
        end_offset=replica.end_offset,
        epochs=tuple(EpochStart(*entry) for entry in replica.epochs.entries),
        min_isr=-1 if leadership is None else leadership.min_isr,
        followers=tuple(
            _follower(follower, progress, now, *pace(follower)) for follower, progress in followers
        ),
    )


def _leader(replica: Replica, node_id: NodeId) -> NodeId:
    if replica.leadership is not None:
        return node_id
    return NO_NODE if replica.following is None else replica.following.leader


def _follower(
    node_id: NodeId, progress: Progress, now: Millis, bytes_per_second: int, throttled: bool
) -> FollowerProgress:
    return FollowerProgress(
        broker_id=node_id,
        end_offset=progress.end_offset,
        fetched_ms_ago=_ago(progress.last_fetch, now),
        caught_up_ms_ago=_ago(progress.last_caught_up, now),
        bytes_per_second=bytes_per_second,
        throttled=throttled,
    )


def _ago(moment: Millis, now: Millis) -> int:
    return -1 if moment == NEVER else now - moment
