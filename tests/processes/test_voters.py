"""Three real controllers: one votes at first, the others are added, the first is removed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("confluent_kafka")
from real_cluster import until
from real_node import free_port

PYTHON = (sys.executable, "-W", "error", "-m", "cotidal")
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


class Controllers:
    """Nodes with config files of their own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        ports = [(free_port(), free_port()) for _ in range(3)]
        servers = ",".join(f"localhost:{controller}" for _, controller in ports)
        self.bootstrap = ",".join(f"localhost:{client}" for client, _ in ports)
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        for number, (client, controller) in enumerate(ports, 1):
            settings = {
                "node.id": number,
                "process.roles": "broker,controller",
                "listeners": f"PLAINTEXT://localhost:{client},CONTROLLER://localhost:{controller}",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.bootstrap.servers": servers,
                "log.dirs": directory / f"data-{number}",
            }
            text = "".join(f"{name}={value}\n" for name, value in settings.items())
            self.config(number).write_text(text)
            how = "--standalone" if number == 1 else "--no-initial-controllers"
            self.run("format", f"--config={self.config(number)}", f"--cluster-id={CLUSTER}", how)

    def config(self, number: int) -> Path:
        return self.directory / f"n{number}.properties"

    def start(self, number: int) -> None:
        with (self.directory / f"journal-{number}").open("ab") as journal:
            self.processes[number] = subprocess.Popen(
                [*PYTHON, "broker", f"--config={self.config(number)}"], stderr=journal
            )

    def run(self, *words: str) -> str:
        done = subprocess.run(
            [*PYTHON, *words],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "COTIDAL_BOOTSTRAP": self.bootstrap},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def quorum(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run("quorum", "--json"))
        return found

    def voters(self) -> list[int]:
        return [voter["node"] for voter in self.quorum()["voters"]]

    def observers(self) -> list[int]:
        return [observer["node"] for observer in self.quorum()["observers"]]


@pytest.fixture
def controllers(tmp_path: Path) -> Iterator[Controllers]:
    made = Controllers(tmp_path)
    yield made
    for process in made.processes.values():
        process.kill()
        process.wait(20)


def test_controllers_are_added_and_the_first_one_is_removed(controllers: Controllers) -> None:
    for number in (1, 2, 3):
        controllers.start(number)
    until(lambda: _serves(controllers) and controllers.observers() == [2, 3])
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
    until(lambda: _serves(controllers) and controllers.voters() == [2, 3])
    assert {"orders", "without-it"} <= set(controllers.run("topic", "list").split())


def _serves(controllers: Controllers) -> bool:
    try:
        return controllers.quorum()["leader"] > 0
    except AssertionError:
        return False
