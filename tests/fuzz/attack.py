"""Many hostile clients at once against a real node, and one good one that must not notice.

    senders    take hostile inputs, some on one connection, and read what comes back
    dribblers  send good frames one byte at a time
    stallers   begin a frame and never end it
    idlers     connect and say nothing
    the good   produces with acks=all, reads back, and checks every record at its offset

Inputs come from the seed alone. Which of them meet in the node's queue does not, as in real life.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import struct
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Final, NamedTuple, cast

import uvloop

from real_node import RealNode
from tests.fuzz.good_client import GoodClient, Service
from tests.fuzz.hostile import MEANINGLESS, Hostility, Input, Prey, served_requests

SENDERS: Final = 16
DRIBBLERS: Final = 50
STALLERS: Final = 50
IDLERS: Final = 2_000
OPENED_AT_ONCE: Final = 100
INPUTS_A_CONNECTION: Final = (1, 1, 2, 5, 20)
ANSWER_SECONDS_MAX: Final = 10.0
"""After we have said that nothing more comes, the node closes too; if not within this, it hangs."""
FETCH: Final = b"\x00\x01"
LINGER_SECONDS: Final = 0.03
SAMPLE_SECONDS: Final = 0.1


class Outcome(NamedTuple):
    inputs: Counter[str]
    seconds: float
    connections: int
    bytes_sent: int
    bytes_back: int
    idle_left: int
    """Idle connections that are still there at the end."""
    memory_bytes_max: int
    service: Service

    def told(self) -> str:
        total = sum(self.inputs.values())
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in self.inputs.most_common())
        return (
            f"{total:,} hostile inputs ({kinds}) over {self.connections:,} connections in "
            f"{self.seconds:.1f} s: {total / self.seconds:,.0f}/s, {self.bytes_sent / 2**20:.0f} MB"
            f" there, {self.bytes_back / 2**20:.0f} MB back; {self.idle_left:,} idle connections "
            f"beside; memory at most {self.memory_bytes_max / 2**20:.0f} MB; {self.service.told()}"
        )


def attack(node: RealNode, prey: Prey, *, seed: int, inputs: int, idlers: int = IDLERS) -> Outcome:
    """Send so many inputs. Raises when the node ends, hangs, or serves the good client badly."""
    _raise_descriptor_limit(idlers + 1_000)
    with GoodClient(node.bootstrap) as good:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            siege = runner.run(_besiege(Siege(node, prey, seed), inputs, idlers))
        service = good.finish()
    return Outcome(
        siege.sent,
        siege.seconds,
        siege.connections,
        siege.bytes_sent,
        siege.bytes_back,
        siege.idle_left,
        siege.memory_bytes_max,
        service,
    )


class Siege:
    """What the hostile clients of one attack share."""

    def __init__(self, node: RealNode, prey: Prey, seed: int) -> None:
        self.node = node
        self.prey = prey
        self.seed = seed
        self.sent: Counter[str] = Counter()
        self.connections = 0
        self.bytes_sent = 0
        self.bytes_back = 0
        self.idle_left = 0
        self.memory_bytes_max = 0
        self.seconds = 0.0
        self.open: dict[Hostile, None] = {}

    async def connect(self) -> Hostile:
        loop = asyncio.get_running_loop()
        _, hostile = await loop.create_connection(
            lambda: Hostile(self.open), "127.0.0.1", self.node.port
        )
        return hostile

    async def hang_up(self) -> None:
        """End every connection, and wait until they are gone."""
        ending = tuple(self.open)
        for each in ending:
            each.transport.abort()
        await asyncio.gather(*(each.lost for each in ending))


class Hostile(asyncio.Protocol):
    """One hostile connection; ``lost`` is done when it is over."""

    transport: asyncio.Transport

    def __init__(self, open_: dict[Hostile, None]) -> None:
        self._open = open_
        self.bytes_back = 0
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._open[self] = None

    def data_received(self, data: bytes) -> None:
        self.bytes_back += len(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._open.pop(self, None)
        if not self.lost.done():
            self.lost.set_result(None)


async def _besiege(siege: Siege, inputs: int, idlers: int) -> Siege:
    idle: list[Hostile] = []
    while len(idle) < idlers:
        wanted = min(OPENED_AT_ONCE, idlers - len(idle))
        idle += await asyncio.gather(*(siege.connect() for _ in range(wanted)))
    beside = [asyncio.create_task(_dribble(siege, number)) for number in range(DRIBBLERS)]
    beside += [asyncio.create_task(_stall(siege, number)) for number in range(STALLERS)]
    beside.append(asyncio.create_task(_watch_memory(siege)))
    begun = time.monotonic()
    shares = [inputs // SENDERS + (number < inputs % SENDERS) for number in range(SENDERS)]
    try:
        async with asyncio.TaskGroup() as group:
            for number, share in enumerate(shares):
                hostility = Hostility(f"{siege.seed}/{number}", siege.prey)
                group.create_task(_send(siege, Random(number), islice(hostility, share)))
    finally:
        siege.seconds = time.monotonic() - begun
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        siege.idle_left = sum(not each.lost.done() for each in idle)
        await siege.hang_up()
    return siege


async def _send(siege: Siege, chance: Random, inputs: Iterator[Input]) -> None:
    while batch := _next_batch(inputs, chance.choice(INPUTS_A_CONNECTION)):
        hostile = await siege.connect()
        data = b"".join(each.data for each in batch)
        hostile.transport.write(data)
        siege.connections += 1
        siege.bytes_sent += len(data)
        siege.sent.update(each.kind for each in batch)
        if chance.random() < 0.1:  # hang up without a word, sometimes before an answer
            await asyncio.wait((hostile.lost,), timeout=LINGER_SECONDS * chance.random())
            hostile.transport.abort()
        else:
            with contextlib.suppress(OSError, RuntimeError):  # it is closed already
                hostile.transport.write_eof()
            await _until_closed(siege, hostile, batch)
        siege.bytes_back += hostile.bytes_back


def _next_batch(inputs: Iterator[Input], most: int) -> list[Input]:
    """For one connection.

    A damaged frame is the last, for the node closes what it cannot read; so is a Fetch, for what
    comes behind one that waits is not looked at until it is answered, not even the end.
    """
    batch: list[Input] = []
    for each in inputs:
        batch.append(each)
        if each.kind != MEANINGLESS or each.data[4:6] == FETCH or len(batch) == most:
            break
    return batch


async def _until_closed(siege: Siege, hostile: Hostile, batch: list[Input]) -> None:
    done, _ = await asyncio.wait((hostile.lost,), timeout=ANSWER_SECONDS_MAX)
    hostile.transport.abort()
    if not done:
        frames = "\n".join(each.data[:200].hex() for each in batch)
        raise AssertionError(f"a connection that was ended stays open, after\n{frames}")


async def _dribble(siege: Siege, number: int) -> None:
    """Good frames, one byte at a time."""
    hostility = Hostility(f"{siege.seed}/dribble/{number}", siege.prey)
    frames = hostility.good_frames
    while True:
        hostile = await siege.connect()
        for byte in frames[number % len(frames)]:
            if hostile.lost.done():
                break
            hostile.transport.write(bytes((byte,)))
            await asyncio.sleep(0.01)
        hostile.transport.abort()
        number += DRIBBLERS


async def _stall(siege: Siege, number: int) -> None:
    """The beginning of a large frame, and never its end."""
    key, version = served_requests()[number % 100][1].key, 0
    while True:
        hostile = await siege.connect()
        head = struct.pack(">ihhih", 50 * 2**20, key or 0, version, 1, -1)
        hostile.transport.write(head + bytes(200_000))
        await asyncio.wait((hostile.lost,), timeout=20)
        hostile.transport.abort()


async def _watch_memory(siege: Siege) -> None:
    while True:
        siege.memory_bytes_max = max(siege.memory_bytes_max, siege.node.memory_bytes())
        await asyncio.sleep(SAMPLE_SECONDS)


def _raise_descriptor_limit(wanted: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
