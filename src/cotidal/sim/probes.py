"""Rare situations that must be seen: what a campaign has met, and what it never did.

A test that never gets into a corner proves nothing about it. Here is every corner that we know of,
with the plan whose runs must get into it: in at least one run of a hundred. Whoever meets one says
so (``Probes.see``); a campaign counts the runs that saw each, and names those that too few saw.

Faults and refusals are counted too, under names that are made where they happen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

RUNS_PER_SIGHT: Final = 100
"""Of so many runs of its plan, one at least gets into a corner."""


class Situation(NamedTuple):
    name: str
    plan: str
    """Whose runs must see it."""


# What producers and consumers meet

UNANSWERED: Final = "a produce without an answer"
RETRIED: Final = "an idempotent batch acknowledged after a retry"
TOO_FEW: Final = "a produce refused with NOT_ENOUGH_REPLICAS"
TIMED_OUT: Final = "a produce refused with REQUEST_TIMED_OUT"
BEGUN_ANEW: Final = "a producer begins anew under another id"
HIGH_WATERMARK_BACK: Final = "a consumer is told of a lower high watermark than before"
FOLLOWER_READ: Final = "a consumer reads from a follower"
SESSION_REFUSED: Final = "a fetch session is refused"
STALE_CLIENT: Final = "a fetch refused with UNKNOWN_LEADER_EPOCH"
DELETED_BELOW: Final = "a fetch refused with OFFSET_OUT_OF_RANGE"
RECREATED: Final = "a topic is written to and read under the name of a deleted one"

# What members of groups meet

GROUP_REBALANCED: Final = "a member of a group gets an assignment"
MEMBER_LEFT: Final = "a member leaves its group"
MEMBER_FELL_SILENT: Final = "a member of a group falls silent"
MOVED_COORDINATOR: Final = "a member refused with NOT_COORDINATOR"
UNKNOWN_MEMBER: Final = "a member refused with UNKNOWN_MEMBER_ID"
TAKEN_LATE: Final = "a member takes what it was told of, and has been told of less since"
UNCOMMITTED: Final = "a member refused with COORDINATOR_NOT_AVAILABLE"

# What leaders, followers and the controller meet

ISR_OF_ONE: Final = "an ISR shrinks to one"
LEADERLESS: Final = "a partition has no leader"
ELR_ELECTED: Final = "a leader is elected from the ELR"
LAST_LEADER_ELECTED: Final = "the last known leader is elected"
UNCLEAN_ELECTED: Final = "an unclean leader is elected"
PREFERRED_REGAINED: Final = "a preferred leader leads again"
REASSIGNED: Final = "a reassignment is completed"
CANCELLED: Final = "a reassignment is cancelled"
TRUNCATED: Final = "a diverging follower cuts its log"
TRUNCATED_THRICE: Final = "a follower cuts its log three times before it fits"
ZOMBIE_WRITES: Final = "a leader writes that is no longer the leader"
ZOMBIE_FENCED: Final = "a proposal of an old leader is refused with FENCED_LEADER_EPOCH"
STALE_PROPOSAL: Final = "a proposal is refused with INVALID_UPDATE_VERSION"
INELIGIBLE: Final = "a proposal is refused with INELIGIBLE_REPLICA"
DUPLICATE_PARKED: Final = "a duplicate waits with its original"
STOPPED_UNDER_LOAD: Final = "a leader stops in order while producers wait for it"
BROKER_FENCED: Final = "a broker is fenced"
UNREGISTERED: Final = "a broker is unregistered and comes back"
STARTED_OVER: Final = "a follower starts over where its leader's log begins"
LEADER_THROTTLES: Final = "a leader holds records back from a throttled follower"
FOLLOWER_THROTTLES: Final = "a throttled follower does not ask for what it lacks"

COMPACTED: Final = "a log is compacted"
COMPACTION_IN_VAIN: Final = "a log is cut while it is compacted"
TOMBSTONE_GONE: Final = "a tombstone goes when its time is over"

# What the quorum and the whole cluster meet

ALL_DOWN: Final = "the whole cluster is down"
ALL_BACK: Final = "the whole cluster was down and serves again"
OLD_EPOCH_ON_MAJORITY: Final = "metadata of an earlier epoch is on a majority and not committed"
METADATA_CUT: Final = "uncommitted metadata is cut"
TWO_QUORUM_LEADERS: Final = "two nodes lead the quorum, in different epochs"
QUORUM_RESIGNED: Final = "a quorum leader resigns without its majority"
SNAPSHOT_LOADED: Final = "a snapshot loaded by a lagging voter"
SNAPSHOT_LOADED_BY_OBSERVER: Final = "a snapshot loaded by an observer"
VOTER_ADDED: Final = "a voter added"
VOTER_REMOVED: Final = "a voter removed"
LEADER_REMOVED: Final = "the leader removed itself"
VERSION_RAISED: Final = "kraft.version raised"
WIPED: Final = "a node comes back with an empty disk"
LIED_TO: Final = "power is lost after a disk has lied about a sync"
LOG_OFFLINE: Final = "a log goes offline"

KEPT_WITHOUT_MEMBERS: Final = "offsets are kept in a group without members"
OFFSET_DELETED: Final = "an offset is deleted"
GROUP_DELETED: Final = "a group is deleted"
OFFSETS_UNSTABLE: Final = "a member waits for offsets that a transaction may replace"
TXN_COMMITTED: Final = "a transaction told committed"
TXN_ABORTED: Final = "a transaction told aborted"
TXN_GIVEN_UP: Final = "a transaction given up by its producer"
TXN_STALLED: Final = "a processor that stands still"
TXN_LINGERS: Final = "a transaction that goes on while its processor joins again"
TXN_ZOMBIE: Final = "a transaction whose processor has another life"

SITUATIONS: Final = (
    Situation(UNANSWERED, "harsh"),
    Situation(RETRIED, "harsh"),
    Situation(TOO_FEW, "harsh"),
    Situation(TIMED_OUT, "harsh"),
    Situation(BEGUN_ANEW, "beyond"),
    Situation(HIGH_WATERMARK_BACK, "harsh"),
    Situation(FOLLOWER_READ, "harsh"),
    Situation(SESSION_REFUSED, "harsh"),
    Situation(STALE_CLIENT, "harsh"),
    Situation(DELETED_BELOW, "harsh"),
    Situation(RECREATED, "controller-only"),
    Situation(GROUP_REBALANCED, "groups"),
    Situation(KEPT_WITHOUT_MEMBERS, "visitors"),
    Situation(OFFSET_DELETED, "visitors"),
    Situation(GROUP_DELETED, "visitors"),
    Situation(MEMBER_LEFT, "groups"),
    Situation(MEMBER_FELL_SILENT, "groups"),
    Situation(MOVED_COORDINATOR, "groups"),
    Situation(UNKNOWN_MEMBER, "groups"),
    Situation(UNCOMMITTED, "groups"),
    Situation(TAKEN_LATE, "late-members"),
    Situation(ISR_OF_ONE, "harsh"),
    Situation(LEADERLESS, "harsh"),
    Situation(ELR_ELECTED, "harsh"),
    Situation(LAST_LEADER_ELECTED, "harsh"),
    Situation(UNCLEAN_ELECTED, "unclean-on"),
    Situation(PREFERRED_REGAINED, "harsh"),
    Situation(REASSIGNED, "harsh"),
    Situation(CANCELLED, "harsh"),
    Situation(TRUNCATED, "harsh"),
    Situation(TRUNCATED_THRICE, "seesaw"),
    Situation(ZOMBIE_WRITES, "harsh"),
    Situation(ZOMBIE_FENCED, "harsh"),
    Situation(STALE_PROPOSAL, "harsh"),
    Situation(INELIGIBLE, "rolling"),
    Situation(DUPLICATE_PARKED, "harsh"),
    Situation(STOPPED_UNDER_LOAD, "harsh"),
    Situation(BROKER_FENCED, "harsh"),
    Situation(UNREGISTERED, "harsh"),
    Situation(STARTED_OVER, "harsh"),
    Situation(LEADER_THROTTLES, "throttled"),
    Situation(FOLLOWER_THROTTLES, "throttled"),
    Situation(COMPACTED, "compaction"),
    Situation(COMPACTION_IN_VAIN, "compaction"),
    Situation(TOMBSTONE_GONE, "tombstones"),
    Situation(ALL_DOWN, "harsh"),
    Situation(ALL_BACK, "harsh"),
    Situation(OLD_EPOCH_ON_MAJORITY, "harsh"),
    Situation(METADATA_CUT, "harsh"),
    Situation(TWO_QUORUM_LEADERS, "harsh"),
    Situation(QUORUM_RESIGNED, "harsh"),
    Situation(SNAPSHOT_LOADED, "snapshots"),
    Situation(SNAPSHOT_LOADED_BY_OBSERVER, "reconfiguration"),
    Situation(VOTER_ADDED, "reconfiguration"),
    Situation(VOTER_REMOVED, "reconfiguration"),
    Situation(LEADER_REMOVED, "reconfiguration"),
    Situation(VERSION_RAISED, "raising"),
    Situation(WIPED, "wiped"),
    Situation(LIED_TO, "lying"),
    Situation(LOG_OFFLINE, "bad-disks"),
    Situation(TXN_COMMITTED, "eos"),
    Situation(TXN_ABORTED, "eos"),
    Situation(TXN_GIVEN_UP, "eos"),
    Situation(TXN_STALLED, "eos"),
    Situation(TXN_LINGERS, "eos"),
    Situation(TXN_ZOMBIE, "eos"),
    Situation(OFFSETS_UNSTABLE, "eos"),
)
"""Every corner, in the order of a run's life. "Written, but the ISR is short" (20) is not among
them: a leader here moves the high watermark and looks at its ISR in one step, so nobody gets it."""


class Probes:
    """What one run has met."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def see(self, situation: str) -> None:
        self._seen[situation] = self._seen.get(situation, 0) + 1

    @property
    def seen(self) -> dict[str, int]:
        """Situation -> how often."""
        return dict(sorted(self._seen.items()))


class Tally:
    """In how many runs each situation was met."""

    __slots__ = ("_runs", "runs")

    def __init__(self) -> None:
        self.runs = 0
        self._runs: dict[str, int] = {}

    def add(self, seen: Iterable[str]) -> None:
        """One run's."""
        self.runs += 1
        for situation in seen:
            self._runs[situation] = self._runs.get(situation, 0) + 1

    @property
    def seen(self) -> dict[str, int]:
        """Situation -> runs."""
        return dict(sorted(self._runs.items()))

    def missed(self, plan: str) -> tuple[str, ...]:
        """What too few of the plan's runs have seen."""
        return missed(plan, self.seen, self.runs)


def missed(plan: str, seen: Mapping[str, int], runs: int) -> tuple[str, ...]:
    """Nothing is said of a campaign that is too small to tell."""
    needed = runs // RUNS_PER_SIGHT
    return tuple(
        situation.name
        for situation in SITUATIONS
        if situation.plan == plan and seen.get(situation.name, 0) < needed
    )
