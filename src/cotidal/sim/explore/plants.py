"""Bugs planted on purpose, to see that the search finds them. Never in the product.

Each plant replaces a function of a machine while its context is open, by one that lacks a single
rule. A world must be made inside the context: it remembers the steps that it has taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from cotidal.core.cluster.decide import isr as deciding
from cotidal.core.cluster.image import Image
from cotidal.core.partition import follower, isr, leader
from cotidal.core.partition.effects import PartitionEffect, Truncate
from cotidal.core.partition.progress import Progress
from cotidal.core.partition.replica import Leadership, Replica
from cotidal.core.quorum import effects as quorum_effects
from cotidal.core.quorum import replication
from cotidal.core.quorum.log_view import LogEnd, LogView
from cotidal.core.quorum.majority import committed_offset
from cotidal.core.quorum.outbox import Outbox
from cotidal.core.quorum.states import Leader, Quorum
from cotidal.core.quorum.voters import key_of
from cotidal.errors import Refusal
from cotidal.values import NO_NODE, ZERO_UUID, LeaderEpoch, Millis, NodeId, Offset


class Plant(NamedTuple):
    name: str
    world: str
    about: str
    bounds: Mapping[str, int]
    """As tight as it may be and still be found: a plant is looked for in seconds."""
    patches: tuple[tuple[object, str, Any], ...]
    """Module or class, name in it, what stands there instead."""


@contextmanager
def planted(plant: Plant) -> Iterator[None]:
    before = [(where, name, getattr(where, name)) for where, name, _ in plant.patches]
    for where, name, instead in plant.patches:
        setattr(where, name, instead)
    try:
        yield
    finally:
        for where, name, original in before:
            setattr(where, name, original)


# one partition


def _acks_when_written(replica: Replica, *, next_offset: Offset) -> Refusal | bool:
    """acks=all as if it were acks=1."""
    return replica.end_offset >= next_offset


def _joins_at_high_watermark(
    replica: Replica, leadership: Leadership, node_id: NodeId, progress: Progress
) -> bool:
    """Without the check of where the epoch began (KAFKA-7128)."""
    if leadership.proposal is not None or node_id in leadership.isr:
        return False
    return progress.end_offset >= replica.high_watermark


def _only_committed_isr(leadership: Leadership) -> tuple[NodeId, ...]:
    """Without whom the controller may have added already (KIP-497)."""
    return leadership.isr


def _cuts_to_high_watermark(original: Callable[..., tuple[PartitionEffect, ...]]) -> object:
    """A follower begins by cutting its log to its high watermark, as before KIP-101."""

    def follow(
        replica: Replica, *, leader: NodeId, epoch: LeaderEpoch
    ) -> tuple[PartitionEffect, ...]:
        before = replica.following
        effects = original(replica, leader=leader, epoch=epoch)
        if replica.following is before or replica.end_offset == replica.high_watermark:
            return effects
        replica.opened = False
        return (*effects, Truncate(replica.high_watermark))

    return follow


def _whatever_incarnation(
    original: Callable[[Image, tuple[deciding.Member, ...]], Refusal | None],
) -> object:
    """The controller does not ask in which life a member was seen to fetch (before KIP-903)."""

    def refuse_ineligible(image: Image, members: tuple[deciding.Member, ...]) -> Refusal | None:
        return original(image, tuple(deciding.Member(member.node_id) for member in members))

    return refuse_ineligible


# the quorum


def _vote_is_not_written(self: Quorum, write: quorum_effects.Write) -> None:
    if isinstance(write, quorum_effects.WriteState):
        forgotten = write.state._replace(voted_id=NO_NODE, voted_directory_id=ZERO_UUID)
        write = quorum_effects.WriteState(forgotten)
    self.outbox.write(write)


def _told_at_once(self: Outbox, effect: quorum_effects.Effect, number: int) -> None:
    self.ready.append(effect)


def _commits_what_it_found(q: Quorum, now: Millis) -> None:
    """Without waiting for a record of its own epoch (Raft, figure 8)."""
    if not isinstance(q.role, Leader):
        return
    ends = [replication.end_of_voter(q, q.role, key_of(v)) for v in q.voter_set.voters]
    reached = min(committed_offset(ends), q.outbox.durable_end)
    if reached > q.high_watermark:
        q.high_watermark = reached
        q.outbox.tell_now(quorum_effects.Committed(reached))
        replication.answer_parked(q, q.role, now)


PLANTS: Final = {
    plant.name: plant
    for plant in (
        Plant(
            "acks-early",
            "replicas",
            "acks=all is acknowledged when the leader has written it",
            {},
            ((leader, "acks_outcome", _acks_when_written),),
        ),
        Plant(
            "joins-early",
            "replicas",
            "a follower joins the ISR at the high watermark, wherever the epoch began",
            {"records": 1, "crashes": 0, "late": 1, "decisions": 3},
            ((leader, "may_join", _joins_at_high_watermark),),
        ),
        Plant(
            "forgets-proposed",
            "replicas",
            "the high watermark does not wait for a member that is proposed",
            {"records": 1, "crashes": 0, "fences": 0, "late": 1},
            (
                (isr, "maximal_isr", _only_committed_isr),
                (leader, "maximal_isr", _only_committed_isr),
            ),
        ),
        Plant(
            "cuts-to-high-watermark",
            "replicas",
            "a follower cuts its log to its high watermark before it fetches",
            {"records": 1, "crashes": 0},
            ((follower, "follow", _cuts_to_high_watermark(follower.follow)),),
        ),
        Plant(
            "whatever-incarnation",
            "replicas",
            "the controller does not ask in which life a proposed member fetched",
            {"records": 1, "fences": 0, "decisions": 4},
            ((deciding, "_refuse_ineligible", _whatever_incarnation(deciding._refuse_ineligible)),),
        ),
        Plant(
            "vote-not-written",
            "quorum",
            "a vote is not written to disk",
            {"epochs": 1},
            ((Quorum, "write", _vote_is_not_written),),
        ),
        Plant(
            "told-at-once",
            "quorum",
            "nothing that is told waits for the disk",
            {"epochs": 1},
            ((Outbox, "_tell", _told_at_once),),
        ),
        Plant(
            "votes-for-shorter-logs",
            "quorum",
            "a voter does not compare logs",
            {"crashes": 0},
            ((LogView, "reach", property(lambda log: LogEnd(LeaderEpoch(0), Offset(0)))),),
        ),
        Plant(
            "commits-what-it-found",
            "quorum",
            "a new leader commits records of earlier epochs before one of its own",
            {"crashes": 0},
            ((replication, "advance_high_watermark", _commits_what_it_found),),
        ),
    )
}
