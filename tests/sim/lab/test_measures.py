"""What one run shows: counted from what clients were told and what is there in the end."""

from __future__ import annotations

from cotidal.sim.faults.schedule import parse_command
from cotidal.sim.lab.configuration import Configuration, plan_of
from cotidal.sim.lab.measures import Measures, measure, measured, quantile
from cotidal.sim.plans import PLANS
from cotidal.sim.run import Run

FAULTS = PLANS["ebb"]._replace(seconds=4)


def calm(configuration: Configuration) -> Measures:
    return measured(1, plan_of(configuration, FAULTS), ())[0]


def test_without_faults_nothing_is_lost_doubled_or_late() -> None:
    found = calm(Configuration("all"))
    assert (found.broken, found.lost, found.doubled, found.unavailable_ms) == ("", 0, 0, 0)
    assert found.believed > 100
    assert 0 < found.p50_us < found.p99_us < 100_000


def test_acks_1_is_answered_sooner_than_acks_all() -> None:
    assert calm(Configuration("one", acks=1)).p50_us < calm(Configuration("all")).p50_us


def test_regions_far_away_are_waited_for() -> None:
    near = calm(Configuration("near", replicas=5))
    far = calm(Configuration("far", region_ms=100, replicas=5))
    assert far.p50_us > near.p50_us + 50_000


def test_with_acks_0_what_was_sent_is_believed_and_nothing_is_known_of_time() -> None:
    found = calm(Configuration("none", acks=0))
    assert found.believed > 100
    assert (found.lost, found.unavailable_ms, found.p50_us) == (0, -1, -1)


def test_time_in_which_nothing_can_be_acknowledged_is_counted() -> None:
    plan = plan_of(Configuration("all", replicas=5), FAULTS._replace(seconds=10))
    cut = tuple(parse_command(f"at 2.000 pause {node} for 4.000") for node in range(1, 6))
    found = measured(1, plan, cut)[0]
    assert 4_000 <= found.unavailable_ms <= 8_000
    assert found.p99_us > 3_000_000


def test_an_acknowledged_record_that_is_nowhere_is_lost() -> None:
    run = Run(1, plan_of(Configuration("all"), FAULTS), schedule=())
    outcome = run.go()
    before = measure(run, outcome)
    partition, acked = next(iter(run.history.acked.items()))
    del run.final.consumed[partition][acked[0].offset]
    after = measure(run, outcome)
    assert after.lost == before.lost + acked[0].records


def test_a_batch_that_is_there_again_is_doubled() -> None:
    run = Run(1, plan_of(Configuration("all"), FAULTS), schedule=())
    outcome = run.go()
    consumed = next(iter(run.final.consumed.values()))
    consumed[10_000] = next(iter(consumed.values()))
    assert measure(run, outcome).doubled == 1


def test_quantiles_are_values_that_were_there() -> None:
    assert [quantile([1, 2, 3, 4], percent) for percent in (1, 50, 75, 99, 100)] == [1, 2, 3, 4, 4]
    assert quantile([], 50) == -1
