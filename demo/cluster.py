"""The cluster of the story: ``cotidal up --brokers 3``, processes that are killed and paused."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from demo.telling import Failed

BROKERS: Final = 3
STOP_SECONDS_MAX: Final = 20


class Cluster:
    def __init__(self, data: Path) -> None:
        self.data = data
        self.journal = data.with_suffix(".journal")
        self.bootstrap = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> float:
        """Seconds from the shell to the line that says that all serve."""
        begun = time.perf_counter()
        command = [sys.executable, "-m", "cotidal", "up", "--brokers", str(BROKERS)]
        command += ["--data", str(self.data)]
        with self.journal.open("a") as journal:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=journal, text=True
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("cotidal is up"):
                self.bootstrap = line.split(": ")[1].split()[0]
                return time.perf_counter() - begun
        status = self._process.wait()
        raise Failed(f"the cluster ended with status {status} before it served\n{self.said()}")

    def said(self) -> str:
        return self.journal.read_text()[-2_000:]

    def signal(self, node: int, number: signal.Signals) -> None:
        os.kill(int((self.data / f"node-{node}/pid").read_text()), number)

    def start_again(self) -> None:
        """Whichever nodes have ended."""
        assert self._process is not None
        self._process.send_signal(signal.SIGUSR1)

    def log(self, node: int, partition: str) -> bytes:
        """All segments of a replica, as they are on disk."""
        segments = sorted((self.data / f"node-{node}" / partition).glob("*.log"))
        return b"".join(segment.read_bytes() for segment in segments)

    def stop(self) -> int:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise Failed(f"it did not stop within {STOP_SECONDS_MAX} s of SIGTERM") from None

    def end(self) -> None:
        """Whatever is left of it, paused nodes too."""
        if self._process is not None and self._process.poll() is None:
            for node in range(1, BROKERS + 1):
                with contextlib.suppress(OSError):
                    self.signal(node, signal.SIGKILL)
            self._process.kill()
            self._process.wait()
