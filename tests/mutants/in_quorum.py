"""Bugs planted in the quorum: votes, commits, what is durable before it is told."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

ELECTION: Final = "core/quorum/election.py"
REPLICATION: Final = "core/quorum/replication.py"
FOLLOWING: Final = "core/quorum/following.py"
MEMBERSHIP: Final = "core/quorum/membership.py"

QUORUM_MUTANTS: Final = (
    Mutant(
        "vote-not-persisted",
        "a vote is on disk before it is told, and outlives a restart (KIP-595)",
        "core/quorum/states.py",
        "            voted_id=NO_NODE if self.voted is None else self.voted.node_id,",
        "            voted_id=NO_NODE,",
        ("controller-only", "harsh"),
    ),
    Mutant(
        "vote-forgotten-after-restart",
        "a vote given in an epoch is kept when the node starts again (KIP-595)",
        "core/quorum/recovery.py",
        "    if stored.voted_id != NO_NODE:",
        "    if stored.voted_id < NO_NODE:",
        ("controller-only", "harsh"),
    ),
    Mutant(
        "second-vote-in-an-epoch",
        "a node votes for one candidate in an epoch (KIP-595)",
        ELECTION,
        "    return q.voted is None or q.voted == candidate",
        "    return True",
        ("controller-only", "harsh"),
    ),
    Mutant(
        "vote-for-a-shorter-log",
        "a vote is granted to a log that reaches at least as far (KIP-595)",
        ELECTION,
        "    is_log_enough = reach >= q.log.reach",
        "    is_log_enough = reach.end_offset >= 0",
        ("controller-only", "wide"),
    ),
    Mutant(
        "half-is-a-majority",
        "of three voters two decide",
        "core/quorum/majority.py",
        "    return voters // 2 + 1",
        "    return max(1, voters // 2)",
        ("controller-only", "harsh"),
    ),
    Mutant(
        "committed-by-one",
        "what is committed is on the disks of a majority",
        "core/quorum/majority.py",
        "    return sorted(ends, reverse=True)[len(ends) // 2]",
        "    return max(ends)",
        ("controller-only", "harsh", "lossy-disk"),
    ),
    Mutant(
        "told-before-fsync",
        "what is told waits for every write that was asked for before it (DURABLE_BEFORE_TOLD)",
        "core/quorum/outbox.py",
        "        if number <= self.durable:\n            self.ready.append(effect)\n"
        "        else:\n            self.waiting.append((number, effect))",
        "        self.ready.append(effect)",
        ("lossy-disk", "controller-only", "harsh"),
    ),
    Mutant(
        "own-log-counted-before-fsync",
        "a leader counts its own log as far as it is on disk",
        "core/quorum/outbox.py",
        "            self.in_flight = InFlight(token, number=self.asked, end_offset=log_end)\n",
        "            self.in_flight = InFlight(token, number=self.asked, end_offset=log_end)\n"
        "            self.durable_end = log_end\n",
        ("lossy-disk", "controller-only", "harsh"),
    ),
    Mutant(
        "commit-without-own-epoch",
        "records of earlier epochs are committed by a record of this one (Raft, figure 8)",
        REPLICATION,
        "    if reached <= max(role.epoch_start, q.high_watermark):",
        "    if reached <= q.high_watermark:",
        ("wide", "controller-only"),
    ),
    Mutant(
        "quorum-not-checked",
        "a leader that no majority has asked for 1.5 fetch time-outs resigns (KIP-595)",
        REPLICATION,
        "    return None if heard is None else Millis(heard + q.config.fetch_timeout_ms * 3 // 2)",
        "    return None",
        ("controller-only", "harsh"),
    ),
    Mutant(
        "pre-vote-while-following",
        "a follower that has fetched from its leader refuses PreVotes (KIP-996)",
        ELECTION,
        "            return not follower.has_fetched or follower.is_leader_gone",
        "            return True",
        ("controller-only", "harsh"),
    ),
    Mutant(
        "follower-commits-what-it-lacks",
        "a follower's high watermark goes no further than its own disk",
        FOLLOWING,
        "    reached = min(role.leader_high_watermark, q.outbox.durable_end)",
        "    reached = role.leader_high_watermark",
        ("controller-only", "harsh"),
    ),
    Mutant(
        "late-quorum-answer-taken",
        "an answer to a question of another state or epoch is dropped (KAFKA-18723)",
        "core/quorum/node.py",
        "    if q.asks.get(event.peer) != event.ask:\n        return",
        "    if event.peer not in q.asks:\n        return",
        ("controller-only", "harsh"),
    ),
    Mutant(
        "diverged-follower-counts",
        "a replica counts as far as its log is on the leader's line: one that diverged does not",
        REPLICATION,
        "    astray = _astray(q, fetch)\n",
        "    _record(q, progress, fetch, now)\n    astray = _astray(q, fetch)\n",
        ("controller-only", "wide"),
    ),
    Mutant(
        "voters-raised-with-one-disk",
        "voters that become a record are named with the disks that each of them has (KIP-853)",
        MEMBERSHIP,
        "            directory = ZERO_UUID if progress is None else progress.directory_id\n",
        "            directory = q.me.directory_id\n",
        ("raising",),
    ),
)
