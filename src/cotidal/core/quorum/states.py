"""The states of a quorum node, and what it remembers in all of them. Pure. KIP-595, KIP-996.

    Unattached   knows no leader it could follow
        -> Prospective   its time came (voters): at once when connected to a majority, by rank
        -> Follower      somebody told it of a leader
    Prospective  asks whether it could win; same epoch, nothing written
        -> Candidate     a majority would vote for it
        -> Follower      it would lose, and its leader may be alive; or it heard of a leader
        -> Unattached    it would lose, and has no leader to go back to; or a higher epoch
    Candidate    has voted for itself in a new epoch
        -> Leader        a majority voted for it
        -> Prospective   its time ran out, or it lost and has waited a while
        -> Follower      another one won
    Leader       appends; commits what a majority holds
        -> Resigned      no majority has fetched for a while; removed from the voters; shutdown
        -> Unattached, Follower      a higher epoch
    Follower     fetches from the leader of its epoch
        -> Prospective   nothing fetched for a while, or the leader is known to be gone (voters)
        -> Unattached    the same (observers); or a higher epoch
    Resigned     led this epoch and never will again (also: led it before a restart)
        -> Prospective   its time ran out (voters)
        -> Unattached    the same (observers); or a higher epoch
    any          -> Follower or Unattached of a higher epoch, whoever tells of it

Observers (replicas that are not voters) are only Unattached or Follower, and Resigned after having
led. Epoch, vote and elected leader belong to all states: a vote given in an epoch outlives every
state in it.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from cotidal.core.machine import Entropy
from cotidal.core.quorum.dialogue import Fetch, Hint, MemberChange
from cotidal.core.quorum.effects import Write, WriteState
from cotidal.core.quorum.events import AskId, RequestToken, SnapshotFacts
from cotidal.core.quorum.log_view import LogEnd, LogView, SnapshotId
from cotidal.core.quorum.outbox import Outbox
from cotidal.core.quorum.voters import ReplicaKey, VoterHistory, VoterSet
from cotidal.invariants import VOTE_ONCE_PER_EPOCH
from cotidal.messages.records.quorum import Endpoint, KRaftVersionFeature, QuorumStateData
from cotidal.values import (
    NO_NODE,
    NO_OFFSET,
    ZERO_UUID,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
    Uuid,
)


class QuorumConfig(NamedTuple):
    """Kafka's ``controller.quorum.*`` where it has them."""

    node_id: NodeId
    directory_id: Uuid
    endpoints: tuple[Endpoint, ...] = ()
    """This node's own, of its controller listener."""
    voters: VoterSet = VoterSet()
    """Static voters, directories unknown; a VotersRecord in snapshot or log overrides them."""
    bootstrap: tuple[tuple[NodeId, tuple[Endpoint, ...]], ...] = ()
    """Where a node that knows no voters asks. Ids below -1 for servers whose id is unknown."""
    can_vote: bool = True
    """The node has the controller role. A broker never votes, whoever asks."""
    joins: bool = False
    """A controller that does not vote asks to, once it has caught up (KIP-853 auto join)."""
    kraft_versions: KRaftVersionFeature = KRaftVersionFeature(0, 1)
    election_timeout_ms: int = 1_000
    """Up to as much again is added by lot."""
    election_backoff_ms_max: int = 1_000
    fetch_timeout_ms: int = 2_000
    fetch_wait_ms: int = 500
    request_timeout_ms: int = 1_000
    """A question unanswered for so long is asked again, a fetch after its wait besides: together
    below the fetch time-out, so that one lost answer does not cost an election. A link that is
    slower than this is none."""
    retry_backoff_ms: int = 20
    ask_around_ms: int = 50
    """An observer that was told of no leader asks the next node after so long: about as long as an
    election takes, and no burden on voters that cannot elect anyone."""
    rank_stride_ms: int = 40
    """Between the attempts of two voters who could both win: several round trips and an fsync."""
    snapshot_after_bytes: int = 20 * 1024 * 1024
    snapshot_after_ms: int = 3_600_000
    """0: time alone never asks for one."""
    chunk_bytes: int = 1024 * 1024
    observer_session_ms: int = 300_000
    """An observer not heard of for so long is forgotten."""
    caught_up_within_ms: int = 3_600_000
    """A replica that reached the leader's end so recently may become a voter."""


