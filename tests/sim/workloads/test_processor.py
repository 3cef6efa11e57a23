"""Processors that read, write and commit in transactions: what they do, and what is missed."""

from __future__ import annotations

import pytest

from cotidal.core.transactions.transaction import Status
from cotidal.invariants import READS_REACH_THE_END, TXN_ENDS
from cotidal.sim import probes as seen
from cotidal.sim.agenda import SECOND
from cotidal.sim.checkers.window import transactions_of
from cotidal.sim.plans import PLANS, plan_named, with_processors
from cotidal.sim.run import Run
from simulated import go_through


@pytest.fixture(scope="module")
def run() -> Run:
    """All that was written is processed, and nothing more is written."""
    run = Run(1, with_processors(PLANS["calm"])._replace(seconds=4))
    for waits in (run._set_up(), run._endure(), run._heal()):
        go_through(run, waits)
    return run


def test_what_is_written_is_processed_in_transactions_of_both_kinds(run: Run) -> None:
    for situation in (seen.TXN_COMMITTED, seen.TXN_ABORTED, seen.TXN_STALLED):
        assert situation in run.probes.seen
    assert {processor._raises for processor in run.processors} == {False, True}
    assert not list(run._missing())
    go_through(run, run._read_all())
    assert run.transactions.committed > 10


def test_a_transaction_that_does_not_end_is_missed(run: Run) -> None:
    held = next(held for each in run.world.running if (held := _shard(each)))
    id_, before = next(iter(held.items()))
    held[id_] = before._replace(status=Status.PREPARE_COMMIT)
    assert TXN_ENDS in dict(run._missing())
    held[id_] = before
    assert TXN_ENDS not in dict(run._missing())


def _shard(process):
    for shard in process.node._state.coordinators.shards.values():
        if getattr(shard.machine, "transactions", None):
            assert transactions_of(process)
            return shard.machine.transactions
    return None


def test_an_input_that_nobody_processes_is_missed(run: Run) -> None:
    processor = next(each for each in run.processors if each._owned)
    partition, before = next(iter(processor._owned.items()))
    processor._owned[partition] = before - 1
    assert READS_REACH_THE_END in dict(run._missing())
    processor._owned[partition] = before


def test_processors_can_be_added_to_plans_that_lose_nothing() -> None:
    plan = plan_named("harsh+eos")
    assert plan is not None
    assert plan.processors > 1
    assert plan.faults == PLANS["harsh"].faults
    assert "delete-records" not in plan.duties
    assert plan_named("harsh") is PLANS["harsh"]
    assert plan_named("nothing+eos") is None
    for name in ("beyond+eos", "compaction+eos"):
        with pytest.raises(ValueError, match="records may go"):
            plan_named(name)


def test_two_runs_of_a_seed_are_the_same() -> None:
    plan = with_processors(PLANS["mild"])._replace(seconds=3)
    first, second = Run(7, plan), Run(7, plan)
    assert first.go() == second.go()
    assert first.world.now > 3 * SECOND
