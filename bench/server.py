"""Server processes that a measurement or an interop test starts: any cluster that speaks Kafka.

A ``Recipe`` says how; ``Server`` is the running thing. Serving means that a Metadata request has
been answered with every broker in it, asked over a plain socket so that no client's own start-up
is in the time. Does not know what it starts: ``apache_kafka`` and ``cotidal_cluster`` write the
recipes.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from cotidal.testing.ports import quiet_port

START_SECONDS_MAX: Final = 90.0
STOP_SECONDS_MAX: Final = 30.0
PROBE_SECONDS: Final = 0.005
"""Between two probes while a server starts: well under the start-up times that are compared."""


class Recipe(NamedTuple):
    """How to start a cluster whose data directories are ready."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    ports: tuple[int, ...]
    """Client listener of each broker."""
    directory: Path
    """Holds data, configuration and what the processes print."""
    pid_files: tuple[Path, ...] = ()
    """Of each broker, where one command starts them all; without: a command each."""

    @property
    def brokers(self) -> int:
        return len(self.ports)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"localhost:{port}" for port in self.ports)


class ServerFailed(Exception):
    """The server did not start, or ended by itself; carries the end of what it printed."""


class Server:
    """The processes of one cluster, started by us and ended by us."""

    __slots__ = ("_outputs", "_processes", "recipe", "start_seconds")

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.start_seconds = 0.0
        """From the first process to the answer that names every broker."""
        self._processes: list[subprocess.Popen[bytes]] = []
        self._outputs: list[Path] = []

    @property
    def name(self) -> str:
        return self.recipe.name

    @property
    def bootstrap(self) -> str:
        return self.recipe.bootstrap

    def start(self) -> Server:
        begun = time.monotonic()
        for index in range(len(self.recipe.commands)):
            self._outputs.append(self.recipe.directory / f"output-{index}.txt")
            self._processes.append(self._spawn(index))
        try:
            self._await_serving(begun + START_SECONDS_MAX)
        except BaseException:
            self.kill()
            raise
        self.start_seconds = time.monotonic() - begun
        return self

    def _spawn(self, index: int) -> subprocess.Popen[bytes]:
        with self._outputs[index].open("ab") as sink:
            return subprocess.Popen(
                self.recipe.commands[index],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,  # Ctrl-C reaches us alone; we stop them in order
            )

    def kill_node(self, node: int) -> None:
        """SIGKILL to one broker that has a command of its own."""
        process = self._processes[node - 1]
        process.kill()
        process.wait()

    def restart_node(self, node: int) -> None:
        """Start a broker again that was killed; it serves when this returns."""
        self._processes[node - 1] = self._spawn(node - 1)
        self._await_serving(time.monotonic() + START_SECONDS_MAX)

    def _await_serving(self, deadline: float) -> None:
        for port in self.recipe.ports:
            while brokers_known_to(port) < self.recipe.brokers:
                if any(process.poll() is not None for process in self._processes):
                    raise ServerFailed(f"{self.name} ended while starting:\n{self.said()}")
                if time.monotonic() > deadline:
                    raise ServerFailed(f"{self.name} does not serve on {port}:\n{self.said()}")
                time.sleep(PROBE_SECONDS)

    def pids(self) -> tuple[int, ...]:
        """Every process of the cluster, children of children too."""
        found: dict[int, None] = {}
        for process in self._processes:
            if process.poll() is None:
                with contextlib.suppress(psutil.NoSuchProcess):
                    family = psutil.Process(process.pid)
                    found[process.pid] = None
                    found.update((child.pid, None) for child in family.children(recursive=True))
        return tuple(found)

    def pid_of(self, node: int) -> int:
        """The process of one broker, counted from 1."""
        if self.recipe.pid_files:
            return int(self.recipe.pid_files[node - 1].read_text())
        return self._processes[node - 1].pid

    def said(self, last_bytes: int = 4000) -> str:
        """The end of what the processes printed."""
        return "\n".join(
            output.read_bytes()[-last_bytes:].decode(errors="replace") for output in self._outputs
        )

    def stop(self) -> tuple[int, ...]:
        """SIGTERM, then wait; kill what does not end. Answers the exit statuses."""
        family = self._family()
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS_MAX
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, deadline - time.monotonic()))
        statuses = tuple(process.poll() or 0 for process in self._processes)
        self._end(family)
        return statuses

    def kill(self) -> None:
        """SIGKILL to every process: to the files and the clients, a crash."""
        self._end(self._family())

    def _family(self) -> list[psutil.Process]:
        """Taken before anything ends: a child whose parent is gone is found no more."""
        found = []
        for pid in self.pids():
            with contextlib.suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(pid))
        return found

    def _end(self, family: list[psutil.Process]) -> None:
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()  # psutil compares start times: never a stranger with a reused pid
        for process in self._processes:
            process.wait()
        psutil.wait_procs(family, timeout=STOP_SECONDS_MAX)
        self._processes.clear()


@contextlib.contextmanager
def serving(recipe: Recipe) -> Iterator[Server]:
    """A server for the length of a ``with`` block."""
    server = Server(recipe).start()
    try:
        yield server
    finally:
        server.stop()


def free_ports(count: int) -> tuple[int, ...]:
    """Consecutive ports of the loopback interface that nothing listens on now."""
    first = quiet_port(count)
    return tuple(range(first, first + count))


_METADATA_V1: Final = struct.pack(">hhih5si", 3, 1, 7, 5, b"probe", 0)
"""Metadata, version 1: brokers, no topics."""


def brokers_known_to(port: int) -> int:
    """How many brokers the one on this port names; 0 while it does not answer."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(struct.pack(">i", len(_METADATA_V1)) + _METADATA_V1)
            (size,) = struct.unpack(">i", _exactly(connection, 4))
            answer = _exactly(connection, size)
    except (OSError, EOFError):
        return 0
    _correlation, brokers = struct.unpack_from(">ii", answer)
    return max(0, int(brokers))


def _exactly(connection: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        piece = connection.recv(count - len(parts))
        if not piece:
            raise EOFError
        parts += piece
    return bytes(parts)
