"""A standalone Spark cluster of this machine: a master, and workers that can be killed.

The commands are those of docs/spark-cluster.md. Each worker has a loopback address of its own, by
which its executors are told apart, and is a group of processes: its executors and their Pythons
die with it, as with a machine. The driver is another process, with ``environment``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from cotidal.testing.ports import quiet_port

SPARK_CLASS: Final = Path(sys.executable).with_name("spark-class")
PATIENCE_S: Final = 600
PAUSE_S: Final = 0.05
BRIEF: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"


class Standalone:
    """``racks``: one worker for each, which says it in its environment."""

    def __init__(
        self, directory: Path, *, racks: Sequence[str] = ("a", "b"), python: str = sys.executable
    ) -> None:
        self._directory = directory
        self._racks = racks
        self._python = python
        self._port, self._pages = quiet_port(), quiet_port(2)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._drivers: list[subprocess.Popen[bytes]] = []
        self.master = f"spark://127.0.0.1:{self._port}"

    @property
    def environment(self) -> dict[str, str]:
        """Of a driver, and what Spark's own processes find in theirs."""
        return {
            **os.environ,
            "PYSPARK_PYTHON": self._python,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_CONF_DIR": str(self._directory),
            "SPARK_DAEMON_JAVA_OPTS": BRIEF,
            "SPARK_DAEMON_MEMORY": "256m",
        }

    def configure(self, **more: str) -> None:
        """What every driver from now on finds in spark-defaults.conf; dots are underscores."""
        given = {
            "spark.ui.port": str(self._pages),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "700m",
            "spark.executor.memory": "600m",
            "spark.executor.extraJavaOptions": BRIEF,
            "spark.sql.shuffle.partitions": "4",
            **{name.replace("_", "."): value for name, value in more.items()},
        }
        lines = [f"{name} {value}\n" for name, value in given.items()]
        (self._directory / "spark-defaults.conf").write_text("".join(lines))

    def __enter__(self) -> Self:
        self.configure()
        at = (
            "--host",
            "127.0.0.1",
            "--port",
            str(self._port),
            "--webui-port",
            str(self._pages + 1),
        )
        self._start("master", {}, MASTER, *at)
        self._until(
            "the master listens", lambda: self._asked(self._pages + 1, "/json/") is not None
        )
        self.start_workers()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for driver in self._drivers:  # whatever a test that failed has left
            if driver.poll() is None:
                os.killpg(driver.pid, signal.SIGKILL)
                driver.wait()
        for name in list(self._processes):
            self.kill(name)

    def start_workers(self) -> None:
        """Those that do not run."""
        for number, rack in enumerate(self._racks, 2):
            host = f"127.0.0.{number}"
            if host not in self._processes:
                about = ("--host", host, "--cores", "1", "--memory", "1g", "--webui-port", "0")
                place = ("--work-dir", str(self._directory / "work"))
                own = {"COTIDAL_RACK": rack, "SPARK_LOCAL_IP": host}
                self._start(host, own, WORKER, *about, *place, self.master)
        self._until("all workers are there", lambda: len(self._alive()) == len(self._racks))

    def kill(self, name: str) -> None:
        """With -9, and all that it has started."""
        process = self._processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def submit(self, *command: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start a driver."""
        with (self._directory / "driver.log").open("ab") as log:
            driver = subprocess.Popen(
                [sys.executable, *command],
                stdout=subprocess.PIPE,
                stderr=log,
                env={**self.environment, **environment},
                start_new_session=True,
            )
        self._drivers.append(driver)
        return driver

    def kill_a_busy_worker(self, driver: subprocess.Popen[bytes], *, tasks_done: int = 1) -> str:
        """One whose executor has finished so many tasks and has another under way."""
        found: list[str] = []

        def is_busy() -> bool:
            assert driver.poll() is None, f"it was over before a worker was killed: {self.said()}"
            found[:] = [
                each["hostPort"].rpartition(":")[0]
                for each in self._executors()
                if each["activeTasks"] and each["completedTasks"] >= tasks_done
            ]
            return bool(found)

        self._until("a worker is in the middle of a task", is_busy)
        self.kill(found[0])
        return found[0]

    def said(self, last_chars: int = 3_000) -> str:
        log = self._directory / "driver.log"
        return log.read_text(errors="replace")[-last_chars:] if log.exists() else ""

    def _start(self, name: str, own: Mapping[str, str], *command: str) -> None:
        with (self._directory / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                [str(SPARK_CLASS), *command],
                stdout=log,
                stderr=log,
                env={**self.environment, **own},
                start_new_session=True,
            )

    def _alive(self) -> list[Any]:
        told = self._asked(self._pages + 1, "/json/") or {}
        return [each for each in told.get("workers", []) if each["state"] == "ALIVE"]

    def _executors(self) -> list[dict[str, Any]]:
        """Those of the driver that runs, but not the driver itself."""
        (running, *_) = self._asked(self._pages, "/api/v1/applications") or ({},)
        path = f"/api/v1/applications/{running.get('id')}/executors"
        told: list[dict[str, Any]] = self._asked(self._pages, path) or []
        return [each for each in told if each["id"] != "driver"]

    def _asked(self, port: int, path: str) -> Any:
        """None while nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                return json.load(answer)
        except (urllib.error.URLError, OSError, ValueError):
            return None

    def _until(self, what: str, holds: Any) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S} s: {self.said()}"
            time.sleep(PAUSE_S)
