"""Bugs planted in transactions: coordinator, markers, verification, offsets, what is stable."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

COORDINATOR: Final = "core/transactions/coordinator.py"
PARTITION: Final = "core/partition/transactions.py"
REPLICA: Final = "core/partition/replica.py"
OFFSETS: Final = "core/groups/offsets.py"
PENDING: Final = "core/groups/pending.py"
COORDINATORS: Final = "node/coordinators.py"
VERIFICATION: Final = "node/verification.py"
PLANS: Final = ("eos",)

TRANSACTION_MUTANTS: Final = (
    Mutant(
        "unstable-offsets-told",
        "offsets that a transaction may be about to replace are not told (T21, KIP-447)",
        OFFSETS,
        "groups.image.pending.partitions(ask.group_id) if ask.require_stable else {}",
        "groups.image.pending.partitions(ask.group_id) if False else {}",
        PLANS,
    ),
    Mutant(
        "aborted-offsets-committed",
        "an abort forgets the offsets that were committed in its transaction (T20)",
        PENDING,
        "            if committed:\n                self._commit",
        "            if True:\n                self._commit",
        PLANS,
    ),
    Mutant(
        "generation-unchecked-in-transactions",
        "a member of an earlier generation commits nothing in a transaction either (T20)",
        OFFSETS,
        "    if ask.generation != group.generation:\n",
        "    if ask.generation != group.generation and ask.transaction is None:\n",
        PLANS,
    ),
    Mutant(
        "pending-offsets-loaded-as-committed",
        "a coordinator that loads its log knows which records belong to a transaction (T18, T20)",
        COORDINATORS,
        "shard.machine.replay(KeyedRecord(key, value), batch.producer_id)",
        "shard.machine.replay(KeyedRecord(key, value))",
        PLANS,
    ),
    Mutant(
        "marker-untold-to-the-group",
        "a marker on __consumer_offsets reaches the coordinator of that partition's groups (T20)",
        COORDINATORS,
        "    shard.machine.replay_end(ask.producer_id, committed=ask.committed)\n"
        "    shard.end_offset",
        "    shard.end_offset",
        PLANS,
    ),
    Mutant(
        "holder-keeps-the-epoch",
        "whoever becomes the holder of a transactional id has a higher epoch than the last (T10)",
        COORDINATOR,
        "raised = Producer(held.producer_id, ProducerEpoch(held.epoch + 1))",
        "raised = Producer(held.producer_id, ProducerEpoch(held.epoch))",
        PLANS,
    ),
    Mutant(
        "ongoing-not-aborted-by-the-next-holder",
        "what the last holder of a transactional id left open is aborted before the next (T10)",
        COORDINATOR,
        "            return (*self._abort_over_its_head(id_, held, wall), Tell(waiter, BUSY))\n",
        "            pass\n",
        PLANS,
    ),
    Mutant(
        "aborted-not-in-the-index",
        "an abort of a transaction that was open is entered in the index of aborted ones (T3)",
        PARTITION,
        "        if not committed:\n            stable",
        "        if False:\n            stable",
        PLANS,
    ),
    Mutant(
        "stable-beyond-open-transactions",
        "nothing above the first offset of an open transaction is stable (T2)",
        REPLICA,
        "if unstable is None or unstable >= self.high_watermark:",
        "if unstable is None or unstable >= 0:",
        PLANS,
    ),
    Mutant(
        "opened-without-a-word",
        "a batch opens a transaction after its coordinator has confirmed it (T6, KIP-890)",
        VERIFICATION,
        "    return state.verifies or question.adds",
        "    return False",
        PLANS,
    ),
    Mutant(
        "markers-before-the-decision",
        "a marker is written when the decision is committed, and not before (T15)",
        COORDINATOR,
        "        return (Write((record_of(id_, prepared),), then), Await(Decided(id_, prepared)))",
        "        ask = SendMarkers(id_, Producer(prepared.producer_id, prepared.epoch),"
        " prepared.status is Status.PREPARE_COMMIT, prepared.partitions, prepared.version)\n"
        "        self._missing[id_] = dict.fromkeys(prepared.partitions)\n"
        "        write = Write((record_of(id_, prepared),), then)\n"
        "        return (write, Order(ask)) if prepared.partitions else"
        " (write, Await(Decided(id_, prepared)))",
        PLANS,
    ),
    Mutant(
        "transactions-never-time-out",
        "a transaction that lasts longer than its time-out is aborted (T16)",
        COORDINATOR,
        "if _open_for_ms(self._open[id_], at) > each.timeout_ms:",
        "if _open_for_ms(self._open[id_], at) > 1 << 60:",
        ("visitors", "eos"),
    ),
    Mutant(
        "age-by-the-record-alone",
        "a transaction ends in its time, whatever clock it began by (T16)",
        COORDINATOR,
        "return max(at.wall - seen.started_at, at.now - seen.seen_at)",
        "return at.wall - seen.started_at",
        ("visitors",),
    ),
    Mutant(
        "end-stable-before-it-is-committed",
        "what a transaction wrote is stable when its marker is committed, and not before (T2)",
        PARTITION,
        "        self._unsettled.append(Unsettled(first, marker_offset))\n",
        "        self._find_first()\n",
        PLANS,
    ),
)
