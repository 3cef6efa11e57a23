"""The named promises. Code, simulator checkers, tests and docs use these names and no others.

Each constant's text is the promise in one sentence. An assertion that guards one carries its name:
``assert reached <= end, HIGH_WATERMARK_IN_LOG``.
"""

from __future__ import annotations

from typing import Final

ONE_LEADER_PER_EPOCH: Final = (
    "at most one leader per partition and leader epoch; epochs never go back"
)
LOG_PREFIXES_MATCH: Final = "equal (offset, epoch) in two logs means equal prefixes"
HIGH_WATERMARK_IN_LOG: Final = "log start <= last stable offset <= high watermark <= end offset"
HIGH_WATERMARK_MONOTONIC: Final = "a leader's high watermark never moves back within its epoch"
EPOCHS_ASCEND: Final = "epoch cache entries ascend in epoch and in start offset"
OFFSETS_CONTIGUOUS: Final = "a batch is appended exactly at the end offset"
EPOCHS_MATCH_LOG: Final = (
    "the epoch cache says what the log holds, and at most one entry more, at its end"
)
IDEMPOTENT_ONCE: Final = "per producer id, epoch and sequence at most one copy is in the log"
DURABLE_BEFORE_TOLD: Final = "no message reveals state that is not yet durable"
REPLAY_CANNOT_FAIL: Final = "replay of a committed record always succeeds"
REFUSED_BY_NAME: Final = "whoever is refused is told why: never UNKNOWN_SERVER_ERROR"
SOMEBODY_IS_NAMED: Final = "metadata that tells of topics names a broker to ask again"
LIVES_REPEAT: Final = "a node that is told the same at the same times wants the same"
BOUNDS_KEPT: Final = "nothing that has a bound grows beyond it"
REPLIES_IN_ORDER: Final = "replies leave a connection in the order of its requests"
ACKED_IS_KEPT: Final = "an acknowledged write is never lost while the rules promise it"

# quorum

VOTE_ONCE_PER_EPOCH: Final = "a voter's epoch never goes back, and in one epoch it votes once"
MAJORITY_HOLDS_COMMITTED: Final = (
    "what a quorum leader calls committed is on the disks of a majority, its own epoch's first"
)
COMMITTED_NEVER_CUT: Final = "no record below the high watermark of the metadata log is cut"
LEADER_HOLDS_ITS_EPOCH: Final = "the last record of a quorum leader's log is of its own epoch"
SNAPSHOT_AT_LOG_START: Final = "a metadata log that starts above 0 starts where a snapshot ends"
SNAPSHOT_IS_COMMITTED: Final = "a snapshot of the metadata log holds committed records only"
ONE_CHANGE_OF_VOTERS: Final = "at most one change of the voters is uncommitted"

# cluster: what the simulator's checkers look for beyond the above