class Unattached:
    __slots__ = ("deadline", "is_quick", "next_peer")

    def __init__(self, deadline: Millis, *, is_quick: bool) -> None:
        self.deadline = deadline
        """Voters: when to become Prospective. Observers: when to ask the next node who leads."""
        self.is_quick = is_quick
        """A connection to a majority brings the deadline forward."""
        self.next_peer = 0


class Prospective:
    __slots__ = ("ask_at", "deadline", "votes")

    def __init__(self, deadline: Millis) -> None:
        self.deadline = deadline
        self.votes: dict[NodeId, bool] = {}
        self.ask_at: dict[NodeId, Millis] = {}
        """Voters that have not answered, and when to ask them again."""


class Candidate:
    __slots__ = ("ask_at", "deadline", "votes")

    def __init__(self, deadline: Millis) -> None:
        self.deadline = deadline
        self.votes: dict[NodeId, bool] = {}
        self.ask_at: dict[NodeId, Millis] = {}


class Progress:
    """What a leader knows of one other replica; changed only by what that replica asks."""

    __slots__ = (
        "caught_up_at",
        "contact_at",
        "directory_id",
        "end_offset",
        "end_seen",
        "fetched_at",
    )

    def __init__(self, contact_at: Millis) -> None:
        self.end_offset = NO_OFFSET
        """Durable there, and equal to ours so far. -1 until it has fetched in this epoch."""
        self.contact_at = contact_at
        self.fetched_at: Millis | None = None
        self.caught_up_at: Millis | None = None
        self.end_seen = NO_OFFSET
        """Our end at its last fetch."""
        self.directory_id = ZERO_UUID
        """Of the disk that it fetched to: static voters are known by their id alone."""


class Parked(NamedTuple):
    """A fetch that waits for something to tell."""

    request: RequestToken
    fetch: Fetch
    deadline: Millis
    ripe_at: Millis
    """From then on it is answered with whatever else happens here."""


class Changing(NamedTuple):
    """The change of voters under way."""

    request: RequestToken
    change: MemberChange
    offset: Offset
    """Of the VotersRecord."""
    write_number: int
    deadline: Millis
    is_answered: bool = False


class Leader:
    __slots__ = (
        "begin_at",
        "changing",
        "commits_own_epoch",
        "epoch_start",
        "parked",
        "progress",
        "since",
    )

    def __init__(self, *, epoch_start: Offset, since: Millis) -> None:
        self.epoch_start = epoch_start
        self.since = since
        self.commits_own_epoch = False
        """The high watermark has passed epoch_start: only then is it this leader's."""
        self.progress: dict[ReplicaKey, Progress] = {}
        """Every replica heard of but this one; each other voter has an entry from the start."""
        self.parked: dict[ReplicaKey, Parked] = {}
        self.begin_at = since
        """When to send BeginEpoch again."""
        self.changing: Changing | None = None


class Loading:
    """A snapshot on its way from the leader."""

    __slots__ = ("id", "position")

    def __init__(self, snapshot: SnapshotId) -> None:
        self.id = snapshot
        self.position = 0


class Follower:
    __slots__ = (
        "ask_at",
        "deadline",
        "has_fetched",
        "is_leader_gone",
        "leader_high_watermark",
        "loading",
        "update_at",
    )

    def __init__(self, deadline: Millis, *, ask_at: Millis) -> None:
        self.deadline = deadline
        """When to stop believing in the leader."""
        self.ask_at = ask_at
        """When to ask again whatever has or has not been answered."""
        self.has_fetched = False
        self.is_leader_gone = False
        """It resigned or its port is closed: as good as a fetch time-out."""
        self.leader_high_watermark = NO_OFFSET
        self.loading: Loading | None = None
        self.update_at: Millis | None = None
        """When to tell the leader our endpoints again, if it has others."""


class Resigned:
    __slots__ = ("ask_at", "deadline", "is_quick", "successors")

    def __init__(
        self, deadline: Millis, *, successors: tuple[ReplicaKey, ...], is_quick: bool
    ) -> None:
        self.deadline = deadline
        self.successors = successors
        self.is_quick = is_quick
        self.ask_at: dict[NodeId, Millis] = {}
        """Voters that have not heard of the end of the epoch, and when to tell them again."""


Role: TypeAlias = Unattached | Prospective | Candidate | Leader | Follower | Resigned


