"""How a node is: what it hosts, who lags, what is parked, what it knows as a controller. Pure.

Read when somebody asks (a scrape, the health sample of each second), never kept up to date on the
way: the cost is the asker's. One pass over the hosted partitions, one over the image where this
node is the active controller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cotidal.core.partition.progress import NEVER, Progress
from cotidal.core.partition.replica import Leadership, Replica
from cotidal.limits import (
    CONNECTION_PIPELINE_MAX,
    COORDINATOR_HELD_MAX,
    EVENTS_QUEUED_MAX,
    FETCH_SESSIONS_MAX,
    QUOTA_METERS_MAX,
)
from cotidal.node.happenings import FollowerHealth, PartitionHealth
from cotidal.node.rate import Throttle
from cotidal.node.state import NodeState
from cotidal.values import LeaderEpoch, Millis, NodeId, Offset, TopicPartition


class ReplicaVitals(NamedTuple):
    """One hosted replica, whatever its role."""

    partition: TopicPartition
    start_offset: Offset
    end_offset: Offset
    high_watermark: Offset


class QuorumVitals(NamedTuple):
    leader: NodeId
    """-1: not known."""
    epoch: LeaderEpoch
    end_offset: Offset
    high_watermark: Offset
    applied: Offset
    """Everything below is in the committed image."""
    lags: tuple[tuple[NodeId, int], ...]
    """Records that each other replica lacks: known to the leader only."""


class ControllerVitals(NamedTuple):
    """Known to every node, told by the active controller, so that a sum over nodes is right."""

    topics: int
    partitions: int
    offline_partitions: int
    not_preferred: int
    """Led by another replica than the first."""
    brokers_active: int
    brokers_fenced: int


NOT_ACTIVE = ControllerVitals(0, 0, 0, 0, 0, 0)


class Parked(NamedTuple):
    """Requests that wait: Kafka's purgatories."""

    produces: int
    fetches: int
    replica_fetches: int
    deletions: int


class ThrottleVitals(NamedTuple):
    """One side of throttled replication, in bytes a second."""

    role: str
    rate: int
    bound: int


class Vitals(NamedTuple):
    """Everything together, for a scrape."""

    leads: int
    under_replicated: int
    under_min_isr: int
    at_min_isr: int
    lag_records_max: int
    """Of all followers of all partitions that are led here."""
    lag_ms_max: int
    """The same; one that was never caught up counts for nothing here."""
    replicas: tuple[ReplicaVitals, ...]
    """As many as were asked for, those that are not well first."""
    led: tuple[PartitionHealth, ...]
    """Those of them that are led here."""
    unlisted: int
    """Replicas that were not among them."""
    throttles: tuple[ThrottleVitals, ...]
    parked: Parked
    fetch_sessions: int
    muted_connections: int
    fills: Mapping[str, float]
    """How full the bounds of a node are, by their names in limits."""
    quorum: QuorumVitals
    controller: ControllerVitals
    is_active_controller: bool
    events_queued: int


def read(state: NodeState, now: Millis, *, partitions_max: int) -> Vitals:
    """``partitions_max``: how many are told one by one; totals count all."""
    under_replicated = under_min_isr = at_min_isr = leads = 0
    records_max = ms_max = 0
    for replica, leadership in led(state):
        leads += 1
        under_replicated += is_under_replicated(leadership)
        under_min_isr += is_under_min_isr(leadership)
        at_min_isr += len(leadership.isr) == leadership.min_isr
        for follower in leadership.followers.values():
            records_max = max(records_max, lag_records(replica, follower))
            ms_max = max(ms_max, lag_ms(replica, follower, now))
    shown = [hosted.replica for hosted in state.hosted.values()]
    if len(shown) > partitions_max:
        shown.sort(key=_is_well)
        del shown[partitions_max:]
    return Vitals(
        leads=leads,
        under_replicated=under_replicated,
        under_min_isr=under_min_isr,
        at_min_isr=at_min_isr,
        lag_records_max=records_max,
        lag_ms_max=ms_max,
        replicas=tuple(map(_replica, shown)),
        led=tuple(
            partition_health(replica, replica.leadership, now)
            for replica in shown
            if replica.leadership is not None
        ),
        unlisted=len(state.hosted) - len(shown),
        throttles=(
            _throttle("leader", state.leader_throttle, now),
            _throttle("follower", state.follower_throttle, now),
        ),
        parked=parked(state),
        fetch_sessions=len(state.sessions),
        muted_connections=sum(1 for each in state.connections.values() if each.throttle_ms),
        fills=fills(state),
        quorum=quorum(state),
        controller=controller(state),
        is_active_controller=is_active_controller(state),
        events_queued=events_queued(state),
    )


