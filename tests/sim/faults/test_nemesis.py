"""The nemesis does what its schedule says, when it says it, and nothing else."""

from __future__ import annotations

import pytest

from cotidal.sim import probes
from cotidal.sim.agenda import MS, SECOND
from cotidal.sim.faults.schedule import Command, draw_schedule, parse_command
from cotidal.sim.lab.measures import measured
from cotidal.sim.plans import PLANS
from cotidal.sim.run import Run
from cotidal.sim.trace import Trace
from cotidal.values import NodeId, TopicPartition
from simulated import go_through

CALM = PLANS["calm"]
TWO = NodeId(2)


def begun(*lines: str) -> Run:
    """A cluster whose workload has begun, with a schedule under way."""
    run = Run(1, CALM, schedule=tuple(parse_command(line) for line in lines))
    go_through(run, run._set_up())
    run.world.run_for(2 * SECOND)
    run.nemesis.begin()
    return run


def is_up(run: Run, node: NodeId) -> bool:
    process = run.world.machines[node].process
    return process is not None and not process.paused


@pytest.mark.parametrize("fault", ["kill", "power", "pause"])
def test_a_node_is_taken_down_at_its_time_for_its_time(fault: str) -> None:
    run = begun(f"at 0.500 {fault} 2 for 1.000")
    run.world.run_for(499 * MS)
    assert is_up(run, TWO)
    run.world.run_for(1 * MS)
    assert not is_up(run, TWO)
    run.world.run_for(1_000 * MS)
    assert is_up(run, TWO)


def test_a_wiped_node_comes_back_with_an_empty_disk_and_catches_up() -> None:
    run = begun("at 0.100 wipe 2 for 1.000 if whole")
    before = run.world.machines[TWO].config.directory_id
    run.world.run_for(200 * MS)
    assert run.world.machines[TWO].config.directory_id != before
    run.world.run_for(20 * SECOND)
    told = run.watch.ghost.told(TopicPartition("orders", 0))
    assert told is not None
    assert TWO in told.isr


@pytest.mark.parametrize("fault", ["full", "io-error"])
def test_a_log_whose_disk_fails_is_back_when_the_disk_is_replaced(fault: str) -> None:
    run = begun(f"at 0.100 {fault} 2 1 for 3.000")
    run.world.run_for(3 * SECOND)
    assert run.probes.seen[probes.LOG_OFFLINE] == 1
    incarnation = run.world.machines[TWO].incarnations
    run.world.run_for(20 * SECOND)
    assert run.world.machines[TWO].incarnations == incarnation + 1
    assert run.nemesis._whole()


def test_a_disk_lies_for_its_time_about_partitions_and_never_about_metadata() -> None:
    run = begun("at 0.100 lie 2 for 1.000", "at 0.900 lie 2 for 1.000")
    files = run.world.machines[TWO].files
    run.world.run_for(1_500 * MS)  # the second one lasts longer than the first
    assert not files.is_synced("/data/orders-0")
    assert not files.is_synced("/data/orders-0/00000000000000000000.log")
    assert files.is_synced("/data/__cluster_metadata-0/quorum-state")
    assert files.is_synced("/data/replication-offset-checkpoint")
    assert files.is_synced("/data")
    run.world.run_for(500 * MS)
    assert files.is_synced("/data/orders-0")


def test_what_a_node_alone_has_synced_is_lost_with_its_power_only_if_its_disk_lied() -> None:
    plan = PLANS["lone-lying"]
    schedule = draw_schedule(2, plan)
    lied, outcome = measured(2, plan, schedule)
    assert lied.lost > 0
    assert outcome.seen[probes.LIED_TO] > 0
    true = tuple(command for command in schedule if command.fault != "lie")
    kept, outcome = measured(2, plan._replace(exempt=frozenset()), true)
    assert (kept.lost, outcome.broken) == (0, None)
    assert probes.LIED_TO not in outcome.seen


def test_nodes_are_counted_round_and_round() -> None:
    run = begun("at 0.100 kill 5 for 10.000")
    run.world.run_for(200 * MS)
    assert [is_up(run, NodeId(id_)) for id_ in (1, 2, 3)] == [True, False, True]


def test_deafness_has_a_direction() -> None:
    run = begun("at 0.100 deafen 1 2 for 1.000")
    run.world.run_for(200 * MS)
    one, two = (run.world.machines[NodeId(id_)].host for id_ in (1, 2))
    assert run.world.network.link(two, one).blocked
    assert not run.world.network.link(one, two).blocked
    run.world.run_for(SECOND)
    assert not run.world.network.link(two, one).blocked


def test_a_guard_holds_a_command_back_while_an_isr_is_not_whole() -> None:
    run = begun("at 0.100 kill 1 for 30.000", "at 5.000 power 2 for 1.000 if whole")
    run.world.run_for(5_100 * MS)
    assert is_up(run, TWO)
    assert "fault: power" not in run.probes.seen


def test_one_cut_is_let_through_until_every_isr_has_been_whole_again() -> None:
    run = begun(
        "at 0.100 pause 3 for 25.000",
        "at 20.000 power 1 for 0.500 if mended",  # ISRs are without 3, and nobody has crashed
        "at 22.000 power 2 for 0.500 if mended",  # 1 has, and 3 is not back
        "at 45.000 power 2 for 0.500 if mended",  # all are back
    )
    run.world.run_for(22_100 * MS)
    assert run.probes.seen["fault: power"] == 1
    assert is_up(run, TWO)
    run.world.run_for(23_000 * MS)
    assert run.probes.seen["fault: power"] == 2
    assert not is_up(run, TWO)


def test_healing_ends_everything() -> None:
    run = begun(
        "at 0.100 kill 2 for 60.000",
        "at 0.100 isolate 1 for 60.000",
        "at 0.100 slow-link 1 3 by 0.500 for 60.000",
        "at 0.100 slow-disk 3 by 0.100 for 60.000",
        "at 0.100 clock-jump 3 by 100.000",
        "at 0.100 lie 3 for 60.000",
    )
    run.world.run_for(SECOND)
    run.nemesis.heal()
    network = run.world.network
    one, three = run.world.machines[NodeId(1)], run.world.machines[NodeId(3)]
    assert is_up(run, TWO)
    assert not network.link(one.host, three.host).blocked
    assert network.link(one.host, three.host).delay_us == network.delay_us
    assert (three.speed.slow_us, three.clock.wall_skew_ms) == (2 * MS, 0)
    assert three.files.lies is None


def traced(schedule: tuple[Command, ...]) -> list[str]:
    lines: list[str] = []
    Run(3, PLANS["harsh"]._replace(seconds=8), Trace(lines.append), schedule).go()
    return lines


def test_what_is_left_out_shifts_nothing_before_it() -> None:
    """No number that anybody draws depends on how many commands there are."""
    whole = draw_schedule(3, PLANS["harsh"]._replace(seconds=8))
    left_out = whole[-1]
    with_it, without_it = traced(whole), traced(whole[:-1])
    told = next(line for line in with_it if line.endswith(f"fault: {left_out}"))
    moment = told.split()[0]
    before = next(at for at, line in enumerate(with_it) if line.startswith(moment))
    assert before > 1_000
    assert with_it[:before] == without_it[:before]
    assert with_it[before:] != without_it[before:]
