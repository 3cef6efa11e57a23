"""How the replicas of a partition stand, and what an election now would drop. Pure.

What there is to lose is the leader's log; where nobody leads, the furthest log that anybody tells
of. A candidate keeps the prefix that its log has in common with that one, epoch by epoch: two logs
that agree on the epochs of their offsets hold the same records there (LOG_PREFIXES_MATCH). What
follows would go:

  below the high watermark   committed: acknowledged to acks=all (and acks=1), read by consumers
  above it                   acknowledged at most to acks=1

A write with acks=0 is acknowledged to nobody and stands among these unmarked. Counts are of
offsets: of a compacted topic fewer records may be left.

A count is exact where both logs were told by their own brokers. It is *at most* that many where a
candidate is silent and only its leader tells how far it had got; *at least* where somebody is
silent who may hold more than anybody tells: then nobody knows what is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from cotidal.client.metadata import Partition
from cotidal.client.replicas import NOBODY, Eligible, Follower, Held, Led, Told
from cotidal.values import EpochEntry, NodeId, Offset, TopicPartition

SILENT_FOLLOWER_MS: Final = 3_000
"""A follower asks at least every half second; one that has not for this long does not fetch."""


class Role(Enum):
    LEADER = "leader"
    IN_SYNC = "in sync"
    ELIGIBLE = "eligible"
    OUT = "out of sync"


class Bound(Enum):
    EXACT = ""
    AT_MOST = "at most "
    AT_LEAST = "at least "


class Loss(NamedTuple):
    """What would be dropped if this replica led from now on."""

    committed: int
    uncommitted: int
    bound: Bound


class ReplicaStanding(NamedTuple):
    node_id: NodeId
    role: Role
    held: Held | None
    """None: its broker did not tell."""
    known_end: Offset | None
    """Where its log ends, as far as anybody tells."""
    why: str | None
    """Why it is not in sync, in words; None where it is."""
    loss: Loss | None
    """None: it leads, or nothing is known of it."""


class PartitionStanding(NamedTuple):
    at: TopicPartition
    partition: Partition
    eligible: Eligible
    min_isr: int | None
    start_offset: Offset | None
    high_watermark: Offset | None
    end_offset: Offset | None
    replicas: tuple[ReplicaStanding, ...]
    unheard: tuple[NodeId, ...]
    """Nobody leads, and these may hold more than anybody tells."""

    @property
    def is_well(self) -> bool:
        return self.partition.has_leader and not self.partition.is_under_replicated

    @property
    def has_a_story(self) -> bool:
        """It is not well, or may soon be: a replica that counts as in sync does not answer."""
        return not self.is_well or any(replica.why for replica in self.replicas)


class Scene(NamedTuple):
    """Everything that was told, by whomever."""

    told: Mapping[NodeId, Told]
    silent: Mapping[NodeId, str]
    """Why a broker that should serve does not answer."""
    fenced: frozenset[NodeId]
    registered: frozenset[NodeId]

    def held(self, at: TopicPartition, node_id: NodeId) -> Held | None:
        told = self.told.get(node_id)
        held = None if told is None else told.held.get(at)
        return held if held is None or held.offline_reason is None else None

    def offline_reason(self, at: TopicPartition, node_id: NodeId) -> str | None:
        told = self.told.get(node_id)
        held = None if told is None else told.held.get(at)
        return None if held is None else held.offline_reason

    def fenced_for_ms(self, node_id: NodeId) -> int | None:
        """As long as the one knows it that has known it longest."""
        known = [told.fenced_for_ms.get(node_id, -1) for told in self.told.values()]
        longest = max(known, default=-1)
        return None if longest < 0 else longest

    def fenced_text(self, node_id: NodeId) -> str:
        known = self.fenced_for_ms(node_id)
        return "fenced" if known is None else f"fenced for {seconds_text(known)}"


def stand(
    at: TopicPartition,
    partition: Partition,
    scene: Scene,
    *,
    eligible: Eligible = NOBODY,
    leader_bytes: int | None = None,
) -> PartitionStanding:
    """One partition. ``leader_bytes``: the size of its leader's log, for an estimate."""
    told_by_leader = scene.told.get(partition.leader)
    led = None if told_by_leader is None else told_by_leader.led.get(at)
    logs = {node: held for node in partition.replicas if (held := scene.held(at, node))}
    reference = logs.get(partition.leader) or _furthest(tuple(logs.values()))
    unheard: tuple[NodeId, ...] = ()
    if partition.leader not in logs:
        holders = partition.isr or eligible.elr or eligible.last_known or partition.replicas
        unheard = tuple(node for node in holders if node not in logs)
    marks = [held.high_watermark for held in logs.values() if held.high_watermark is not None]
    high_watermark = max(marks, default=None)
    if reference is not None and high_watermark is not None:
        high_watermark = min(high_watermark, reference.end_offset)
    case = _Case(at, partition, scene, led, reference, high_watermark, bool(unheard), leader_bytes)
    return PartitionStanding(
        at,
        partition,
        eligible,
        None if led is None else led.min_isr,
        None if reference is None else reference.start_offset,
        high_watermark,
        None if reference is None else reference.end_offset,
        tuple(_replica(case, node, eligible) for node in partition.replicas),
        unheard,
    )