def _throttle(role: str, throttle: Throttle, now: Millis) -> ThrottleVitals:
    return ThrottleVitals(role, throttle.rate.per_second(now), throttle.bound)


def _is_well(replica: Replica) -> bool:
    leadership = replica.leadership
    if leadership is not None and is_under_replicated(leadership):
        return False
    return replica.offline_reason is None


def led(state: NodeState) -> Iterator[tuple[Replica, Leadership]]:
    for hosted in state.hosted.values():
        leadership = hosted.replica.leadership
        if leadership is not None:
            yield hosted.replica, leadership


def is_under_replicated(leadership: Leadership) -> bool:
    return len(leadership.isr) < len(leadership.followers) + 1


def is_under_min_isr(leadership: Leadership) -> bool:
    return len(leadership.isr) < leadership.min_isr


def partition_health(replica: Replica, leadership: Leadership, now: Millis) -> PartitionHealth:
    return PartitionHealth(
        replica.partition.topic,
        replica.partition.partition,
        leadership.epoch,
        replica.start_offset,
        replica.high_watermark,
        replica.end_offset,
        is_under_replicated(leadership),
        is_under_min_isr(leadership),
        leadership.isr,
        tuple(
            FollowerHealth(
                node_id,
                node_id in leadership.isr,
                lag_records(replica, progress),
                lag_ms(replica, progress, now),
            )
            for node_id, progress in leadership.followers.items()
        ),
    )


def lag_records(replica: Replica, follower: Progress) -> int:
    return max(0, replica.end_offset - max(follower.end_offset, replica.start_offset))


def lag_ms(replica: Replica, follower: Progress, now: Millis) -> int:
    """Since when it has not been caught up; -1 if it never was."""
    if follower.end_offset >= replica.end_offset:
        return 0
    if follower.last_caught_up == NEVER:
        return -1
    return max(0, now - follower.last_caught_up)


def _replica(replica: Replica) -> ReplicaVitals:
    return ReplicaVitals(
        replica.partition, replica.start_offset, replica.end_offset, replica.high_watermark
    )


def offline_replicas(state: NodeState) -> int:
    return sum(hosted.replica.offline_reason is not None for hosted in state.hosted.values())


def parked(state: NodeState) -> Parked:
    # One that was woken and parked again has two deadlines.
    waiting = {pending: None for _, _, pending in state.deadlines if not pending.answered}
    of_replicas = sum(pending.replica is not None for pending in waiting)
    return Parked(
        len(state.parked_produces),
        len(waiting) - of_replicas,
        of_replicas,
        sum(len(hosted.deletions) for hosted in state.hosted.values()),
    )


def events_queued(state: NodeState) -> int:
    return len(state.chronicle.queue) + len(state.chronicle.in_flight)


def fills(state: NodeState) -> dict[str, float]:
    """Of those that each connection or coordinator has for itself: the fullest."""
    pipelines = (len(each.slots) + len(each.queued) for each in state.connections.values())
    held = map(len, state.coordinators.held.values())
    return {
        "CONNECTION_PIPELINE_MAX": max(pipelines, default=0) / CONNECTION_PIPELINE_MAX,
        "COORDINATOR_HELD_MAX": max(held, default=0) / COORDINATOR_HELD_MAX,
        "EVENTS_QUEUED_MAX": events_queued(state) / EVENTS_QUEUED_MAX,
        "FETCH_SESSIONS_MAX": len(state.sessions) / FETCH_SESSIONS_MAX,
        "QUOTA_METERS_MAX": len(state.quotas.meters) / QUOTA_METERS_MAX,
    }


def quorum(state: NodeState) -> QuorumVitals:
    machine = state.quorum.machine
    told = machine.view(state.now)
    end = machine.state.log.end_offset
    return QuorumVitals(
        told.hint.leader_id,
        told.hint.epoch,
        end,
        told.high_watermark,
        state.quorum.applied,
        tuple(
            (replica.key.node_id, max(0, end - replica.end_offset))
            for replica in (*told.voters, *told.observers)
            if replica.key.node_id != state.config.node_id
        ),
    )


def is_active_controller(state: NodeState) -> bool:
    return state.controller.controller is not None


def controller(state: NodeState) -> ControllerVitals:
    if not is_active_controller(state):
        return NOT_ACTIVE
    image = state.controller.committed
    partitions = offline = not_preferred = 0
    for topic in image.topics.values():
        for partition in topic.partitions.values():
            partitions += 1
            offline += partition.leader < 0
            not_preferred += partition.leader != partition.replicas[0]
    fenced = sum(broker.fenced for broker in image.brokers.values())
    return ControllerVitals(
        len(image.topics),
        partitions,
        offline,
        not_preferred,
        len(image.brokers) - fenced,
        fenced,
    )
