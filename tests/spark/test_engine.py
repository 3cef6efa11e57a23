"""Runs on executors are the runs of this process."""

from __future__ import annotations

from typing import Any

from cotidal.sim.campaign import campaign
from cotidal.sim.lab.comparison import compare
from cotidal.sim.lab.configuration import COMPARED
from cotidal.sim.plans import PLANS
from cotidal.spark.engine import OnSpark


def test_a_campaign_says_the_same_wherever_it_runs(spark: Any) -> None:
    plan = PLANS["mild"]
    told: list[int] = []
    there = campaign(
        range(1, 4), plan, engine=OnSpark(spark), on_outcome=lambda each: told.append(each.seed)
    )
    here = campaign(range(1, 4), plan)
    assert there._replace(cpu_seconds=0) == here._replace(cpu_seconds=0)
    assert sorted(told) == [1, 2, 3]


def test_the_lab_measures_the_same_wherever_it_runs(spark: Any) -> None:
    faults = PLANS["ebb"]._replace(seconds=2)
    one = COMPARED[:1]
    assert compare(one, faults, (1, 2), engine=OnSpark(spark)) == compare(one, faults, (1, 2))
