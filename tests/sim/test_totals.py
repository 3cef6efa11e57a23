"""Campaigns added up over days."""

from __future__ import annotations

import json

import pytest

from cotidal.sim.run import Outcome
from cotidal.sim.totals import Part, add_up, gathered, line_of, parse_line, part_of


def outcome(seed: int, *, broken: str | None = None, seen: tuple[str, ...] = ()) -> Outcome:
    met = dict.fromkeys(seen, 1)
    return Outcome(seed, "harsh", broken, "", 0, 0, 100, 130, 0, 0, 0, 0, met, ())


def part(*seeds: tuple[int, int], plan: str = "harsh", commit: str = "a") -> Part:
    return Part(plan, commit, "plain", seeds, 1_000, 1_300, 2.0, (), {})


def test_a_part_tells_its_seeds_as_ranges_whatever_order_they_ended_in() -> None:
    ended = [outcome(seed) for seed in (3, 1, 2, 9, 7, 8, 20)]
    made = part_of(ended, commit="a", build="plain", seconds=1.0)
    assert made.seeds == ((1, 3), (7, 9), (20, 20))
    assert made.runs == 7
    assert (made.steps, made.events) == (700, 910)


def test_a_part_names_the_seeds_that_failed_and_counts_the_runs_that_met_a_situation() -> None:
    ended = [outcome(2, broken="X", seen=("a", "b")), outcome(1, broken="X", seen=("a",))]
    made = part_of(ended, commit="a", build="plain", seconds=1.0)
    assert made.failed == (1, 2)
    assert made.met == {"a": 2, "b": 1}


def test_a_part_is_what_its_line_says() -> None:
    made = part_of([outcome(5, seen=("a",))], commit="a", build="compiled", seconds=1.25)
    assert parse_line(line_of(made)) == made


@pytest.mark.parametrize("line", ["", "[]", "{}", '{"plan": "harsh"}', "no JSON at all"])
def test_another_line_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        parse_line(line)


def test_a_seed_that_ran_twice_is_one_seed_and_two_runs() -> None:
    (total,) = add_up([part((1, 10)), part((6, 15), (40, 40), commit="b")])
    assert (total.seeds, total.runs, total.commits) == (16, 21, 2)
    assert (total.steps, total.events) == (2_000, 2_600)


def test_plans_are_added_up_each_for_itself() -> None:
    totals = add_up([part((1, 2), plan="wide"), part((1, 3)), part((3, 4), plan="wide")])
    assert [(total.plan, total.seeds) for total in totals] == [("harsh", 3), ("wide", 4)]


def test_what_too_few_runs_of_a_plan_have_met_is_missing() -> None:
    few = part((1, 200), plan="wiped")._replace(met={"a node comes back with an empty disk": 1})
    (total,) = add_up([few])
    assert total.missing == ("a node comes back with an empty disk",)
    (total,) = add_up([few, few])
    assert total.missing == ("a node comes back with an empty disk",)
    (total,) = add_up([few, few._replace(met={"a node comes back with an empty disk": 3})])
    assert total.missing == ()


def test_lines_from_before_protocol_events_were_counted_can_be_read() -> None:
    told = json.loads(line_of(part((1, 2))))
    del told["events"]
    assert parse_line(json.dumps(told)) == part((1, 2))._replace(events=0)


def test_parts_of_one_plan_commit_and_build_are_gathered_into_one() -> None:
    first = part((1, 10))._replace(met={"a": 3, "b": 1}, failed=(7,))
    second = part((11, 12), (30, 30))._replace(met={"a": 2, "c": 1}, failed=(30,))
    (line,) = gathered([first, second])
    assert line.seeds == ((1, 12), (30, 30))
    assert (line.steps, line.events, line.seconds) == (2_000, 2_600, 4.0)
    assert (line.failed, line.met) == ((7, 30), {"a": 5, "b": 1, "c": 1})


def test_what_is_gathered_adds_up_to_the_same() -> None:
    parts = [
        *(part((1, 10)), part((5, 6)), part((11, 20), commit="b"), part((21, 30))),
        *(part((1, 3), plan="wide"), part((4, 9), plan="wide"), part((2, 2), plan="wide")),
    ]
    lines = gathered(parts)
    assert add_up(lines) == add_up(parts)
    assert len(lines) == 5, "a seed that ran again has a line of its own"
    assert gathered(lines) == lines
