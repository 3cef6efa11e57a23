"""Talk to other nodes: order, time, loss and refusal, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from cotidal.broker import peers as peers_module
from cotidal.broker.counters import Counters
from cotidal.broker.peers import Peers, reconnect_delay_s
from cotidal.messages.rpc.api_versions import ApiVersionsRequest, ApiVersionsResponse
from cotidal.node.effects import Call, CallToken, Endpoint, KeepConnected
from cotidal.node.events import CallFailed, PeerConnected, PeerLost, Replied
from cotidal.values import NodeId
from cotidal.wire.frames import read_request_header, response_buffers

ONE = NodeId(1)


class Other:
    """A node at the other end, whose answers the test sends."""

    def __init__(self) -> None:
        self.connections: list[asyncio.StreamWriter] = []
        self.asked: list[tuple[int, int]] = []
        """(connection, correlation id), as they came."""
        self.answers = True
        self.serving = 0
        self.port = 0
        self._server: asyncio.Server | None = None

    async def listen(self) -> Other:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def endpoint(self) -> Endpoint:
        return Endpoint("CONTROLLER", "127.0.0.1", self.port)

    def answer(self, connection: int, correlation: int, error: int = 0) -> None:
        buffers = response_buffers(18, 0, correlation, ApiVersionsResponse(error_code=error))
        self.connections[connection].write(b"".join(buffers))

    async def die(self) -> None:
        """As a killed process: the listener first, then its connections."""
        assert self._server is not None
        self._server.close()
        for writer in self.connections:
            writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._server.wait_closed()
        while self.serving:
            await asyncio.sleep(0.001)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(self.connections)
        self.connections.append(writer)
        self.serving += 1
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                correlation = read_request_header(await reader.readexactly(size)).correlation_id
                self.asked.append((number, correlation))
                if self.answers:
                    self.answer(number, correlation, error=correlation)
        writer.close()
        self.serving -= 1


class World:
    def __init__(self) -> None:
        self.events: list[Any] = []
        self.said: list[str] = []
        self.peers = Peers(
            asyncio.get_running_loop(),
            client_id="node-9",
            post=self.events.append,
            warn=self.said.append,
            counters=Counters(),
        )
        self.others: list[Other] = []

    async def other(self) -> Other:
        self.others.append(await Other().listen())
        return self.others[-1]

    def call(
        self, token: int, endpoint: Endpoint, *, lane: str = "control", timeout_ms: int = 10_000
    ) -> None:
        request = ApiVersionsRequest()
        self.peers.call(Call(CallToken(token), ONE, endpoint, lane, 18, 0, request, timeout_ms))

    def keep(self, *endpoints: Endpoint) -> None:
        named = tuple((NodeId(n), endpoint) for n, endpoint in enumerate(endpoints, 1))
        self.peers.keep_connected(KeepConnected(named))

    async def until(self, condition: Callable[[], object]) -> None:
        while not condition():
            await asyncio.sleep(0.001)

    async def connected(self, other: Other, count: int) -> None:
        await self.until(lambda: len(other.connections) >= count)

    async def told(self, count: int) -> list[Any]:
        await self.until(lambda: len(self.events) >= count)
        return self.events


@pytest.fixture(params=[uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def play(request: pytest.FixtureRequest) -> Callable[..., None]:
    def run(script: Callable[[World], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            world = World()
            try:
                await asyncio.wait_for(script(world), 20)
            finally:
                world.peers.close()
                await world.peers.closed()
                for other in world.others:
                    await other.die()

        loop = request.param()
        try:
            loop.run_until_complete(whole())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()

    return run


Play = Callable[..., None]


def nobody() -> Endpoint:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return Endpoint("CONTROLLER", "127.0.0.1", sock.getsockname()[1])


def test_calls_of_a_lane_leave_together_and_are_answered_in_order(play: Play) -> None:
    async def script(world: World) -> None:
        other = await world.other()
        for token in range(5):
            world.call(token, other.endpoint())
        world.peers.flush()
        answered = await world.told(5)
        assert [(event.token, event.message.error_code) for event in answered] == [
            (token, token + 1) for token in range(5)
        ]
        assert len(other.connections) == 1

    play(script)


def test_nothing_leaves_before_the_turn_ends(play: Play) -> None:
    async def script(world: World) -> None:
        other = await world.other()
        world.call(1, other.endpoint())
        world.peers.flush()
        await world.told(1)
        world.call(2, other.endpoint())
        await asyncio.sleep(0)
        assert len(other.asked) == 1
        world.peers.flush()
        await world.told(2)

    play(script)


def test_a_long_poll_on_one_lane_does_not_hold_up_another(play: Play) -> None:
    async def script(world: World) -> None:
        other = await world.other()
        other.answers = False
        world.call(1, other.endpoint(), lane="fetch-0")
        world.peers.flush()
        await world.until(lambda: other.asked)
        other.answers = True
        world.call(2, other.endpoint(), lane="control")
        world.peers.flush()
        (event,) = await world.told(1)
        assert isinstance(event, Replied)
        assert event.token == 2
        assert len(other.connections) == 2

    play(script)


def test_where_nobody_listens_a_call_is_refused(play: Play) -> None:
    async def script(world: World) -> None:
        endpoint = nobody()
        world.call(1, endpoint)
        world.call(2, endpoint)
        assert await world.told(2) == [
            CallFailed(CallToken(token), True, f"nobody listens on 127.0.0.1:{endpoint.port}")
            for token in (1, 2)
        ]
        assert not list(world.peers.lanes)

    play(script)


def test_a_refusal_on_every_address_of_a_name_is_one(play: Play) -> None:
    async def script(world: World) -> None:
        world.call(1, nobody()._replace(host="localhost"))
        (event,) = await world.told(1)
        assert event.refused

    play(script)


def test_a_name_without_an_address_is_no_refusal(play: Play) -> None:
    async def script(world: World) -> None:
        world.call(1, Endpoint("CONTROLLER", "no.such.host.invalid", 9))
        (event,) = await world.told(1)
        assert not event.refused
        assert "has no address" in event.reason

    play(script)


def test_a_lost_connection_fails_what_waits_on_it_and_the_next_call_gets_another(
    play: Play,
) -> None:
    async def script(world: World) -> None:
        other = await world.other()
        other.answers = False
        world.call(1, other.endpoint())
        world.call(2, other.endpoint())
        world.peers.flush()
        await world.until(lambda: len(other.asked) == 2)
        other.answer(0, 1)
        await world.told(1)
        other.connections[0].transport.abort()
        _, lost = await world.told(2)
        assert (lost.token, lost.refused) == (2, False)
        other.answers = True
        world.call(3, other.endpoint())
        world.peers.flush()
        assert (await world.told(3))[2].token == 3
        assert len(other.connections) == 2

    play(script)


def test_a_call_past_its_time_ends_the_lane_and_all_that_stands_behind_it(play: Play) -> None:
    async def script(world: World) -> None:
        other = await world.other()
        other.answers = False
        world.call(1, other.endpoint(), timeout_ms=60_000)
        world.call(2, other.endpoint(), timeout_ms=20)
        world.peers.flush()
        failed = await world.told(2)
        assert [(event.token, event.refused) for event in failed] == [(1, False), (2, False)]
        assert "did not answer in time" in failed[0].reason
        assert not list(world.peers.lanes)

    play(script)


def test_calls_that_are_answered_put_off_the_ringing_for_those_that_follow(play: Play) -> None:
    async def script(world: World) -> None:
        other = await world.other()
        rings = []
        for number, timeout_ms in enumerate((1_000, 1_100, 2_000), 1):
            world.call(number, other.endpoint(), timeout_ms=timeout_ms)
            world.peers.flush()
            await world.told(number)
            (lane,) = world.peers._lanes.values()
            rings.append(lane._armed_for)
        assert rings[0] == rings[1]  # most of its time is left
        assert rings[2] - rings[0] >= 1

    play(script)


def test_a_call_without_an_answer_is_not_put_off_by_those_behind_it(play: Play) -> None:
    async def script(world: World) -> None:
        other = await world.other()
        other.answers = False
        world.call(1, other.endpoint(), timeout_ms=1_000)
        (lane,) = world.peers._lanes.values()
        rings = lane._armed_for
        world.call(2, other.endpoint(), timeout_ms=60_000)
        assert lane._armed_for == rings

    play(script)


def test_an_answer_in_time_is_not_failed_later(play: Play) -> None:
    async def script(world: World) -> None:
        other = await world.other()
        world.call(1, other.endpoint(), timeout_ms=400)
        world.peers.flush()
        await world.told(1)
        other.answers = False
        world.call(2, other.endpoint(), timeout_ms=500)
        world.peers.flush()
        replied, failed = await world.told(2)
        assert isinstance(replied, Replied)
        assert failed.token == 2

    play(script)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"".join(response_buffers(18, 0, 7, ApiVersionsResponse())), "answers request 7, not 1"),
        (struct.pack(">ii", 4, 1), "ends within a field"),
        (struct.pack(">i", -5), "negative length"),
        (struct.pack(">i", 1 << 30), "more than the"),
        (b"HTTP/1.1 400 Bad Request\r\n", "more than the"),
    ],
)
def test_an_answer_that_cannot_be_read_fails_the_call_and_is_said(
    play: Play, data: bytes, reason: str
) -> None:
    async def script(world: World) -> None:
        other = await world.other()
        other.answers = False
        world.call(1, other.endpoint())
        world.peers.flush()
        await world.until(lambda: other.asked)
        other.connections[0].write(data)
        (event,) = await world.told(1)
        assert isinstance(event, CallFailed)
        assert reason in event.reason
        assert len(world.said) == 1

    play(script)


@pytest.mark.plain
def test_calls_that_nobody_takes_are_bounded(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_module, "PEER_CALLS_MAX", 3)

    async def script(world: World) -> None:
        other = await world.other()
        other.answers = False
        for token in range(5):
            world.call(token, other.endpoint())
        assert world.events == []  # not in the turn that asked
        failed = await world.told(2)
        assert [event.token for event in failed] == [3, 4]
        assert "3 calls" in failed[0].reason

    play(script)


def test_a_kept_connection_is_told_lost_and_made_again(play: Play) -> None:
    async def script(world: World) -> None:
        other = await world.other()
        world.keep(other.endpoint())
        assert await world.told(1) == [PeerConnected(ONE)]
        await world.connected(other, 1)
        other.connections[0].transport.abort()
        assert await world.told(3) == [
            PeerConnected(ONE),
            PeerLost(ONE, False),
            PeerConnected(ONE),
        ]

    play(script)


def test_knocking_begins_at_once_and_slows_down_to_ten_a_second() -> None:
    assert reconnect_delay_s(0) == 0
    for attempts, longest in ((1, 0.01), (2, 0.02), (3, 0.04), (4, 0.08), (5, 0.1), (10**6, 0.1)):
        assert longest / 2 <= reconnect_delay_s(attempts) <= longest


def test_a_process_that_died_is_told_as_refused_after_the_loss(play: Play) -> None:
    async def script(world: World) -> None:
        other = await world.other()
        world.keep(other.endpoint())
        await world.told(1)
        await world.connected(other, 1)
        await other.die()
        await world.until(lambda: PeerLost(ONE, True) in world.events)
        assert world.events[1] == PeerLost(ONE, False)
        await other.listen()  # it is back: so is the connection
        await world.until(lambda: world.events[-1] == PeerConnected(ONE))

    play(script)


def test_a_peer_that_moved_is_looked_for_where_it_is_now(play: Play) -> None:
    async def script(world: World) -> None:
        before, after = await world.other(), await world.other()
        world.keep(before.endpoint())
        await world.told(1)
        await world.connected(before, 1)
        world.keep(after.endpoint())
        assert await world.told(2) == [PeerConnected(ONE)] * 2
        await world.connected(after, 1)
        world.keep(after.endpoint())  # nothing new
        assert (len(before.connections), len(after.connections)) == (1, 1)
        before.connections[0].transport.abort()
        world.keep()
        after.connections[0].transport.abort()
        world.call(1, after.endpoint())
        world.peers.flush()
        assert isinstance((await world.told(3))[2], Replied)  # and nothing of the connections

    play(script)


def test_whoever_speaks_unasked_on_a_kept_connection_is_left(play: Play) -> None:
    async def script(world: World) -> None:
        other = await world.other()
        world.keep(other.endpoint())
        await world.told(1)
        await world.connected(other, 1)
        other.connections[0].write(b"hello")
        assert (await world.told(2))[1] == PeerLost(ONE, False)

    play(script)


def test_after_the_end_nobody_is_told_anything(play: Play) -> None:
    async def script(world: World) -> None:
        other = await world.other()
        other.answers = False
        world.call(1, other.endpoint())
        world.keep(other.endpoint())
        world.peers.flush()
        await world.until(lambda: other.asked and world.events)
        world.peers.close()
        await world.peers.closed()
        await world.until(lambda: all(writer.is_closing() for writer in other.connections))
        world.call(2, other.endpoint())
        world.keep(other.endpoint(), other.endpoint())
        assert world.events == [PeerConnected(ONE)]
        assert not list(world.peers.lanes)

    play(script)
