"""What must hold in every state of the quorum's world. Pure. Judged of states, never of moves."""

from __future__ import annotations

from typing import NamedTuple

from cotidal.core.quorum.majority import majority_of
from cotidal.core.quorum.states import Leader
from cotidal.invariants import (
    MAJORITY_HOLDS_COMMITTED,
    METADATA_COMMITTED_KEPT,
    ONE_QUORUM_LEADER,
    VOTE_ONCE_PER_EPOCH,
)
from cotidal.sim.explore.held import Held, compare_logs, told
from cotidal.sim.explore.voter import Heard, Voter, name_of
from cotidal.sim.violation import Violation
from cotidal.values import LeaderEpoch, NodeId


class Truth(NamedTuple):
    """What no voter knows: all that was ever committed, who ever led, who ever voted for whom."""

    committed: tuple[Held, ...] = ()
    leaders: tuple[tuple[LeaderEpoch, NodeId], ...] = ()
    votes: tuple[tuple[NodeId, LeaderEpoch, NodeId], ...] = ()

    def after(self, heard: Heard) -> Truth:
        shared = min(len(self.committed), len(heard.committed))
        if self.committed[:shared] != heard.committed[:shared]:
            raise Violation(
                METADATA_COMMITTED_KEPT,
                f"committed is {told(heard.committed)}; {told(self.committed)} was",
            )
        leaders = sorted({*self.leaders, *heard.leads})
        if len({epoch for epoch, _ in leaders}) < len(leaders):
            named = ", ".join(f"{name_of(leader)} in epoch {epoch}" for epoch, leader in leaders)
            raise Violation(ONE_QUORUM_LEADER, f"leaders: {named}")
        votes = sorted({*self.votes, *heard.votes})
        if len({(voter, epoch) for voter, epoch, _ in votes}) < len(votes):
            named = ", ".join(
                f"{name_of(voter)} for {name_of(candidate)} in epoch {epoch}"
                for voter, epoch, candidate in votes
            )
            raise Violation(VOTE_ONCE_PER_EPOCH, f"votes: {named}")
        longest = max(self.committed, heard.committed, key=len)
        return Truth(longest, tuple(leaders), tuple(votes))


def judge(voters: tuple[Voter, ...], truth: Truth) -> None:
    """Raise the first Violation there is."""
    held = [tuple(voter.batches) for voter in voters]
    compare_logs([f"voter {name_of(voter.node_id)}" for voter in voters], held)
    committed = truth.committed
    holders = sum(records[: len(committed)] == committed for records in held)
    if holders < majority_of(len(voters)):
        raise Violation(
            MAJORITY_HOLDS_COMMITTED,
            f"{told(committed)} is committed; on disk are {'; '.join(map(told, held))}",
        )
    for voter, records in zip(voters, held, strict=True):
        quorum = voter.quorum
        known = records[: quorum.high_watermark]
        is_leader = isinstance(quorum.role, Leader)
        is_late = bool(committed) and is_leader and quorum.epoch >= committed[-1].epoch
        if known != committed[: len(known)] or len(known) < quorum.high_watermark:
            wrong = f"takes {told(known)} for committed"
        elif is_late and records[: len(committed)] != committed:
            wrong = f"leads epoch {quorum.epoch} and holds {told(records)}"
        else:
            continue
        raise Violation(
            METADATA_COMMITTED_KEPT,
            f"voter {name_of(voter.node_id)} {wrong}; committed is {told(committed)}",
        )
