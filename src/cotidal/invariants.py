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
IDEMPOTENT_ONCE: Final = "per producer id, epoch and sequence at most one copy is in the log"
DURABLE_BEFORE_TOLD: Final = "no message reveals state that is not yet durable"
REPLAY_CANNOT_FAIL: Final = "replay of a committed record always succeeds"
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
ONE_CHANGE_OF_VOTERS: Final = "at most one change of the voters is uncommitted"
