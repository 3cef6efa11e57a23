"""A simulated cluster in which nothing is wrong, for tests that then make something wrong."""

from __future__ import annotations

from collections.abc import Iterator

from cotidal.sim.agenda import SECOND
from cotidal.sim.checkers.window import hosted_by, leads_quorum
from cotidal.sim.plans import PLANS
from cotidal.sim.process import Process
from cotidal.sim.run import Run
from cotidal.values import TopicPartition

ORDERS = TopicPartition("orders", 0)


def go_through(run: Run, waits: Iterator[int]) -> None:
    """One part of a run's course: between its steps so much time passes."""
    for micros in waits:
        run.world.run_for(micros)


def calm_run(seconds: int = 2) -> Run:
    """Records are written and read; no fault, no administrator."""
    run = Run(1, PLANS["calm"]._replace(admin_gap_ms=0))
    go_through(run, run._set_up())
    run.world.run_for(seconds * SECOND)
    return run


def leader_of(run: Run, partition: TopicPartition) -> Process:
    for process in run.world.running:
        if hosted_by(process)[partition].replica.leadership is not None:
            return process
    raise AssertionError("nobody leads it")


def controller_of(run: Run) -> Process:
    return next(process for process in run.world.running if leads_quorum(process))
