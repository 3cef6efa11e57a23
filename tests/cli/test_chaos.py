"""`cotidal chaos` on a cluster of three processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cotidal.testing.cluster import ProcessCluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[ProcessCluster]:
    with ProcessCluster(3) as cluster:
        yield cluster


@pytest.fixture
def chaos(cluster: ProcessCluster, offline: Any) -> Any:
    def call(*arguments: str) -> Any:
        return offline("chaos", *arguments, "--data", str(cluster.data))

    return call


def shown(chaos: Any) -> dict[str, str]:
    status, out, _ = chaos("show", "--json")
    assert status == 0
    found: dict[str, str] = json.loads(out)
    return found


def test_a_node_is_killed_and_alone_started_again(chaos: Any) -> None:
    for node in ("2", "3"):
        assert chaos("kill", node).out.startswith(f"node {node} is killed")
    assert chaos("kill", "2") == (1, "", "node 2 does not run\n")
    assert chaos("restart", "3").out == "node 3 serves again\n"
    assert shown(chaos) == {"node 1": "serves", "node 2": "ended", "node 3": "serves"}
    assert chaos("restart", "2").status == 0


def test_a_node_that_runs_is_stopped_in_order_before_it_is_started(
    chaos: Any, cluster: ProcessCluster
) -> None:
    before = cluster.pid(1)
    assert chaos("restart", "1").status == 0
    assert cluster.pid(1) != before
    assert "node 1 ended with 0" in cluster.said()


def test_a_paused_node_is_alive_and_goes_on(chaos: Any) -> None:
    assert chaos("pause", "3").status == 0
    assert shown(chaos)["node 3"] == "paused"
    assert chaos("resume", "3").status == 0
    assert shown(chaos)["node 3"] == "serves"


def test_links_are_held_slowed_and_healed(chaos: Any) -> None:
    assert chaos("partition", "1", "2").status == 0
    assert chaos("slow", "3", "--by", "0.25", "--one-way").status == 0
    found = shown(chaos)
    assert {what: how for what, how in found.items() if what.startswith("from")} == {
        "from 1 to 2": "nothing passes",
        "from 2 to 1": "nothing passes",
        "from 3 to 1": "0.25 s longer",
        "from 3 to 2": "0.25 s longer",
    }
    assert chaos("heal", "1", "2").status == 0
    assert "from 1 to 2" not in shown(chaos)
    assert chaos("heal").out == "every link is open\n"
    assert len(shown(chaos)) == 3


def test_what_cannot_be_is_told_in_a_sentence(chaos: Any, offline: Any, tmp_path: Path) -> None:
    assert "there is no node 7" in chaos("kill", "7").err
    assert "cannot be parted from itself" in chaos("partition", "1", "1").err
    assert offline("chaos", "kill", "1", "--data", str(tmp_path)).err == (
        f"no cluster of several brokers runs in {tmp_path}; start one with"
        " `cotidal up --brokers 3`, or name its directory with --data\n"
    )
    assert offline("up", "--brokers", "1", "--chaos").status == 2


def test_links_are_left_alone_where_nobody_asked_for_chaos(
    start_up: Any, data_dir: Path, offline: Any
) -> None:
    process, _ = start_up("--brokers", "2", "--data", str(data_dir))
    try:
        refused = offline("chaos", "partition", "1", "2", "--data", str(data_dir))
        assert refused.status == 1
        assert "start it with `cotidal up --brokers 3 --chaos`" in refused.err
        assert offline("chaos", "kill", "2", "--data", str(data_dir)).status == 0
    finally:
        process.terminate()
        process.communicate(timeout=20)
    assert sorted(path.name for path in data_dir.iterdir()) == ["node-1", "node-2"]
