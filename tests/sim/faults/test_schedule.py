"""Schedules: drawn from a seed, written as lines, read back."""

from __future__ import annotations

from itertools import pairwise

import pytest

from cotidal.sim.faults.schedule import FORMS, Command, draw_schedule, parse_command
from cotidal.sim.plans import PLANS

LINES = (
    "at 3.250 kill 2 for 1.400",
    "at 0.000 power 3 for 0.800 if whole",
    "at 9.001 power 1 for 0.020 if mended",
    "at 1.000 wipe 2 for 3.000 if whole",
    "at 1.000 full 2 17 for 3.000",
    "at 1.000 io-error 2 17 for 3.000",
    "at 1.000 lie 2 for 3.000",
    "at 12.345 stop 1 for 0.100",
    "at 1.000 pause 2 for 12.000",
    "at 1.000 isolate 3 for 2.000",
    "at 1.000 sever 1 2 for 2.000",
    "at 1.000 deafen 1 2 for 2.000",
    "at 1.000 flaky 2 for 2.000",
    "at 1.000 slow-link 1 2 by 0.400 for 2.000",
    "at 1.000 slow-disk 1 by 0.140 for 2.000",
    "at 1.000 clock-jump 1 by -1800.500",
    "at 1.000 break 617",
)


def test_every_fault_has_a_line_here() -> None:
    assert {line.split()[2] for line in LINES} == set(FORMS)


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_read_and_written_back_as_it_was(line: str) -> None:
    assert str(parse_command(line)) == line


def test_a_command_is_what_its_line_says() -> None:
    assert parse_command("at 3.25 power 2 for 1.4 if whole") == Command(
        3_250, "power", (2,), 0, 1_400, "whole"
    )


@pytest.mark.parametrize(
    "line",
    [
        "",
        "kill 2 for 1.4",
        "at 3 murder 2 for 1",
        "at 3 kill for 1",
        "at 3 kill 2",
        "at 3 kill 2 for",
        "at 3 kill 2 for ever",
        "at 3 kill 0 for 1",
        "at 3 kill 2 for 1 by 2",
        "at 3 kill 2 for 1 if raining",
        "at -3 kill 2 for 1",
        "at 3 kill 2 for -1",
        "at 3 sever 1 for 2",
    ],
)
def test_what_is_no_command_is_refused_in_a_sentence(line: str) -> None:
    with pytest.raises(ValueError, match=f"'{line}'"):
        parse_command(line)


@pytest.mark.parametrize("name", list(PLANS))
def test_a_drawn_schedule_survives_being_written(name: str) -> None:
    for seed in range(1, 30):
        schedule = draw_schedule(seed, PLANS[name])
        assert tuple(parse_command(str(command)) for command in schedule) == schedule
        assert list(schedule) == sorted(schedule, key=lambda command: command.at_ms)
        assert all(command.at_ms < PLANS[name].seconds * 1000 for command in schedule)


def test_plans_that_promise_differently_are_dealt_the_same_blows() -> None:
    plan = PLANS["harsh"]
    other = plan._replace(min_isr=1, acks=(0,), topic={"flush.messages": "1"}, partitions=9)
    assert draw_schedule(4, plan) == draw_schedule(4, other)
    assert draw_schedule(4, plan) != draw_schedule(5, plan)


def test_no_more_nodes_are_taken_down_at_a_time_than_the_plan_allows() -> None:
    plan = PLANS["mild"]
    falls = ("kill", "power", "stop", "pause")
    for seed in range(1, 200):
        up_at = 0
        for command in draw_schedule(seed, plan):
            if command.fault in falls:
                assert command.at_ms >= up_at
                up_at = command.at_ms + command.for_ms


def test_when_all_are_killed_each_is() -> None:
    plan = PLANS["harsh"]._replace(faults={"kill-all": 1}, seconds=10)
    schedule = draw_schedule(1, plan)
    moments = {command.at_ms for command in schedule}
    for moment in moments:
        struck = [command.nodes for command in schedule if command.at_ms == moment]
        assert struck == [(1,), (2,), (3,)]


def test_on_a_seesaw_two_nodes_are_killed_in_turns() -> None:
    turns = [command for command in draw_schedule(1, PLANS["seesaw"]) if command.fault == "kill"]
    first = turns[:5]
    assert len({command.nodes for command in first}) == 2
    for one, other in pairwise(first):
        assert one.nodes != other.nodes
        assert one.at_ms + one.for_ms == other.at_ms


def test_a_relapse_kills_one_node_again_and_again_each_time_it_is_back() -> None:
    plan = PLANS["harsh"]._replace(faults={"relapse": 1}, seconds=60, gap_ms=60_000)
    schedules = [draw_schedule(seed, plan) for seed in range(1, 9)]
    assert max(map(len, schedules)) > 2
    for schedule in schedules:
        assert {command.fault for command in schedule} <= {"kill"}
        assert len({command.nodes for command in schedule}) <= 1
        for before, after in pairwise(schedule):
            assert after.at_ms > before.at_ms + before.for_ms
