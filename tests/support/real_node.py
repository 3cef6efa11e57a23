"""A node as a process of its own, started and ended the way users and crashes do.

``RealNode`` keeps its port and its data over any number of starts:

    start    until it says on stdout that it is up; the seconds this took
    stop     SIGTERM; the exit status
    kill     SIGKILL: to files and clients, a crash
    restart  kill and start

What the node says on stderr is kept in ``journal`` beside its data, over all of its starts.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from cotidal.testing.ports import quiet_port

START_SECONDS_MAX: Final = 30
STOP_SECONDS_MAX: Final = 20
UP: Final = "cotidal is up"


class NodeFailed(Exception):
    """The node did not start, or did not stop; carries the end of what it said."""


class Sentence(NamedTuple):
    """One line of a node's journal."""

    level: str
    text: str


class RealNode:
    """One ``cotidal up --brokers 1``."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        self.data = directory / "data"
        self.journal = directory / "journal"
        self.settings = dict(settings or {})
        self.port = quiet_port()
        self._process: subprocess.Popen[str] | None = None

    @property
    def bootstrap(self) -> str:
        return f"localhost:{self.port}"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> float:
        """Seconds from the shell to the line that says it serves."""
        begun = time.monotonic()
        process = self._launch()
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(UP):
                return time.monotonic() - begun
        status = self.wait()
        raise NodeFailed(f"ended with status {status} before it served\n{self.said()}")

    def start_and_kill_after(self, seconds: float) -> None:
        """kill -9 somewhere on the way to serving."""
        self._launch()
        time.sleep(seconds)
        self.kill()

    def _launch(self) -> subprocess.Popen[str]:
        assert not self.is_running
        with self.journal.open("a") as journal:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=journal,
                text=True,
                start_new_session=True,  # Ctrl-C reaches the tests alone; they stop it in order
            )
        return self._process

    def stop(self) -> int:
        """SIGTERM, and the exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            return self.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise NodeFailed(f"still there after SIGTERM\n{self.said()}") from None

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self.wait()

    def restart(self) -> float:
        """kill -9 and start on the same data and port."""
        self.kill()
        return self.start()

    def wait(self, seconds_max: float = START_SECONDS_MAX) -> int:
        """The exit status, once it has ended."""
        assert self._process is not None
        status = self._process.wait(seconds_max)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return status

    def memory_bytes(self) -> int:
        """Resident."""
        return int(psutil.Process(self.pid).memory_info().rss)

    def sentences(self, level: str | None = None) -> list[Sentence]:
        """What it has said, of one level or of all, over all of its starts."""
        said = []
        for line in self.journal.read_text().splitlines():
            try:
                entry = json.loads(line)
            except ValueError:  # not a sentence of the journal: Python's own last words
                said.append(Sentence("error", line))
                continue
            said.append(Sentence(entry["level"], entry["text"]))
        return [each for each in said if level in (None, each.level)]

    def said(self, last_characters: int = 4_000) -> str:
        return self.journal.read_text()[-last_characters:]

    def log_directory(self, topic: str, partition: int = 0) -> Path:
        return self.data / f"{topic}-{partition}"

    def _command(self) -> list[str]:
        command = [sys.executable, "-W", "error", "-m", "cotidal", "up", "--brokers", "1"]
        command += ["--no-console"]
        command += ["--data", str(self.data), "--port", str(self.port)]
        for name, value in self.settings.items():
            command += ["--override", f"{name}={value}"]
        return command


@contextmanager
def real_node(directory: Path, settings: Mapping[str, str] | None = None) -> Iterator[RealNode]:
    """A started node. At the end it must still be there, and stop in order, unless a test fails."""
    node = RealNode(directory, settings)
    node.start()
    try:
        yield node
        if not node.is_running:
            raise NodeFailed(f"it ended by itself\n{node.said()}")
        status = node.stop()
        if status:
            raise NodeFailed(f"it stopped with status {status}\n{node.said()}")
    finally:
        if node.is_running:
            node.kill()
