"""Rare situations are counted by run, and those that too few runs met are named."""

from __future__ import annotations

from cotidal.sim import probes
from cotidal.sim.plans import PLANS
from cotidal.sim.probes import RUNS_PER_SIGHT, SITUATIONS, Probes, Tally, missed


def test_every_situation_belongs_to_a_plan_and_has_a_name_of_its_own() -> None:
    assert {situation.plan for situation in SITUATIONS} <= set(PLANS)
    assert len({situation.name for situation in SITUATIONS}) == len(SITUATIONS)


def test_a_tally_counts_runs_and_not_sights() -> None:
    run = Probes()
    for _ in range(5):
        run.see(probes.ISR_OF_ONE)
    tally = Tally()
    tally.add(run.seen)
    tally.add(run.seen)
    tally.add({})
    assert tally.seen == {probes.ISR_OF_ONE: 2}
    assert tally.runs == 3


def test_what_too_few_runs_met_is_named() -> None:
    runs = 3 * RUNS_PER_SIGHT
    seen = {situation.name: 3 for situation in SITUATIONS} | {probes.ISR_OF_ONE: 2}
    assert missed("harsh", seen, runs) == (probes.ISR_OF_ONE,)
    assert missed("unclean-on", seen, runs) == ()


def test_a_campaign_that_is_too_small_misses_nothing() -> None:
    assert missed("harsh", {}, RUNS_PER_SIGHT - 1) == ()
