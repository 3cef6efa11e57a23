"""The loads through librdkafka, against a real node."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import cotidal_cluster
from bench.load import LoadFailed, Target, Volume
from bench.row import LIBRDKAFKA_LOADS
from bench.server import serving

SMALL = Volume(seconds=0.5, bytes_max=1_000_000, latency_records=20)


def test_every_load_fills_its_rows(tmp_path: Path) -> None:
    with serving(cotidal_cluster.recipe(1, tmp_path)) as server:
        target = Target(server)
        for load in LIBRDKAFKA_LOADS:
            samples = target.run(load, SMALL)
            assert samples.keys() == {row for row, _ in load.rows}
            assert all(sample.value > 0 for sample in samples.values())


def test_records_that_are_refused_are_not_counted_as_speed(tmp_path: Path) -> None:
    too_large = LIBRDKAFKA_LOADS[0]._replace(size_bytes=2_000_000)
    with serving(cotidal_cluster.recipe(1, tmp_path)) as server, pytest.raises(LoadFailed):
        Target(server).run(too_large, SMALL._replace(bytes_max=4_000_000))
