"""Failover of the controller: a formula for ZooKeeper's era, the real thing for ours."""

from __future__ import annotations

import pytest

from cotidal.sim.models.controller_failover import kraft_ms, zookeeper_ms


def test_zookeeper_takes_its_session_and_two_and_five_for_every_partition() -> None:
    assert zookeeper_ms(0) == 18_000
    assert zookeeper_ms(10_000, brokers=10) == 18_000 + 20_000 + 5_000


@pytest.mark.parametrize("partitions", [3, 60])
def test_a_killed_controller_is_replaced_at_once_however_many_partitions(partitions: int) -> None:
    assert 0 < kraft_ms(partitions, killed=True) < 500


def test_a_controller_without_power_is_replaced_when_its_session_ends() -> None:
    assert 3_000 <= kraft_ms(3) < 8_000
