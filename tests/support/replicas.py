"""Replicas of one partition in the state that a test wants, and fetches between two of them."""

from __future__ import annotations

from collections.abc import Mapping

from cotidal.core.partition.effects import PartitionEffect
from cotidal.core.partition.follower import follow
from cotidal.core.partition.leader import (
    FollowerFetched,
    IsrAnswered,
    become_leader,
    on_appended,
    on_follower_fetched,
)
from cotidal.core.partition.replica import Appointment, Leadership, Replica, on_log_opened
from cotidal.errors import ErrorCode
from cotidal.values import (
    ZERO_UUID,
    BrokerEpoch,
    EpochEntry,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
    PartitionEpoch,
    TopicPartition,
)

LAG_MS = 10_000
ACTIVE = {NodeId(node): BrokerEpoch(100 + node) for node in (1, 2, 3)}


def epochs_of(*entries: tuple[int, int]) -> tuple[EpochEntry, ...]:
    return tuple(EpochEntry(LeaderEpoch(epoch), Offset(start)) for epoch, start in entries)


def nodes(*ids: int) -> tuple[NodeId, ...]:
    return tuple(NodeId(node) for node in ids)


def opened(
    *, start: int = 0, end: int = 0, hw: int = 0, epochs: tuple[tuple[int, int], ...] = ()
) -> Replica:
    replica = Replica(TopicPartition("orders", 0), ZERO_UUID)
    on_log_opened(
        replica,
        start_offset=Offset(start),
        end_offset=Offset(end),
        high_watermark=Offset(hw),
        epochs=epochs_of(*epochs),
        producers=None,
        headers_after=(),
    )
    return replica


def appointment(
    *,
    epoch: int = 5,
    partition_epoch: int = 9,
    replicas: tuple[int, ...] = (1, 2, 3),
    isr: tuple[int, ...] = (1, 2, 3),
    min_isr: int = 1,
    active: Mapping[NodeId, BrokerEpoch] = ACTIVE,
) -> Appointment:
    """Broker 1 leads."""
    return Appointment(
        node_id=NodeId(1),
        epoch=LeaderEpoch(epoch),
        partition_epoch=PartitionEpoch(partition_epoch),
        replicas=nodes(*replicas),
        isr=nodes(*isr),
        min_isr=min_isr,
        lag_max_ms=LAG_MS,
        active=active,
    )


def leading(
    *,
    start: int = 0,
    end: int = 10,
    hw: int = 0,
    epochs: tuple[tuple[int, int], ...] = ((1, 0),),
    told: Appointment | None = None,
    now: int = 0,
) -> Replica:
    replica = opened(start=start, end=end, hw=hw, epochs=epochs)
    become_leader(replica, told or appointment(), Millis(now))
    return replica


def leadership_of(replica: Replica) -> Leadership:
    assert replica.leadership is not None
    return replica.leadership


def following(
    *,
    start: int = 0,
    end: int = 10,
    hw: int = 0,
    epochs: tuple[tuple[int, int], ...] = ((1, 0),),
    leader: int = 1,
    epoch: int = 5,
) -> Replica:
    replica = opened(start=start, end=end, hw=hw, epochs=epochs)
    follow(replica, leader=NodeId(leader), epoch=LeaderEpoch(epoch))
    return replica


def write(replica: Replica, records: int, *, now: int = 0) -> tuple[PartitionEffect, ...]:
    """Records that the leader has admitted and its disk has written."""
    replica.next_offset = Offset(replica.next_offset + records)
    return on_appended(replica, replica.next_offset, Millis(now))


def fetched(
    replica: Replica, node: int, offset: int, *, now: int = 0, broker_epoch: int | None = None
) -> tuple[PartitionEffect, ...]:
    event = FollowerFetched(
        NodeId(node),
        Offset(offset),
        Offset(0),
        ACTIVE[NodeId(node)] if broker_epoch is None else BrokerEpoch(broker_epoch),
    )
    return on_follower_fetched(replica, event, Millis(now))


def isr_answer(
    replica: Replica,
    error: ErrorCode = ErrorCode.NONE,
    *,
    epoch: int | None = None,
    partition_epoch: int | None = None,
) -> IsrAnswered:
    """The controller's answer to what is proposed now; granted unless an error is given."""
    leadership = leadership_of(replica)
    asked = leadership.proposal
    assert asked is not None
    if error is not ErrorCode.NONE:
        return IsrAnswered(asked, error)
    return IsrAnswered(
        asked,
        error,
        leader_epoch=leadership.epoch if epoch is None else LeaderEpoch(epoch),
        partition_epoch=PartitionEpoch(
            leadership.partition_epoch + 1 if partition_epoch is None else partition_epoch
        ),
        isr=tuple(member.node_id for member in asked.isr),
    )
