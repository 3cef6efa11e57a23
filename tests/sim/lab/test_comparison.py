"""The lab's rows: paired, deterministic, and what theory says."""

from __future__ import annotations

import pytest

from cotidal.sim.engine import Here
from cotidal.sim.faults.schedule import parse_command
from cotidal.sim.lab.comparison import Row, compare, losing, story_of
from cotidal.sim.lab.configuration import COMPARED, Configuration, plan_of
from cotidal.sim.lab.measures import Measures, measured
from cotidal.sim.lab.table import cells, contradicts, flat, flat_runs
from cotidal.sim.plans import PLANS
from cotidal.sim.script import Script

EBB = PLANS["ebb"]
ONE = Configuration("acks=1", acks=1)
ALL = Configuration("acks=all")


def row(configuration: Configuration, *lost: int, broken: str = "") -> Row:
    runs = tuple(
        Measures(seed, "", 1_000, each, 0, 24_000, 2_400, 800, 9_000)
        for seed, each in enumerate(lost, start=1)
    )
    failed = (Measures(99, broken, 0, 0, 0, 24_000, 0, -1, -1),) if broken else ()
    return Row(configuration, runs, failed)


def test_the_same_seeds_give_the_same_table() -> None:
    faults = EBB._replace(seconds=6)
    first, second = (compare((ONE, ALL), faults, (1, 2)) for _ in range(2))
    assert first == second
    assert [cells(each) for each in first] == [cells(each) for each in second]
    assert [run.seed for run in first[0].runs] == [1, 2]


def test_more_processes_give_the_same_table() -> None:
    faults = EBB._replace(seconds=2)
    assert compare((ONE,), faults, (1, 2), engine=Here(2)) == compare((ONE,), faults, (1, 2))


ALONE = tuple(
    parse_command(line)
    for line in (
        "at 1.000 pause 2 for 9.000",
        "at 1.000 pause 3 for 9.000",
        "at 7.000 power 1 for 5.000 if mended",
    )
)
"""Whoever has its replicas on 1, 2 and 3 is left with one of them, and loses that one."""


def lost_by(configuration: Configuration) -> int:
    faults = EBB._replace(seconds=14)
    total = 0
    for seed in (1, 2, 3):
        found, _ = measured(seed, plan_of(configuration, faults), ALONE)
        assert found.broken == ""
        total += found.lost
    return total


@pytest.mark.parametrize("configuration", COMPARED, ids=lambda each: each.name)
def test_what_theory_says_is_kept_is_kept(configuration: Configuration) -> None:
    lost = lost_by(configuration)
    if configuration.keeps:
        assert lost == 0


@pytest.mark.parametrize(
    "configuration",
    [
        Configuration("acks=1", acks=1),
        Configuration("min ISR 1", min_isr=1),
        Configuration("no ELR", elr=False),
    ],
    ids=lambda each: each.name,
)
def test_what_theory_says_may_be_lost_is_lost(configuration: Configuration) -> None:
    assert lost_by(configuration) > 0


def test_theory_is_contradicted_by_a_loss_where_there_must_be_none() -> None:
    assert contradicts(row(ALL, 0, 0), EBB) is None
    assert contradicts(row(ONE, 0, 3), EBB) is None
    assert contradicts(row(ALL, 0, 3), EBB) == "acks=all: seed 2 lost 3 acknowledged records"
    assert contradicts(row(ALL, 0, 3), PLANS["beyond"]) is None
    told = contradicts(row(ONE, 0, broken="LOG_PREFIXES_MATCH"), EBB)
    assert told == "acks=1: seed 99 broke LOG_PREFIXES_MATCH"


def test_a_row_is_told_with_its_intervals() -> None:
    assert cells(row(ONE, 0, 0, 0, 500)) == (
        "acks=1",
        "1 of 4, 25.0 % [4.6..69.9]",
        "125,000 [0..375,000]",
        "0",
        "10.0 % [10.0..10.0]",
        "0.8 [0.8..0.8]",
        "9.0 [9.0..9.0]",
        "may lose",
        "lost",
    )


def test_a_row_for_programs_has_one_level() -> None:
    found = flat(row(ONE, 0, 500), EBB)
    assert (found["lost"], found["believed"], found["lost_ppm"]) == (500, 2_000, 250_000)
    assert not any(isinstance(value, dict | list | tuple) for value in found.values())
    assert [run["lost"] for run in flat_runs(row(ONE, 0, 500), EBB)] == [0, 500]


def test_the_story_of_a_loss_is_short_and_loses_again() -> None:
    faults = EBB._replace(seconds=14)
    plan = plan_of(ONE, faults)
    lossy = next(seed for seed in range(1, 9) if measured(seed, plan)[0].lost)
    found = story_of(row(ONE)._replace(runs=(measured(lossy, plan)[0],)), faults, tries=10)
    assert found is not None
    assert found.script.breaks == "LOST"
    assert losing(found.script)[0] == "LOST"
    assert len(found.script.schedule) <= 3


def test_no_loss_no_story() -> None:
    assert story_of(row(ALL, 0, 0), EBB, tries=1) is None


def test_a_run_that_breaks_a_promise_is_no_loss() -> None:
    plan = plan_of(ONE, EBB)._replace(replication=9, seconds=1)
    broken, outcome = losing(Script(1, plan, ()))
    assert broken == outcome.broken == "LEADER_APPEARS"
