"""How others find a cluster that ``cotidal up`` runs on this machine, and what they can do to it.

In its data directory, while it runs:

  up.json       the parent's process id, where each node listens, which of them serve, and whether
                links can be disturbed
  node-K/pid    the process id of a node, while that one runs
  node-K/witness    a socket at which it tells what it does (witness.py)
  control       a pipe of the parent, which only its user can write to: ``start 2``
  faults.json   what is done to links and disks (faults.py); nodes read it on SIGUSR2. Only there
                in a cluster that was started for it (``cotidal up --chaos``)

A node is killed, paused and stopped by signals, which need nothing of this but its process id.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from cotidal.broker.faults import NO_FAULTS, Faults, read_faults, write_faults

UP_FILE: Final = "up.json"
PID_FILE: Final = "pid"
CONTROL_PIPE: Final = "control"
FAULTS_FILE: Final = "faults.json"

PATIENCE_S: Final = 30.0
LOOK_S: Final = 0.005


class ControlError(Exception):
    """What was asked cannot be done here; one sentence."""


class Up(NamedTuple):
    """What is said of a running cluster."""

    pid: int
    nodes: Mapping[int, tuple[str, int]]
    """Where each is found."""
    chaos: bool
    serving: tuple[int, ...]

    def write(self, home: str) -> None:
        _replace(f"{home}/{UP_FILE}", json.dumps(self._asdict()))


def read_up(home: str) -> Up:
    """OSError, ValueError, KeyError: there is none."""
    with open(f"{home}/{UP_FILE}", encoding="utf-8") as file:
        told = json.load(file)
    nodes = {int(node): (where[0], where[1]) for node, where in told["nodes"].items()}
    return Up(told["pid"], nodes, told["chaos"], tuple(told["serving"]))


class Handle:
    """A running cluster in the hand of another process."""

    def __init__(self, home: str) -> None:
        """ControlError if no cluster of several nodes runs there."""
        self.home = home
        try:
            self.up = read_up(home)
            os.kill(self.up.pid, 0)
        except (OSError, ValueError, KeyError):
            raise ControlError(
                f"no cluster of several brokers runs in {home}; start one with"
                " `cotidal up --brokers 3`, or name its directory with --data"
            ) from None

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple(self.up.nodes)

    def pid(self, node: int) -> int | None:
        """None: it does not run."""
        self._known(node)
        try:
            with open(f"{self.home}/node-{node}/{PID_FILE}", encoding="ascii") as file:
                return int(file.read())
        except (OSError, ValueError):
            return None

    def state(self, node: int) -> str:
        """In one word or two."""
        pid = self.pid(node)
        if pid is None:
            return "ended"
        if _is_paused(pid):
            return "paused"
        return "serves" if self.serves(node) else "runs, and does not serve"

    # Processes

    def kill(self, node: int) -> None:
        """With -9; it is gone, and known to be, when this returns."""
        self._signal(node, signal.SIGKILL)
        self._until(lambda: self.pid(node) is None, f"node {node} did not die")

    def pause(self, node: int) -> None:
        """It does nothing more when this returns, where the system lets us see that."""
        self._signal(node, signal.SIGSTOP)
        self._until(lambda: _is_paused(self.pid(node)) is not False, f"node {node} goes on")

    def resume(self, node: int) -> None:
        self._signal(node, signal.SIGCONT)

    def stop(self, node: int) -> None:
        """In order; it is gone when this returns."""
        self._signal(node, signal.SIGTERM)
        self._until(lambda: self.pid(node) is None, f"node {node} did not stop")

    def start(self, node: int, *, wait: bool = True) -> None:
        """One that has ended. ``wait``: until it serves."""
        if self.pid(node) is not None:
            raise ControlError(f"node {node} runs already")
        with open(f"{self.home}/{CONTROL_PIPE}", "w", encoding="ascii") as pipe:
            pipe.write(f"start {node}\n")
        if wait:
            self._until(lambda: self.serves(node), f"node {node} does not serve")

    def serves(self, node: int) -> bool:
        """It has said so, and has not ended since."""
        with suppress(OSError, ValueError, KeyError):
            return self.pid(node) is not None and node in read_up(self.home).serving
        return False

    # Links and disks

    @property
    def faults(self) -> Faults:
        self._disturbable()
        try:
            with open(f"{self.home}/{FAULTS_FILE}", encoding="utf-8") as file:
                return read_faults(file.read())
        except FileNotFoundError:
            return NO_FAULTS

    def suffer(self, faults: Faults) -> None:
        """All links and disks are as this says from now on."""
        self.disturb(lambda _: faults)

    def disturb(self, change: Callable[[Faults], Faults]) -> None:
        """Change how links and disks are, and tell every node. Others who do so at the same time,
        in this process or in another one, wait, so that no change is lost."""
        with _one_at_a_time(self.home):
            _replace(f"{self.home}/{FAULTS_FILE}", write_faults(change(self.faults)))
        for node in self.nodes:
            pid = self.pid(node)
            if pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGUSR2)

    def _disturbable(self) -> None:
        if not self.up.chaos:
            raise ControlError(
                "the links of this cluster cannot be disturbed: start it with"
                " `cotidal up --brokers 3 --chaos`"
            )

    def _known(self, node: int) -> None:
        if node not in self.up.nodes:
            told = ", ".join(map(str, self.nodes))
            raise ControlError(f"there is no node {node} in {self.home}, only {told}")

    def _signal(self, node: int, number: signal.Signals) -> None:
        pid = self.pid(node)
        if pid is None:
            raise ControlError(f"node {node} does not run")
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    def _until(self, condition: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                raise ControlError(f"{otherwise} within {PATIENCE_S:.0f} s")
            time.sleep(LOOK_S)


def _is_paused(pid: int | None) -> bool | None:
    """None: nobody can tell."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return None


@contextmanager
def _one_at_a_time(home: str) -> Iterator[None]:
    directory = os.open(home, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def _replace(path: str, text: str) -> None:
    """Whoever reads it finds the old text or the new one."""
    with open(f"{path}.tmp", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.tmp", path)
