"""Controllers as processes of their own, with config files, whose voters can be changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cotidal.testing.ports import quiet_port

PYTHON = (sys.executable, "-W", "error", "-m", "cotidal")
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


class Controllers:
    """Nodes with config files of their own."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        ports = [(quiet_port(), quiet_port()) for _ in range(3)]
        self.controller_ports = [controller for _, controller in ports]
        servers = ",".join(f"localhost:{controller}" for _, controller in ports)
        self.bootstrap = ",".join(f"localhost:{client}" for client, _ in ports)
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        for number, (client, controller) in enumerate(ports, 1):
            values = {
                "node.id": number,
                "process.roles": "broker,controller",
                "listeners": f"PLAINTEXT://localhost:{client},CONTROLLER://localhost:{controller}",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.bootstrap.servers": servers,
                "log.dirs": self.data(number),
                **(settings or {}),
            }
            text = "".join(f"{name}={value}\n" for name, value in values.items())
            self.config(number).write_text(text)
            how = "--standalone" if number == 1 else "--no-initial-controllers"
            self.run("format", f"--config={self.config(number)}", f"--cluster-id={CLUSTER}", how)

    def stop(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait(20)

    def data(self, number: int) -> Path:
        return self.directory / f"data-{number}"

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

    def serve(self) -> bool:
        """Whether there is a leader that answers."""
        try:
            return bool(self.quorum()["leader"] > 0)
        except AssertionError:
            return False