class Quorum:
    """All a quorum node remembers."""

    __slots__ = (
        "asks",
        "bytes_since_snapshot",
        "config",
        "connected",
        "entropy",
        "epoch",
        "has_failed",
        "high_watermark",
        "installing",
        "is_snapshot_asked",
        "is_stopped",
        "is_stopping",
        "known_ends",
        "last_ask",
        "leader_endpoints",
        "leader_id",
        "log",
        "losses",
        "me",
        "outbox",
        "role",
        "saved",
        "snapshot_at",
        "snapshots",
        "told",
        "voted",
        "voters",
    )

    def __init__(self, config: QuorumConfig, entropy: Entropy) -> None:
        self.config = config
        self.me = ReplicaKey(config.node_id, config.directory_id)
        self.entropy = entropy
        self.outbox = Outbox()
        self.role: Role = Unattached(Millis(0), is_quick=False)
        self.epoch = LeaderEpoch(0)
        self.voted: ReplicaKey | None = None
        """In this epoch. Invariant: once given it stays (VOTE_ONCE_PER_EPOCH)."""
        self.leader_id = NO_NODE
        """Elected in this epoch, as far as known; stays known when it is no longer followed."""
        self.leader_endpoints: tuple[Endpoint, ...] = ()
        self.saved: QuorumStateData | None = None
        self.told = Hint()
        """What the machine above was last told of the leader."""
        self.log = LogView()
        self.voters = VoterHistory(config.voters, kraft_version=0)
        self.high_watermark = Offset(0)
        self.snapshots: list[SnapshotFacts] = []
        """Ascending, at most two. Invariant: log.start_offset is 0 or where the first one ends."""
        self.installing: SnapshotId | None = None
        """Fetched whole, not durable yet; its voters are not known before."""
        self.bytes_since_snapshot = 0
        self.snapshot_at = Millis(0)
        self.is_snapshot_asked = False
        self.last_ask = 0
        self.asks: dict[NodeId, AskId] = {}
        """The one open question to each peer; an answer to any other is too late."""
        self.connected: dict[NodeId, bool] = {}
        self.known_ends: dict[NodeId, LogEnd] = {}
        """How far other voters' logs reached when they last asked for a vote."""
        self.losses = 0
        """Elections lost in a row, for the back-off."""
        self.is_stopping = False
        self.is_stopped = False
        self.has_failed = False

    @property
    def voter_set(self) -> VoterSet:
        return self.voters.entries[-1].voters

    @property
    def is_voter(self) -> bool:
        return self.config.can_vote and self.voter_set.has(self.me)

    @property
    def other_voters(self) -> tuple[NodeId, ...]:
        """The node ids of all voters but this one.

        A voter with our id and another directory is nobody we could reach: that was our old disk.
        """
        me = self.config.node_id
        return tuple([node for node in self.voter_set.ids if node != me])

    @property
    def hint(self) -> Hint:
        """What to tell others about the leader: never ourselves unless we lead now."""
        if self.leader_id == self.config.node_id and not isinstance(self.role, Leader):
            return Hint(NO_NODE, self.epoch, ())
        return Hint(self.leader_id, self.epoch, self.leader_endpoints)

    @property
    def latest_snapshot(self) -> SnapshotFacts | None:
        return self.snapshots[-1] if self.snapshots else None

    def save(self) -> None:
        """Write epoch, vote and leader if they are not what was written last."""
        state = QuorumStateData(
            leader_id=self.leader_id,
            leader_epoch=self.epoch,
            voted_id=NO_NODE if self.voted is None else self.voted.node_id,
            voted_directory_id=ZERO_UUID if self.voted is None else self.voted.directory_id,
        )
        before = self.saved
        if state == before:
            return
        if before is not None:
            assert before.leader_epoch <= state.leader_epoch, VOTE_ONCE_PER_EPOCH
            if before.leader_epoch == state.leader_epoch:
                assert before.voted_id in (NO_NODE, state.voted_id), VOTE_ONCE_PER_EPOCH
                assert before.leader_id in (NO_NODE, state.leader_id), VOTE_ONCE_PER_EPOCH
        self.saved = state
        self.write(WriteState(state))

    def write(self, write: Write) -> None:
        self.outbox.write(write)

    def election_deadline(self, now: Millis) -> Millis:
        timeout = self.config.election_timeout_ms
        return Millis(now + timeout + self.entropy.below(timeout))
