"""Who has the machine when, and what is noted of it, with real nodes."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

import bench.run
from bench import applications, cotidal_cluster
from bench.load import Volume
from bench.row import LIBRDKAFKA_LOADS, LOADED_PSS, START
from bench.run import Contestant, Cook, Plan, Run
from bench.server import Recipe

SMALL = Volume(seconds=0.3, bytes_max=200_000, latency_records=10)
PLAN = Plan(1, 2, SMALL, SMALL, 0, 0.05, applications.QUICK)


def test_alone_each_contestant_has_new_clusters_and_the_machine_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = LIBRDKAFKA_LOADS[:1]
    monkeypatch.setattr(bench.run, "LIBRDKAFKA_LOADS", loads)
    cooked: list[tuple[str, Recipe]] = []

    def watched(name: str) -> Cook:
        def cook(brokers: int, directory: Path) -> Recipe:
            running = [file for _, before in cooked for file in before.pid_files if file.exists()]
            assert not any(psutil.pid_exists(int(file.read_text())) for file in running)
            recipe = cotidal_cluster.recipe(brokers, directory)
            cooked.append((name, recipe))
            return recipe

        return cook

    run = Run([Contestant(name, watched(name)) for name in ("one", "other")], PLAN, tmp_path)
    run.measure_alone()
    assert [name for name, _ in cooked] == ["one", "other", "other", "one"]
    assert len({recipe.directory for _, recipe in cooked}) == len(cooked)
    measured = {each.row.key: each.samples for each in run.standings()}
    rows = [START, LOADED_PSS, *(row for load in loads for row, _ in load.rows)]
    for row in rows:
        assert {name: len(found) for name, found in measured[row.key].items()} == {
            "one": 2,
            "other": 2,
        }, row.title
