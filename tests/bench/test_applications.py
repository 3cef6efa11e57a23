"""Groups and transactions of the bench, a little of each, against a real node."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import cotidal_cluster
from bench.applications import Amount, measure
from bench.row import APPLICATIONS
from bench.server import serving


@pytest.mark.slow
def test_every_row_is_filled(tmp_path: Path) -> None:
    little = Amount(members=3, rebalances=1, commits=120, transaction_seconds=0.3, groups=20)
    with serving(cotidal_cluster.recipe(1, tmp_path)) as server:
        measured = measure(server, little)
    assert measured.keys() == set(APPLICATIONS)
    assert all(sample.value > 0 for sample in measured.values())
