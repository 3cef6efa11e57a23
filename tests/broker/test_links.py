"""Links that are held and slowed: what waits, what arrives, and who learns of an end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest
import uvloop

from cotidal.broker.faults import NO_FAULTS, both_ways
from cotidal.broker.links import Links
from cotidal.node.effects import Endpoint
from cotidal.values import NodeId

THERE, BACK = (1, 2), (2, 1)


class Ear(asyncio.Protocol):
    """One end: what it heard, and whether it is over."""

    def __init__(self) -> None:
        self.heard = b""
        self.lost = False
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.heard += data

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True

    def say(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(data)

    def end(self) -> None:
        assert self.transport is not None
        self.transport.abort()


class Two:
    """Node 1, which has dialled node 2."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.links = Links(NodeId(1), loop)
        self.near = Ear()
        self.far: list[Ear] = []
        self.endpoint = Endpoint("CONTROLLER", "127.0.0.1", 0)

    async def listen(self) -> None:
        def accept() -> Ear:
            self.far.append(Ear())
            return self.far[-1]

        self._server = await self.loop.create_server(accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.endpoint = self.endpoint._replace(port=port)

    async def dial(self) -> None:
        await self.links.dial(NodeId(2), self.endpoint, self.near)
        await until(lambda: bool(self.far))

    def close(self) -> None:
        self.links.close()
        self._server.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


async def a_while() -> None:
    """Long enough for a loopback connection to carry anything that it is going to carry."""
    for _ in range(20):
        await asyncio.sleep(0.001)


Script = Callable[[Two], Coroutine[Any, Any, None]]
Play = Callable[[Script], None]


@pytest.fixture
def play() -> Play:
    async def play_it(script: Script) -> None:
        two = Two(asyncio.get_running_loop())
        await two.listen()
        try:
            await script(two)
        finally:
            two.close()
            await a_while()

    def run(script: Script) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(play_it(script))

    return run


def test_what_is_said_over_a_held_link_arrives_when_it_is_open_again(play: Play) -> None:
    async def script(two: Two) -> None:
        await two.dial()
        two.links.suffer(NO_FAULTS.held([THERE]))
        two.near.say(b"one ")
        two.near.say(b"two")
        two.far[0].say(b"heard all the while")
        await until(lambda: two.near.heard == b"heard all the while")
        assert two.far[0].heard == b""
        assert two.near.transport is not None
        assert two.near.transport.get_write_buffer_size() == len(b"one two")
        two.links.suffer(NO_FAULTS)
        await until(lambda: two.far[0].heard == b"one two")

    play(script)


def test_nothing_is_heard_over_a_link_that_is_held_the_other_way(play: Play) -> None:
    async def script(two: Two) -> None:
        await two.dial()
        two.links.suffer(NO_FAULTS.held([BACK]))
        two.near.say(b"asked")
        await until(lambda: two.far[0].heard == b"asked")
        two.far[0].say(b"answered")
        await a_while()
        assert two.near.heard == b""
        two.links.suffer(NO_FAULTS)
        await until(lambda: two.near.heard == b"answered")

    play(script)


def test_a_slow_link_takes_longer_and_keeps_the_order(play: Play) -> None:
    async def script(two: Two) -> None:
        await two.dial()
        two.links.suffer(NO_FAULTS.slowed([THERE], 0.1))
        begun = two.loop.time()
        two.near.say(b"one ")
        two.links.suffer(NO_FAULTS.slowed([THERE], 0.05))
        two.near.say(b"two")
        await until(lambda: two.far[0].heard == b"one two")
        assert two.loop.time() - begun >= 0.049

    play(script)


@pytest.mark.parametrize("held", [THERE, BACK])
def test_nobody_connects_over_a_held_link(play: Play, held: tuple[int, int]) -> None:
    async def script(two: Two) -> None:
        two.links.suffer(NO_FAULTS.held([held]))
        dialling = asyncio.ensure_future(two.dial())
        await a_while()
        assert not two.far
        two.links.suffer(NO_FAULTS)
        await dialling
        assert two.far

    play(script)


def test_who_gives_up_dialling_over_a_held_link_is_forgotten(play: Play) -> None:
    async def script(two: Two) -> None:
        two.links.suffer(NO_FAULTS.held(both_ways(1, [2])))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await two.dial()
        two.links.suffer(NO_FAULTS)
        await a_while()
        assert not two.far

    play(script)


def test_the_end_of_a_connection_is_news_that_a_held_link_keeps(play: Play) -> None:
    async def script(two: Two) -> None:
        await two.dial()
        two.links.suffer(NO_FAULTS.held([BACK]))
        two.far[0].end()
        await a_while()
        assert not two.near.lost
        two.links.suffer(NO_FAULTS)
        await until(lambda: two.near.lost)

    play(script)


def test_who_is_given_up_over_a_held_link_learns_it_later_and_hears_nothing_more(
    play: Play,
) -> None:
    async def script(two: Two) -> None:
        await two.dial()
        two.links.suffer(NO_FAULTS.held([THERE]))
        two.near.say(b"never sent")
        two.near.end()
        await a_while()
        assert not two.far[0].lost
        two.links.suffer(NO_FAULTS)
        await until(lambda: two.far[0].lost)
        assert two.far[0].heard == b""

    play(script)


def test_a_node_that_ends_takes_its_connections_with_it(play: Play) -> None:
    async def script(two: Two) -> None:
        await two.dial()
        two.links.suffer(NO_FAULTS.held(both_ways(1, [2])))
        two.links.close()
        await until(lambda: two.far[0].lost)

    play(script)


class SmallEar(asyncio.BufferedProtocol):
    """One end that gives room for three bytes at a time."""

    def __init__(self) -> None:
        self.heard = b""
        self._room = bytearray(3)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        self.heard += self._room[:nbytes]


def test_whoever_gives_room_for_what_is_said_hears_all_of_it(play: Play) -> None:
    async def script(two: Two) -> None:
        near = SmallEar()
        await two.links.dial(NodeId(2), two.endpoint, near)
        await until(lambda: bool(two.far))
        two.far[0].say(b"more than three")
        await until(lambda: near.heard == b"more than three")

    play(script)
