"""Processes come and go: what the next one finds."""

from __future__ import annotations

from cotidal.sim.agenda import MS, SECOND
from cotidal.sim.process import CLEAN_MARK
from cotidal.values import NodeId
from simulated import calm_run

TWO = NodeId(2)


def test_a_stop_in_order_leaves_a_mark() -> None:
    run = calm_run()
    process = run.world.machines[TWO].process
    assert process is not None
    process.request_stop()
    run.world.run_for(10 * SECOND)
    assert not process.alive
    assert run.world.machines[TWO].files.exists(CLEAN_MARK)


def test_who_stops_before_its_logs_are_open_leaves_no_mark() -> None:
    """They may be as the crash before has left them."""
    run = calm_run()
    machine = run.world.machines[TWO]
    run.world.kill(TWO)
    assert run.world.start(TWO)
    process = machine.process
    assert process is not None
    run.world.run_for(1 * MS)
    process.request_stop()
    run.world.run_for(10 * SECOND)
    assert not process.alive
    assert not process.serving
    assert not machine.files.exists(CLEAN_MARK)
