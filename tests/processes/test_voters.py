"""Three real controllers: one votes at first, the others are added, the first is removed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")
from real_cluster import until
from real_controllers import Controllers


@pytest.fixture
def controllers(tmp_path: Path) -> Iterator[Controllers]:
    made = Controllers(tmp_path)
    yield made
    made.stop()


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
