"""Throttled replication: moving partitions must not take the network from its users. Pure. KIP-73.

A replica is throttled where its topic's ``leader.`` or ``follower.replication.throttled.replicas``
names it (``partition:broker``, or ``*`` for all). All throttled replicas of a broker share its
``...replication.throttled.rate``, one for each side:

  as leader     records for followers of a throttled replica count; while there are too many, a
                follower for which the high watermark does not wait gets none of this partition.
                Its other partitions are served as ever, and its progress is heard
  as follower   fetched records count; while there are too many, a throttled replica that is behind
                its leader's high watermark is left out of the fetch

So a throttle delays no acknowledgement. Nor does it stop anything for good: what was counted is
forgotten after replication.quota.window.num windows.

Kafka holds back, on either side, whoever is not in the ISR. Here a follower that was caught up a
moment ago, or is about to join, is not held back: the high watermark waits for it already. Nor is
one that has not heard from its leader yet: it may be in sync and not know it.
Owns of the state: leader_throttle, follower_throttle, moves_per_second; of Hosted:
throttled_leader, throttled_follower, paces.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cotidal.core.partition.isr import must_wait_for
from cotidal.node.effects import PaceMoves
from cotidal.node.hosting import Hosted
from cotidal.node.rate import Rate
from cotidal.node.state import NodeState
from cotidal.values import NodeId

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
MOVE_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
"""Of logs between directories of this broker (KIP-113): the disk keeps to it."""
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
EVERY_REPLICA: Final = "*"


def configure(state: NodeState) -> None:
    """The rates may have changed. What was counted so far stays counted."""
    state.leader_throttle.bound = state.number(LEADER_RATE)
    state.follower_throttle.bound = state.number(FOLLOWER_RATE)
    moves = state.number(MOVE_RATE)
    if moves != state.moves_per_second:
        state.moves_per_second = moves
        state.out.append(PaceMoves(moves))


def mark(state: NodeState, hosted: Hosted, values: Mapping[str, str]) -> None:
    """Which sides of this replica its topic's settings throttle."""
    hosted.throttled_leader = _is_named(state, hosted, values.get(LEADER_REPLICAS, ""))
    hosted.throttled_follower = _is_named(state, hosted, values.get(FOLLOWER_REPLICAS, ""))


def holds_back(state: NodeState, hosted: Hosted, follower: NodeId) -> bool:
    """As leader: shall this follower get nothing for now?"""
    leadership = hosted.replica.leadership
    if not hosted.throttled_leader or leadership is None:
        return False
    progress = leadership.followers.get(follower)
    if progress is None or not state.leader_throttle.is_exceeded(state.now):
        return False
    return not must_wait_for(hosted.replica, leadership, follower, progress, state.now)


def postpones(state: NodeState, hosted: Hosted) -> bool:
    """As follower: shall this partition not be asked for now?"""
    following = hosted.replica.following
    return (
        hosted.throttled_follower
        and following is not None
        and hosted.replica.end_offset < following.leader_high_watermark
        and state.follower_throttle.is_exceeded(state.now)
    )


def on_sent(state: NodeState, hosted: Hosted, follower: NodeId, size_bytes: int) -> None:
    """A follower gets records. How fast one catches up is measured while it is not in sync."""
    if hosted.throttled_leader:
        state.leader_throttle.rate.record(size_bytes, state.now)
    leadership = hosted.replica.leadership
    if leadership is not None and follower not in leadership.isr:
        pace = hosted.paces.get(follower)
        if pace is None:
            pace = hosted.paces[follower] = Rate()
        pace.record(size_bytes, state.now)
    elif hosted.paces:
        hosted.paces.pop(follower, None)


def on_fetched(state: NodeState, hosted: Hosted, size_bytes: int) -> None:
    """Records have come from a leader."""
    if hosted.throttled_follower:
        state.follower_throttle.rate.record(size_bytes, state.now)


def _is_named(state: NodeState, hosted: Hosted, text: str) -> bool:
    pair = f"{hosted.replica.partition.partition}:{state.config.node_id}"
    return bool(text) and (text == EVERY_REPLICA or pair in text.split(","))