ELIGIBLE_HOLD_COMMITTED: Final = (
    "every running member of ISR or ELR, in its registered incarnation, holds all that is committed"
)
LEADER_HOLDS_ACKED: Final = "a valid leader holds every acks=all record at its offset"
MAXIMAL_ISR_COVERS: Final = (
    "a leader at or above min ISR waits for everyone whom the controller might elect"
)
HIGH_WATERMARK_WAITS: Final = (
    "the high watermark advances only to what every ISR member has in its log"
)
ONLY_ELIGIBLE_HOLD_BACK: Final = (
    "the high watermark waits for the ISR and for whoever may join it, and for nobody else"
)
LEADERS_ALONE_WAIT: Final = "no write waits for a partition that its node does not lead"
WRITTEN_BEFORE_TOLD: Final = "no write is acknowledged before the leader's log has it"
SESSIONS_SERVE_WHAT_IS_WANTED: Final = (
    "a fetch session serves what it was last told, and no fetch out of its turn"
)
CONSUMED_NEVER_CHANGES: Final = "what was read at an offset is what is read there ever after"
ISR_WELL_FORMED: Final = (
    "ISR and ELR are disjoint parts of the replicas, none fenced; a leader is in the ISR; a full"
    " ISR leaves no ELR"
)
ELIGIBLE_NEVER_CUT: Final = "no member of ISR or ELR truncates below what is committed"
JOINS_AFTER_FETCH: Final = (
    "a new incarnation enters an ISR only after it fetched in the current leader epoch"
)
ONE_QUORUM_LEADER: Final = "at most one quorum leader per epoch; epochs never go back"
METADATA_COMMITTED_KEPT: Final = "committed metadata is the same on every node and never changes"
METADATA_ASCENDS: Final = (
    "what is committed of the metadata never becomes less, also from one quorum leader to the next"
)
QUORUM_LEADER_HOLDS_COMMITTED: Final = "a quorum leader's log holds all that was ever committed"
TOPICS_STAY_APART: Final = "what was written to a deleted topic is never read from its namesake"
IMAGES_EQUAL: Final = "two nodes that applied the same metadata say the same of the cluster"
ELECTED_FROM_ELIGIBLE: Final = (
    "whoever is elected was in the ISR, else in the ELR, else the last leader, unless the topic"
    " allows unclean election"
)
FENCED_FOR_A_REASON: Final = "a broker with which nothing is wrong is not fenced"

# groups

COMMITS_KEPT: Final = (
    "an acknowledged commit is what every later fetch finds, or a later commit, until it is deleted"
    " or expires"
)
ONE_OWNER: Final = "in one generation of a group no partition has two owners"
EPOCHS_ORDERED: Final = "no member is ahead of its group's target, and no target of its group"
GENERATIONS_ASCEND: Final = "the generations in which a member gets assignments never go back"
MEMBERS_KEPT: Final = "a member that heartbeats in time stays one, wherever the coordinator is"

# transactions

TXN_ATOMIC: Final = (
    "records and offsets of one transaction are seen by read_committed readers all, or none"
)
TXN_ABORTED_UNSEEN: Final = (
    "no read_committed reader is given a record of an aborted transaction, or of one that is open"
)
TXN_DECIDED_ONCE: Final = "a transaction of which commit or abort was told never gets the other"
TXN_FENCED: Final = (
    "after a transactional id has a new holder, nothing that an earlier one sends is committed"
)
EXACTLY_ONCE: Final = (
    "what is read, processed and written in transactions is so exactly once, whoever dies or stalls"
)
LSO_MONOTONIC: Final = (
    "what is stable never goes back within a leader's epoch, and passes no transaction that is open"
)

# cluster: what comes about once faults stop

LEADER_APPEARS: Final = "a partition with a live eligible replica gets a leader"
PRODUCE_IS_ANSWERED: Final = "every produce is answered"
REPLICAS_CONVERGE: Final = "what is acknowledged reaches every live replica"
ISR_HEALS: Final = "live followers rejoin the ISR, and the high watermark reaches the end"
PROPOSALS_RESOLVE: Final = "a proposed ISR is answered"
METADATA_CONVERGES: Final = "every broker comes to know all committed metadata"
BROKERS_REGISTER: Final = "a live broker is registered, in the incarnation that lives"
BROKERS_UNFENCE: Final = "a live broker is unfenced"
REASSIGNMENT_ENDS: Final = "a reassignment comes to its end"
QUORUM_LEADER_APPEARS: Final = "a majority of voters elects a leader"
READS_REACH_THE_END: Final = "every consumer comes to read everything, wherever it reads"
REBALANCES_END: Final = "every rebalance of a group ends"
STABLE_OFFSET_FOLLOWS: Final = "the last stable offset reaches the high watermark"
DELETED_LOGS_GO: Final = "the log of a deleted topic goes from the disk of every live broker"
TXN_ENDS: Final = "every transaction ends, and its markers reach all its partitions"
