"""What a majority and an ISR need and survive, and whom they wait for."""

from __future__ import annotations

import pytest

from cotidal.sim.agenda import Agenda
from cotidal.sim.models.quorum_log import (
    COMPARED,
    DELAY_US,
    JITTER_US,
    Log,
    isr_log,
    majority_log,
    wait_us,
)
from cotidal.sim.network import Network

MAJORITY, ISR = majority_log(1), isr_log(3, 2)


def test_to_lose_one_copy_a_majority_needs_three_and_an_isr_two() -> None:
    assert (majority_log(1).copies, majority_log(1).lost_max) == (3, 1)
    assert (isr_log(2, 2).copies, isr_log(2, 2).lost_max) == (2, 1)


def test_min_isr_1_goes_on_writing_where_a_majority_stands_still() -> None:
    assert isr_log(3, 1).gone_max == 2 > majority_log(1).gone_max
    assert isr_log(3, 1).lost_max == 0


def test_an_isr_waits_for_its_slowest_member_and_a_majority_does_not() -> None:
    assert wait_us(ISR, slow_us=50_000)[0] > 100_000
    assert wait_us(MAJORITY, slow_us=50_000)[0] < 1_000


@pytest.mark.parametrize("log", COMPARED, ids=lambda log: log.name)
def test_waits_are_round_trips_and_the_same_every_time(log: Log) -> None:
    median, late = wait_us(log)
    assert 2 * DELAY_US <= median <= late < 2 * (DELAY_US + JITTER_US)
    assert wait_us(log) == (median, late)


def test_the_model_has_the_simulators_network() -> None:
    network = Network(Agenda(), 1)
    assert (network.delay_us, network.jitter_us) == (DELAY_US, JITTER_US)
