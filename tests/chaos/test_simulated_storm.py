"""A storm on real processes opens in the page, as a run of the simulator."""

from __future__ import annotations

import pytest

from cotidal.console.run_world import RunWorld
from cotidal.console.world import Command
from cotidal.sim.script import parse_script
from tests.chaos.plan import STORM, as_simulated, storm_schedule

pytestmark = pytest.mark.plain


def test_every_blow_of_a_storm_is_a_line_of_its_script() -> None:
    schedule = storm_schedule(7, 30)
    script = parse_script(as_simulated(7, schedule))
    assert script.schedule == schedule
    assert script.plan.partitions == STORM.partitions
    assert script.plan.settings == STORM.settings
    assert script.plan.seconds * 1000 > schedule[-1].at_ms


def test_a_storm_is_seen_in_the_page_from_its_first_blow_to_its_end() -> None:
    schedule = storm_schedule(7, 1)[:2]
    world = RunWorld.opened(Command({"do": "open", "script": as_simulated(7, schedule)}))
    for _ in range(200):
        if world.picture()["state"] in ("ended", "broken"):
            break
        world.obey(Command({"do": "run-for", "ms": 1000}))
    assert world.picture()["state"] == "ended"
    told = [item["text"] for item in world.logs["told"] if item["kind"] == "fault"]
    assert len(told) >= len(schedule)
    assert all(each.fault.split("-")[0] in " ".join(told) for each in schedule), told
