"""Scripts of runs: written, read back, refused."""

from __future__ import annotations

import pytest

from cotidal.invariants import ACKED_IS_KEPT
from cotidal.sim.faults.schedule import Command
from cotidal.sim.plan import LOSS
from cotidal.sim.plans import PLANS
from cotidal.sim.script import Script, of_seed, parse_script, write_script

TEXT = """\
# LEADER_HOLDS_ACKED: a story
plan harsh
seed 22
set seconds 4
set topic {"flush.messages": "1"}
set acks [-1]
set exempt ["ACKED_IS_KEPT"]
at 1.250 kill 2 for 1.400
at 2.000 break 5
breaks LEADER_HOLDS_ACKED
"""


def test_a_script_says_what_is_run() -> None:
    script = parse_script(TEXT)
    plan = PLANS["harsh"]._replace(
        seconds=4,
        topic={"flush.messages": "1"},
        acks=(-1,),
        exempt=frozenset({ACKED_IS_KEPT}),
    )
    kill, cut = Command(1_250, "kill", (2,), 0, 1_400), Command(2_000, "break", (5,))
    assert script == Script(22, plan, (kill, cut), "LEADER_HOLDS_ACKED")


def test_a_script_is_written_as_it_was_read() -> None:
    assert write_script(parse_script(TEXT), ("LEADER_HOLDS_ACKED: a story",)) == TEXT


@pytest.mark.parametrize("name", list(PLANS))
def test_every_plan_survives_being_written(name: str) -> None:
    script = of_seed(3, PLANS[name]._replace(seconds=99, exempt=LOSS, min_isr=1))
    assert parse_script(write_script(script)) == script


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no seed"),
        ("seed 1", "no plan"),
        ("plan harsh", "no seed"),
        ("plan nope\nseed 1", "line 1: there is no plan 'nope'"),
        ("plan harsh\nseed x", "line 2"),
        ("set seconds 4\nplan harsh\nseed 1", "line 1: it names no plan"),
        ("plan harsh\nseed 1\nset faults {}", "line 3: a plan has no 'faults'"),
        ("plan harsh\nseed 1\nset weather 4", "line 3: a plan has no 'weather'"),
        ("plan harsh\nseed 1\nset seconds [4]", "line 3: seconds is such a thing as"),
        ("plan harsh\nseed 1\nset seconds", "line 3"),
        ("plan harsh\nseed 1\nat 3 kill", "line 3: 'at 3 kill' does not read as kill"),
        ("plan harsh\nseed 1\nhello", "line 3: 'hello' begins with none of"),
    ],
)
def test_what_is_no_script_is_refused_with_its_line(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_script(text)
