"""``python -m bench.bare``: what a replicated record costs when nothing is decided about it.

Four bare processes pass its bytes on as a client, a leader and two followers do with acks=all, one
record at a time: the leader writes it to a file and sends it to both followers, each writes it to a
file of its own and says so, and when both have, the leader answers. The same system calls as a
broker's, uvloop around them, and no protocol: what is left is the machine, and the floor below any
broker of this kind on it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

import psutil
import uvloop

WARMUP: Final = 500
PRODUCE_BYTES: Final = 219
"""Of a Produce with one record of 100 bytes, as bench.loadgen sends it; the others likewise."""
ANSWER_BYTES: Final = 53
FETCH_BYTES: Final = 112
FETCHED_BYTES: Final = 247
FOLLOWERS: Final = 2
SECONDS_MAX: Final = 60


class Leader:
    """Both sides of it: towards the client, and towards the followers."""

    def __init__(self, path: Path) -> None:
        self.log = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND)
        self.end = 0
        self.followers: list[asyncio.Transport] = []
        self.client: asyncio.Transport | None = None
        self.acknowledged = 0

    def on_produced(self, record: bytes) -> None:
        os.writev(self.log, [record])
        self.acknowledged = 0
        for follower in self.followers:
            follower.write(os.pread(self.log, len(record), self.end).ljust(FETCHED_BYTES, b"-"))
        self.end += len(record)

    def on_fetched(self) -> None:
        self.acknowledged += 1
        if self.acknowledged == FOLLOWERS and self.client is not None:
            self.client.write(b"a" * ANSWER_BYTES)


class TowardsClient(asyncio.Protocol):
    def __init__(self, leader: Leader) -> None:
        self._leader = leader

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._leader.client = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._leader.on_produced(data)


class TowardsFollower(asyncio.Protocol):
    def __init__(self, leader: Leader) -> None:
        self._leader = leader

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._leader.followers.append(cast(asyncio.Transport, transport))

    def data_received(self, data: bytes) -> None:
        self._leader.on_fetched()


class Follower(asyncio.Protocol):
    def __init__(self, path: Path) -> None:
        self._log = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        os.writev(self._log, [data])
        self._transport.write(b"f" * FETCH_BYTES)


async def lead(clients: socket.socket, followers: socket.socket, path: Path) -> None:
    loop, leader = asyncio.get_running_loop(), Leader(path)
    await loop.create_server(lambda: TowardsClient(leader), sock=clients)
    await loop.create_server(lambda: TowardsFollower(leader), sock=followers)
    await asyncio.sleep(SECONDS_MAX)


async def follow(address: tuple[str, int], path: Path) -> None:
    await asyncio.get_running_loop().create_connection(lambda: Follower(path), *address)
    await asyncio.sleep(SECONDS_MAX)


def measure(records: int) -> tuple[list[float], list[float]]:
    """Of each record, ascending; and the CPU of leader and followers for one. Microseconds."""
    with tempfile.TemporaryDirectory(prefix="cotidal-bare-") as work:
        clients, followers = _listening(), _listening()
        address = followers.getsockname()
        pids = [_spawn(lambda: uvloop.run(lead(clients, followers, Path(work) / "leader")))]
        time.sleep(0.5)
        for number in range(FOLLOWERS):
            path = Path(work) / f"follower-{number}"
            pids.append(_spawn(lambda path=path: uvloop.run(follow(address, path))))  # type: ignore[misc]
        time.sleep(0.5)
        try:
            micros = sorted(_write(clients.getsockname(), records))
            used = [psutil.Process(pid).cpu_times() for pid in pids]
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    return micros, [(each.user + each.system) * 1e6 / (records + WARMUP) for each in used]


def _write(address: tuple[str, int], records: int) -> list[float]:
    micros = []
    with socket.create_connection(address, timeout=SECONDS_MAX) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(WARMUP + records):
            begun = time.perf_counter_ns()
            connection.sendall(b"p" * PRODUCE_BYTES)
            connection.recv(ANSWER_BYTES)
            micros.append((time.perf_counter_ns() - begun) / 1000)
    return micros[WARMUP:]


def _listening() -> socket.socket:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    return listening


def _spawn(work: Callable[[], object]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return pid


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.bare", description=__doc__)
    parser.add_argument("--records", type=int, default=5_000)
    asked = parser.parse_args()
    micros, used = measure(asked.records)
    print(f"p50 {micros[len(micros) // 2]:.0f} us, p99 {micros[len(micros) * 99 // 100]:.0f} us")
    told = [f"{each:.0f}" for each in used]
    print(f"CPU of the leader {told[0]} us a record, of each follower {' and '.join(told[1:])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
