"""Who is in sync, who may join, who must go. Pure. KIP-497, 841, 903, 966.

The controller may have accepted a proposal whose answer has not reached us. So a replica that we
have *proposed to add* may be elected already and counts at once (the maximal ISR); one that we have
proposed to *remove* may still be elected and counts until the controller has answered.
"""

from __future__ import annotations

from cotidal.core.partition.effects import IsrMember, ProposeIsr
from cotidal.core.partition.progress import Progress
from cotidal.core.partition.replica import Leadership, Replica
from cotidal.values import NO_BROKER_EPOCH, BrokerEpoch, Millis, NodeId


def maximal_isr(leadership: Leadership) -> tuple[NodeId, ...]:
    """Everyone who could be elected as far as the ISR goes."""
    proposed = leadership.proposed
    if proposed is None or len(proposed) < len(leadership.isr):
        return leadership.isr
    return proposed


def must_wait_for(
    replica: Replica, leadership: Leadership, node_id: NodeId, progress: Progress, now: Millis
) -> bool:
    """Does the high watermark wait for this follower?

    The maximal ISR, and besides it a follower that is caught up and may join: it is about to, and
    the high watermark must not run away from it. One that is shutting down may not (KAFKA-15021).
    """
    if node_id in maximal_isr(leadership):
        return True
    return _is_eligible(leadership, node_id, progress) and progress.is_caught_up(
        leader_end=replica.end_offset, now=now, lag_max_ms=leadership.lag_max_ms
    )


def may_join(replica: Replica, leadership: Leadership, node_id: NodeId, progress: Progress) -> bool:
    """Evaluated on a follower's own fetch. How long it lagged is not asked.

    It must reach the high watermark, *and* what this leader found when it took over: the high
    watermark may still be behind what was committed under the leader before (KAFKA-7128).

    And its log must begin where ours does, or later. What it has below was never compared with
    ours, of which that part is deleted: were it elected before it has heard so, it would show
    records that were never committed. (Kafka does not ask this.)
    """
    if leadership.proposal is not None or node_id in leadership.isr:
        return False
    if not _is_eligible(leadership, node_id, progress):
        return False
    if progress.start_offset < replica.start_offset:
        return False
    reached = progress.end_offset
    return reached >= replica.high_watermark and reached >= leadership.epoch_start


def out_of_sync(replica: Replica, leadership: Leadership, now: Millis) -> tuple[NodeId, ...]:
    """Members that have not been caught up for longer than replica.lag.time.max.ms."""
    return tuple(
        node_id
        for node_id in leadership.isr
        if node_id in leadership.followers
        and not leadership.followers[node_id].is_caught_up(
            leader_end=replica.end_offset, now=now, lag_max_ms=leadership.lag_max_ms
        )
    )


def propose(leadership: Leadership, isr: tuple[NodeId, ...]) -> ProposeIsr:
    """Remember what is asked for, and say it with the incarnations that we saw fetching."""
    members = tuple(IsrMember(node_id, _incarnation(leadership, node_id)) for node_id in isr)
    leadership.proposal = ProposeIsr(members, leadership.epoch, leadership.partition_epoch)
    return leadership.proposal


def _is_eligible(leadership: Leadership, node_id: NodeId, progress: Progress) -> bool:
    """Unfenced, not shutting down, and what we know of it is of the incarnation that lives."""
    known = leadership.active.get(node_id)
    return known is not None and progress.broker_epoch in (known, NO_BROKER_EPOCH)


def _incarnation(leadership: Leadership, node_id: NodeId) -> BrokerEpoch:
    if node_id == leadership.node_id:
        return leadership.active.get(node_id, NO_BROKER_EPOCH)
    return leadership.followers[node_id].broker_epoch
