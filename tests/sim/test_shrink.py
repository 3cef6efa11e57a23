"""Shrinking: what a failure takes is kept, the rest goes, in a bounded number of runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cotidal.core.partition import leader
from cotidal.invariants import HIGH_WATERMARK_WAITS
from cotidal.sim.faults.schedule import parse_command
from cotidal.sim.plans import PLANS
from cotidal.sim.run import Outcome, run
from cotidal.sim.script import Script, of_seed, parse_script, write_script
from cotidal.sim.shrink import Judge, shrink
from cotidal.values import Offset

FULL = of_seed(8, PLANS["harsh"])


def outcome_of(script: Script, *, broken: str | None, seconds: int = 999) -> Outcome:
    moment = seconds * 1_000_000
    return Outcome(script.seed, "harsh", broken, "", moment, 0, 0, 0, 0, 0, 0, 0, {}, ())


def judged(goes_wrong: Callable[[Script], bool]) -> Judge:
    """A world in which a run goes wrong if, and only if, it is told to."""

    def judge(script: Script) -> tuple[str, Outcome]:
        wrong = goes_wrong(script)
        broken = "SOMETHING" if wrong else None
        return broken or "", outcome_of(script, broken=broken)

    return judge


@pytest.mark.parametrize("kept", [(0,), (3,), (2, 9), (1, 11, 20), (0, 1, 2, 3)])
def test_exactly_what_it_takes_is_left(kept: tuple[int, ...]) -> None:
    needed = {FULL.schedule[at][1:3] for at in kept}
    found = shrink(FULL, judge=judged(lambda script: needed <= {c[1:3] for c in script.schedule}))
    assert found is not None
    assert {command[1:3] for command in found.script.schedule} == needed
    assert len(found.script.schedule) == len(needed)
    assert found.script.breaks == "SOMETHING"
    assert found.commands_before == len(FULL.schedule)


def test_the_workload_shrinks_to_what_it_takes() -> None:
    found = shrink(FULL, judge=judged(lambda script: 1 in script.plan.acks))
    assert found is not None
    plan = found.script.plan
    assert (plan.acks, plan.consumers, plan.admin_gap_ms, plan.partitions) == ((1,), 0, 0, 1)
    assert found.script.schedule == ()


def test_no_more_runs_are_tried_than_allowed() -> None:
    tried: list[Script] = []

    def judge(script: Script) -> tuple[str, Outcome]:
        tried.append(script)
        return "SOMETHING", outcome_of(script, broken="SOMETHING")

    found = shrink(FULL, judge=judge, tries=7)
    assert found is not None
    assert found.tries == len(tried) == 7


def test_what_breaks_another_promise_is_not_the_same_failure() -> None:
    def judge(script: Script) -> tuple[str, Outcome]:
        name = "ONE" if script == FULL else "OTHER"
        return name, outcome_of(script, broken=name)

    found = shrink(FULL, judge=judge)
    assert found is not None
    assert found.script == FULL._replace(breaks="ONE")


def test_a_run_that_holds_is_not_shrunk() -> None:
    assert shrink(FULL, judge=judged(lambda script: False)) is None


def test_times_are_rounded_where_it_makes_no_difference() -> None:
    command = parse_command("at 7.777 kill 2 for 0.123")
    odd = FULL._replace(schedule=(command,))
    found = shrink(odd, judge=judged(lambda script: len(script.schedule) == 1))
    assert found is not None
    assert list(map(str, found.script.schedule)) == ["at 1.000 kill 2 for 0.100"]


@pytest.mark.plain
def test_a_planted_bug_ends_as_a_script_that_shows_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A leader that waits for nobody: it takes a follower that lags to see it."""

    def reckless(*, leader_end: Offset, ends_waited_for: object) -> Offset:
        return leader_end

    monkeypatch.setattr(leader, "committed_offset", reckless)
    full = of_seed(8, PLANS["harsh"]._replace(seconds=5))
    found = shrink(full, tries=12)
    assert found is not None
    again = parse_script(write_script(found.script, ("a story",)))
    assert again == found.script
    assert len(again.schedule) < len(full.schedule)
    outcome = run(again.seed, again.plan, schedule=again.schedule)
    assert outcome.broken == again.breaks == "HIGH_WATERMARK_WAITS", HIGH_WATERMARK_WAITS
    monkeypatch.undo()
    assert run(again.seed, again.plan, schedule=again.schedule).broken is None
