"""Runs of the simulator, seen: the same run as without anybody looking."""

import pytest

from cotidal.console.world import Command, Refused
from cotidal.console.worlds import WORLDS
from cotidal.invariants import ISR_WELL_FORMED
from cotidal.sim.run import run
from cotidal.sim.script import parse_script
from cotidal.sim.violation import Violation

SHORT = "plan calm\nseed 5\nset seconds 2\nat 0.500 kill 2 for 0.400\n"


def opened(**said):
    return WORLDS["run"](Command({"do": "open", "world": "run", **said}))


def do(world, name, **said):
    return world.obey(Command({"do": name, **said}))


def test_a_run_that_is_seen_is_the_run_that_is_not():
    world = opened(script=SHORT)
    do(world, "run-for", ms=100_000)
    script = parse_script(SHORT)
    alone = run(script.seed, script.plan, schedule=script.schedule)
    picture = world.picture()
    assert picture["state"] == "ended"
    assert (picture["now_us"], world.box.world.steps) == (alone.moment_us, alone.steps)
    assert alone.broken is None


def test_a_script_is_run_with_its_own_faults_and_no_others():
    world = opened(script=SHORT)
    do(world, "run-for", ms=100_000)
    faults = [item["text"] for item in world.logs["told"] if item["kind"] == "fault"]
    assert faults == ["Done to the cluster: at 0.500 kill 2 for 0.400."]
    assert world.picture()["state"] == "ended"
    assert world.logs["told"][-1]["text"].startswith("The run is over")
    again = opened(**world.about["start"])
    do(again, "run-for", ms=100_000)
    assert list(again.logs["told"]) == list(world.logs["told"])


def test_it_goes_back_and_to_the_same_end():
    world = opened(script=SHORT)
    do(world, "run-for", ms=100_000)
    end = world.picture()
    do(world, "back")
    assert world.picture()["state"] == "paused"
    assert world.picture()["now_us"] < end["now_us"]
    do(world, "run-for", ms=100_000)
    assert world.picture() == end


def test_nothing_can_be_done_to_it():
    world = opened(script=SHORT)
    assert world.about["can"] == []
    with pytest.raises(Refused, match="knows no 'kill'"):
        do(world, "kill", node=1)


def test_promises_that_are_given_up_are_no_green_lamps():
    lamps = opened(plan="beyond", seed=1).picture()["lamps"]
    assert lamps["ACKED_IS_KEPT"] == "given up"
    assert lamps["ONE_LEADER_PER_EPOCH"] == "holds"


def test_a_promise_that_breaks_stops_it(monkeypatch):
    """Planted: the checker calls the first change that the kill brings a broken promise."""
    world = opened(script=SHORT)

    def look(place, told):
        raise Violation(ISR_WELL_FORMED, "planted")

    monkeypatch.setattr(world.box.watch.metadata, "_look_at_partition", look)
    do(world, "run-for", ms=100_000)
    picture = world.picture()
    assert picture["state"] == "broken"
    assert picture["broken"]["name"] == "ISR_WELL_FORMED"
    assert picture["broken"]["sentence"] == "planted"


@pytest.mark.parametrize(
    "said",
    [{"script": "plan none"}, {"script": "at 3"}, {"plan": "none"}, {"script": "x" * 200_000}],
)
def test_what_is_no_run_is_refused(said):
    with pytest.raises(Refused):
        opened(**said)