def common_end(one: Held, other: Held) -> Offset:
    """Where two logs part: below it they hold the same records.

    Without epochs nobody can tell whether they part before the shorter one ends.
    """
    end = min(one.end_offset, other.end_offset)
    if one.epochs is None or other.epochs is None:
        return end
    at = max(one.start_offset, other.start_offset)
    while at < end:
        mine, until_mine = _epoch_at(one.epochs, at)
        theirs, until_theirs = _epoch_at(other.epochs, at)
        if mine != theirs:
            return at
        at = min(end, until_mine, until_theirs)
    return end


def epoch_ends(held: Held) -> tuple[tuple[int, Offset], ...]:
    """Each leader epoch of a log, and the offset at which it ended there."""
    entries = held.epochs
    if not entries:
        return ()
    ends = [*(entry.start_offset for entry in entries[1:]), held.end_offset]
    return tuple((entry.epoch, end) for entry, end in zip(entries, ends, strict=True))


def loss_text(loss: Loss) -> str:
    """As a clause: ``at most 50 acknowledged with acks=all, 3 with acks=1 or not at all``."""
    if not loss.committed and not loss.uncommitted:
        return "nothing" if loss.bound is not Bound.AT_LEAST else "nothing that is known here"
    parts = []
    if loss.committed:
        parts.append(f"{loss.committed:,} acknowledged with acks=all")
    if loss.uncommitted:
        parts.append(f"{loss.uncommitted:,} with acks=1 or not at all")
    return loss.bound.value + ", ".join(parts)


class _Case(NamedTuple):
    at: TopicPartition
    partition: Partition
    scene: Scene
    led: Led | None
    reference: Held | None
    high_watermark: Offset | None
    unheard: bool
    leader_bytes: int | None

    def follower(self, node_id: NodeId) -> Follower | None:
        return None if self.led is None else self.led.followers.get(node_id)


def _replica(case: _Case, node_id: NodeId, eligible: Eligible) -> ReplicaStanding:
    partition = case.partition
    role = Role.OUT
    if node_id == partition.leader:
        role = Role.LEADER
    elif node_id in partition.isr:
        role = Role.IN_SYNC
    elif node_id in eligible.elr:
        role = Role.ELIGIBLE
    held = case.scene.held(case.at, node_id)
    follower = case.follower(node_id)
    known_end = held.end_offset if held is not None else follower and follower.end_offset
    why = None
    if role in (Role.OUT, Role.ELIGIBLE) or (held is None and node_id not in case.scene.told):
        why = _why(case, node_id, known_end)
    loss = None if role is Role.LEADER else _loss(case, held, known_end)
    return ReplicaStanding(node_id, role, held, known_end, why, loss)


