"""What one run shows: records lost and doubled, time without acknowledgements, how long they took.

All whole numbers. *Believed*: records that were acknowledged; with acks=0, that were sent. *Lost*:
believed, and nowhere in the partition when a new consumer reads it after everything has healed.
*Doubled*: copies of a batch beyond the first. *Unavailable*: stretches of more than ``STRETCH``
without an acknowledgement while faults last, though the producer has something to write all the
time; the mean over partitions. *Latency*: from the moment the producer had the batch to the
acknowledgement, retries included; of batches that were acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from cotidal.sim.agenda import MS, SECOND
from cotidal.sim.checkers.kept import held_by
from cotidal.sim.faults.schedule import Schedule
from cotidal.sim.plan import Plan
from cotidal.sim.run import Outcome, Run
from cotidal.sim.trace import Trace
from cotidal.sim.workloads.history import Acked
from cotidal.values import TopicPartition

STRETCH_US: Final = 1 * SECOND
LOST: Final = "LOST"
"""What a script says was broken when it was no promise: acknowledged records are gone."""


class Measures(NamedTuple):
    seed: int
    broken: str
    """A promise that was broken, by name; then nothing else here means anything."""
    believed: int
    lost: int
    doubled: int
    faults_ms: int
    unavailable_ms: int
    """-1: nobody would know (acks=0)."""
    p50_us: int
    p99_us: int
    """-1: nothing was acknowledged."""


def measured(
    seed: int, plan: Plan, schedule: Schedule | None = None, trace: Trace | None = None
) -> tuple[Measures, Outcome]:
    run = Run(seed, plan, trace, schedule)
    outcome = run.go()
    return measure(run, outcome), outcome


def measure(run: Run, outcome: Outcome) -> Measures:
    acked = [fact for facts in _acknowledged(run).values() for fact in facts]
    kept = held_by(run.final)
    doubled = sum(map(len, run.final.consumed.values())) - len(kept)
    believed = [(fact.partition, fact.crc, fact.records) for fact in acked] + run.history.fired
    waited = sorted(fact.moment_us - fact.made_us for fact in acked)
    return Measures(
        outcome.seed,
        outcome.broken or "",
        sum(records for _, _, records in believed),
        sum(records for place, crc, records in believed if (place, crc) not in kept),
        doubled,
        run.plan.seconds * 1000,
        -1 if run.plan.acks == (0,) else _unavailable_us(run) // MS,
        quantile(waited, 50),
        quantile(waited, 99),
    )


def quantile(ascending: Sequence[int], percent: int) -> int:
    """The smallest value that so many in a hundred do not pass; -1 if there is none."""
    if not ascending:
        return -1
    return ascending[max(0, -(-len(ascending) * percent // 100) - 1)]


def _acknowledged(run: Run) -> dict[TopicPartition, list[Acked]]:
    found: dict[TopicPartition, list[Acked]] = {}
    for partition in run.admin.partitions:
        found[partition] = [
            *run.history.acked.get(partition, ()),
            *run.history.acked_by_leader.get(partition, ()),
        ]
    return found


def _unavailable_us(run: Run) -> int:
    begin = run.faults_us
    end = begin + run.plan.seconds * SECOND
    partitions = _acknowledged(run)
    silent = (
        _silence_us([fact.moment_us for fact in facts], begin=begin, end=end)
        for facts in partitions.values()
    )
    return sum(silent) // len(partitions)


def _silence_us(moments: Iterable[int], *, begin: int, end: int) -> int:
    within = [begin, *sorted(each for each in moments if begin < each < end), end]
    gaps = (after - before for before, after in pairwise(within))
    return sum(gap for gap in gaps if gap > STRETCH_US)
