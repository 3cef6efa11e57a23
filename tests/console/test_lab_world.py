"""The durability lab behind the page: rows that fill as runs are done."""

import pytest

from cotidal.console.world import Command, Refused
from cotidal.console.worlds import WORLDS
from cotidal.sim.script import parse_script

ONE = {"name": "acks=1", "acks": "1"}
SAFE = {"name": "safe", "acks": "all", "min_isr": 2}


@pytest.fixture
def lab():
    return WORLDS["lab"](Command({"do": "open", "world": "lab"}))


def do(world, name, **said):
    return world.obey(Command({"do": name, **said}))


def test_each_turn_is_a_run_and_rows_fill_as_they_come(lab):
    do(lab, "measure", plan="ebb", seeds=1, configurations=[ONE, SAFE])
    assert (lab.picture()["done"], lab.picture()["total"]) == (0, 2)
    lab.advance(40)
    assert [row["runs"] for row in lab.picture()["rows"]] == [1, 0]
    lab.advance(40)
    picture = lab.picture()
    assert picture["state"] == "paused"
    one, safe = picture["rows"]
    assert one["lost"] > 0
    assert safe["lost"] == 0
    assert one["believed"] > 100
    assert one["p50_ms"] < safe["p50_ms"] < safe["p99_ms"]
    found = do(lab, "story", row=0)
    script = parse_script(found["script"])
    assert script.plan.acks == (1,)
    assert script.schedule
    with pytest.raises(Refused, match="lost anything"):
        do(lab, "story", row=1)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_loss_is_told_in_fewer_commands(lab):
    do(lab, "measure", plan="ebb", seeds=1, configurations=[ONE])
    lab.advance(40)
    whole = parse_script(do(lab, "story", row=0)["script"])
    short = parse_script(do(lab, "story", row=0, tries=30)["script"])
    assert len(short.schedule) < len(whole.schedule)


def test_it_can_be_stopped(lab):
    do(lab, "measure", plan="ebb", seeds=50, configurations=[ONE])
    do(lab, "stop")
    lab.advance(40)
    assert (lab.picture()["done"], lab.picture()["total"]) == (0, 0)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"configurations": []}, "1 to 12"),
        ({"configurations": [ONE], "seeds": 10_000}, "from 1 to 200"),
        ({"configurations": [ONE], "plan": "none"}, "one of"),
        ({"configurations": [{"replicas": 7}], "plan": "calm"}, "too few replicas"),
        ({"configurations": [{"acks": "2"}]}, "one of"),
        ({"configurations": ["acks"]}, "object"),
    ],
)
def test_what_cannot_be_measured_is_refused(lab, said, why):
    with pytest.raises(Refused, match=why):
        do(lab, "measure", **said)


def test_before_anything_is_measured_there_is_no_story(lab):
    with pytest.raises(Refused, match="nothing has been measured"):
        do(lab, "story", row=0)