def _loss(case: _Case, held: Held | None, known_end: Offset | None) -> Loss | None:
    reference, mark = case.reference, case.high_watermark
    if reference is None or mark is None or known_end is None:
        return None
    bound = Bound.AT_LEAST if case.unheard else Bound.EXACT
    if held is not None:
        kept = common_end(held, reference)
    else:
        kept = min(known_end, reference.end_offset)
        bound = Bound.AT_MOST
    committed = max(0, mark - max(kept, reference.start_offset))
    uncommitted = reference.end_offset - max(kept, mark, reference.start_offset)
    return Loss(committed, max(0, uncommitted), bound)


def _why(case: _Case, node_id: NodeId, known_end: Offset | None) -> str | None:
    """The first thing that keeps it out; what is known of its progress after it."""
    scene = case.scene
    reached = _reached(case, known_end)
    reason = scene.offline_reason(case.at, node_id)
    if reason is not None:
        return f"log offline: {reason}"
    if node_id not in scene.registered:
        return f"broker {node_id} is not registered"
    if node_id in scene.fenced:
        return scene.fenced_text(node_id) + reached
    if node_id in scene.silent:
        return f"broker {node_id} does not answer" + reached
    if node_id in case.partition.offline:
        return "log offline"
    if not case.partition.has_leader:
        return "there is no leader to follow" + reached
    follower = case.follower(node_id)
    if follower is None:
        return reached.removeprefix(", ") or None
    if follower.fetched_ms_ago is None:
        return "has not fetched from this leader yet" + reached
    if follower.fetched_ms_ago > SILENT_FOLLOWER_MS:
        return f"fetched last {seconds_text(follower.fetched_ms_ago)} ago" + reached
    return _progress(case, follower, known_end)


def _reached(case: _Case, known_end: Offset | None) -> str:
    if known_end is None or case.reference is None or known_end >= case.reference.end_offset:
        return ""
    return f", holds up to {known_end:,} of {case.reference.end_offset:,}"


def _progress(case: _Case, follower: Follower, known_end: Offset | None) -> str:
    """It fetches, and is not in sync yet."""
    reference = case.reference
    if reference is None or known_end is None or known_end >= reference.end_offset:
        return "has caught up, and is about to be taken in"
    words = f"caught up to {known_end:,} of {reference.end_offset:,}"
    speed = follower.bytes_per_second
    if speed:
        words += f", {speed_text(speed)}"
        whole = reference.end_offset - reference.start_offset
        if case.leader_bytes:
            missing = case.leader_bytes * (reference.end_offset - known_end) // whole
            words += f", about {missing // speed + 1:,} s left"
    if follower.throttled:
        words += ", throttled"
    return words


def seconds_text(milliseconds: int) -> str:
    """
    >>> seconds_text(12_430), seconds_text(61_000), seconds_text(7_260_000)
    ('12.4 s', '1 min 1 s', '2 h 1 min')
    """
    seconds = milliseconds // 1_000
    if seconds < 60:
        return f"{milliseconds / 1_000:.1f} s"
    if seconds < 3_600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3_600} h {seconds % 3_600 // 60} min"


def speed_text(bytes_per_second: int) -> str:
    """
    >>> speed_text(900), speed_text(41_400), speed_text(12_300_000)
    ('900 B/s', '41 KB/s', '12.3 MB/s')
    """
    if bytes_per_second < 1_000:
        return f"{bytes_per_second} B/s"
    if bytes_per_second < 1_000_000:
        return f"{bytes_per_second // 1_000} KB/s"
    return f"{bytes_per_second / 1_000_000:.1f} MB/s"


def _furthest(logs: Sequence[Held]) -> Held | None:
    """The log that an election by last epoch and end would prefer."""
    return max(logs, key=_reach, default=None)


def _reach(held: Held) -> tuple[int, int]:
    return (held.epochs[-1].epoch if held.epochs else -1, held.end_offset)


def _epoch_at(entries: tuple[EpochEntry, ...], offset: Offset) -> tuple[int, Offset]:
    """The epoch of an offset, and where the next epoch begins."""
    epoch, until = -1, Offset(1 << 62)
    for entry in entries:
        if entry.start_offset > offset:
            return epoch, entry.start_offset
        epoch = entry.epoch
    return epoch, until
