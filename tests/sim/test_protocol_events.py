"""What a run counts as protocol events is what the machines of core were told and had to decide.

Counted a second time by looking at every call from node/ into a machine.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Final

import pytest

from cotidal.sim.plans import PLANS
from cotidal.sim.run import Run
from cotidal.sim.world import Shape, World

PARTITION: Final = {
    "leader.py": "become_leader on_partition_changed on_brokers_changed on_follower_fetched"
    " shrink_isr on_isr_answered stop_leading admit_batch admit_marker on_appended admit_delete",
    "follower.py": "follow on_answered on_appended on_leader_ends on_log_cut",
    "replica.py": "on_log_opened on_start_moved on_log_failed",
    "resting.py": "goes_on",
}
COORDINATOR: Final = "ask on_ticked on_loaded on_committed on_refused replay replay_end"
DUTIES: Final = ("decide_due", "decide_refused", "decide_auto_create")
"""Of the controller, beside what it is asked for."""


class Calls:
    """A profiler that knows the machines."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or frame.f_back is None:
            return
        code = frame.f_code
        caller = frame.f_back.f_code
        _, inside, place = code.co_filename.rpartition("/cotidal/")
        if inside and "/cotidal/node/" in caller.co_filename:
            machine = _machine(place, code.co_name)
            if machine is not None:
                self.seen[machine] += 1
            elif code.co_name == "_evaluate" and caller.co_name == "begin":
                pending = frame.f_locals["pending"]
                if pending.replica is None:
                    self.seen["partition"] += len(pending.partitions)


def _machine(place: str, name: str) -> str | None:
    room, _, file = place.rpartition("/")
    if room == "core/partition" and name in PARTITION.get(file, "").split():
        return "partition"
    if place == "core/quorum/node.py" and name == "step":
        return "quorum"
    if room == "api" and name == "decide":
        return "controller"
    if place == "core/cluster/image.py" and name == "replay":
        return "controller"
    if room.startswith("core/cluster") and name in DUTIES:
        return "controller"
    if file == "coordinator.py" and room.startswith("core/") and name in COORDINATOR.split():
        return "coordinator"
    return None


@pytest.mark.plain
@pytest.mark.parametrize(("plan", "seconds"), [("groups", 4), ("reconfiguration", 3)])
def test_every_call_from_a_node_into_a_machine_is_counted_once(plan: str, seconds: int) -> None:
    calls = Calls()
    run = Run(3, PLANS[plan]._replace(seconds=seconds))
    sys.setprofile(calls)
    try:
        outcome = run.go()
    finally:
        sys.setprofile(None)
    assert outcome.broken is None
    assert outcome.events == calls.seen.total()
    assert set(calls.seen) >= {"partition", "quorum", "controller"}
    assert ("coordinator" in calls.seen) is (plan == "groups")


def test_events_of_a_process_that_has_ended_stay_counted(one_node: World) -> None:
    (node_id,) = one_node.machines
    before = one_node.events
    assert before > 0
    one_node.kill(node_id)
    assert one_node.events == before
    assert one_node.start(node_id)
    one_node.run_for(1_000_000)
    assert one_node.events > before


@pytest.fixture
def one_node() -> World:
    world = World(1, Shape(nodes=1))
    for node_id in world.machines:
        assert world.start(node_id)
    world.run_for(1_000_000)
    return world
