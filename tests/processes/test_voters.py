"""Three real controllers whose voters change: some that are added, some that were fixed."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")
from real_cluster import RealCluster, until
from real_controllers import Controllers


@pytest.fixture
def controllers(tmp_path: Path) -> Iterator[Controllers]:
    made = Controllers(tmp_path)
    yield made
    made.stop()


def test_fixed_voters_become_changeable_and_stay_so_when_all_are_killed(tmp_path: Path) -> None:
    with RealCluster(tmp_path) as cluster:
        with pytest.raises(AssertionError, match="the voters are static"):
            quorum(cluster, "remove-voter", "3")
        assert quorum(cluster, "upgrade") == "the voters can be changed: 1, 2, 3\n"
        assert None not in directories(cluster)
        assert quorum(cluster, "remove-voter", "3") == "node 3 votes no longer\n"
        for node in cluster.nodes:
            cluster.kill(node)
        assert cluster.process is not None
        cluster.process.communicate(timeout=20)  # no node is left
        cluster.start()
        until(lambda: len(directories(cluster)) == 2)
        cluster.create("after")
        assert cluster.stop() == 0


def quorum(cluster: RealCluster, *words: str) -> str:
    done = subprocess.run(
        [*RealCluster.PYTHON, "-m", "cotidal", "quorum", *words, "--bootstrap", cluster.bootstrap],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def directories(cluster: RealCluster) -> list[str | None]:
    """Of the voters; None: not known. None at all while nobody leads."""
    try:
        told = json.loads(quorum(cluster, "--json"))
    except AssertionError:
        return []
    return [voter["directory_id"] for voter in told["voters"]]


def test_controllers_are_added_and_the_first_one_is_removed(controllers: Controllers) -> None:
    for number in (1, 2, 3):
        controllers.start(number)
    until(lambda: controllers.serve() and controllers.observers() == [2, 3])
    assert controllers.voters() == [1]
    for number in (2, 3):
        controllers.run("quorum", "add-voter", f"--config={controllers.config(number)}")
    assert controllers.voters() == [1, 2, 3]
    controllers.run("topic", "create", "orders", "--replicas=3")
    controllers.run("quorum", "remove-voter", "1")
    until(lambda: controllers.voters() == [2, 3] and controllers.quorum()["leader"] in (2, 3))
    # What was the only voter is not needed any more.
    controllers.processes[1].send_signal(signal.SIGKILL)
    controllers.processes[1].wait(20)
    controllers.run("topic", "create", "without-it", "--replicas=2")
    for number in (2, 3):
        controllers.processes[number].kill()
        controllers.processes[number].wait(20)
        controllers.start(number)
    until(lambda: controllers.serve() and controllers.voters() == [2, 3])
    assert {"orders", "without-it"} <= set(controllers.run("topic", "list").split())
