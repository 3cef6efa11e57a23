"""pytest's part: ``cotidal_cluster``, a cluster for one test, and ``cotidal_diverged``, one with a
partition whose old leader is about to come back with a tail of its own (divergence.py).

    pytest_plugins = ["cotidal.testing.plugin"]     # in conftest.py

    def test_orders_arrive(cotidal_cluster):
        producer = Producer({"bootstrap.servers": cotidal_cluster.bootstrap})

    @pytest.mark.cotidal(brokers=1, settings={"num.partitions": "6"})
    def test_alone(cotidal_cluster): ...

Not found by itself, through an entry point: pytest would rewrite every assertion of the product.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cotidal.testing.cluster import Cluster
    from cotidal.testing.divergence import Diverged


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "cotidal(brokers=3, settings={}): what cotidal_cluster is made of"
    )


@pytest.fixture
def cotidal_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three brokers in this process, or what the mark ``cotidal`` asks for."""
    from cotidal.testing.cluster import Cluster

    mark = request.node.get_closest_marker("cotidal")
    with Cluster(**(mark.kwargs if mark else {})) as cluster:
        yield cluster


@pytest.fixture
def cotidal_diverged() -> Iterator[Diverged]:
    """Three brokers, of which one that led is down with records that the others do not have."""
    from cotidal.testing.divergence import diverged

    with diverged() as parted:
        yield parted
