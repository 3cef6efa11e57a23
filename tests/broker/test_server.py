"""Real sockets, a scripted node: what arrives, in what order, and what happens to the hostile."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Callable
from typing import Any

import pytest

from cotidal.node.effects import CloseConnection, PauseReading, Respond, ResumeReading
from cotidal.node.events import ConnectionLost, ConnectionOpened

Run = Callable[..., None]
Requests = tuple[Callable[..., bytes], Callable[..., bytes]]


def test_a_request_that_comes_byte_by_byte_is_answered(scripted: Run, requests: Requests) -> None:
    versions, _ = requests

    async def play(world: Any) -> None:
        client = await world.connect()
        for place, byte in enumerate(versions(7)):
            client.send(bytes([byte]))
            await world.until(lambda place=place: world.counters.bytes_in == place + 1)
        assert await client.correlation() == 7
        assert [len(event.requests) for event in world.node.received()] == [1]
        assert world.counters.held_bytes == 0

    scripted(play)


def test_all_requests_of_a_read_are_one_event_answered_in_order(
    scripted: Run, requests: Requests
) -> None:
    versions, _ = requests

    async def play(world: Any) -> None:
        client = await world.connect()
        client.send(b"".join(versions(number) for number in range(100)))
        assert [await client.correlation() for _ in range(100)] == list(range(100))
        assert [len(event.requests) for event in world.node.received()] == [100]

    scripted(play)


def test_the_node_hears_of_connections_and_their_end(scripted: Run) -> None:
    async def play(world: Any) -> None:
        client = await world.connect()
        await world.until(lambda: world.node.seen)
        client.close()
        await world.until(lambda: len(world.node.seen) == 2)
        opened, lost = world.node.seen
        assert opened == ConnectionOpened(1, "PLAINTEXT", "127.0.0.1")
        assert lost == ConnectionLost(1)
        assert world.counters.connections == 0

    scripted(play)


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        struct.pack(">i", -1),
        struct.pack(">i", 3) + b"abc",
        struct.pack(">ihhih", 10, 18, 3, 1, 2000),
        struct.pack(">ihhih", 10, 999, 3, 1, -1),
        struct.pack(">ihhih", 10, 1, 99, 1, -1),
        struct.pack(">ihhihb", 11, 18, 3, 1, -1, 0) + b"",
    ],
)
def test_garbage_closes_that_connection_and_no_other(
    scripted: Run, requests: Requests, garbage: bytes
) -> None:
    versions, _ = requests

    async def play(world: Any) -> None:
        good, bad = await world.connect(), await world.connect()
        bad.send(garbage)
        assert await bad.closed()
        good.send(versions(5))
        assert await good.correlation() == 5
        assert world.counters.malformed_frames == 1
        assert "closing the connection of 127.0.0.1" in world.said.text()
        assert not world.faulted

    scripted(play)


def test_requests_before_the_garbage_are_still_answered(scripted: Run, requests: Requests) -> None:
    versions, _ = requests

    async def play(world: Any) -> None:
        client = await world.connect()
        client.send(versions(1) + struct.pack(">i", 3) + b"abc")
        await world.until(lambda: world.counters.malformed_frames)
        assert [len(event.requests) for event in world.node.received()] == [1]

    scripted(play)


def test_random_bytes_never_reach_the_node_as_a_fault(scripted: Run) -> None:
    async def play(world: Any) -> None:
        for size in range(1, 200):
            client = await world.connect()
            client.send(struct.pack(">i", size) + os.urandom(size))
            client.writer.write_eof()
            await client.reader.read()
            client.close()
        assert not world.faulted

    scripted(play)


def test_an_oversize_frame_is_refused_by_its_length_alone(scripted: Run) -> None:
    async def play(world: Any) -> None:
        client = await world.connect()
        client.send(struct.pack(">i", 1001))
        assert await client.closed()
        assert "a frame claims 1001 bytes, more than the 1000 allowed" in world.said.text()

    scripted(play, frame_bytes_max=1000)


def test_an_unknown_version_of_api_versions_goes_to_the_node_without_a_message(
    scripted: Run, requests: Requests
) -> None:
    async def play(world: Any) -> None:
        client = await world.connect()
        frame = bytearray(requests[0](3))
        struct.pack_into(">h", frame, 6, 99)
        client.send(bytes(frame))
        answer = await client.frame()
        assert struct.unpack_from(">ih", answer) == (3, 35)
        assert world.node.received()[0].requests[0].message is None

    scripted(play)


def test_connections_past_the_bound_are_refused_and_counted(
    scripted: Run, requests: Requests
) -> None:
    async def play(world: Any) -> None:
        kept = [await world.connect() for _ in range(3)]
        await world.until(lambda: world.counters.connections == 3)
        refused = await world.connect()
        assert await refused.closed()
        assert world.counters.connections_refused == 1
        assert "max.connections=3" in world.said.text()
        kept.pop().close()
        await world.until(lambda: world.counters.connections == 2)
        again = await world.connect()
        again.send(requests[0](1))
        assert await again.correlation() == 1

    scripted(play, connections_max=3)


def test_one_address_cannot_take_all_connections(scripted: Run) -> None:
    async def play(world: Any) -> None:
        kept = [await world.connect() for _ in range(2)]
        await world.until(lambda: world.counters.connections == 2)
        refused = await world.connect()
        assert await refused.closed()
        assert "max.connections.per.ip=2 is reached for 127.0.0.1" in world.said.text()
        assert len(kept) == 2

    scripted(play, connections_per_address_max=2)


def test_an_address_may_have_a_bound_of_its_own(scripted: Run) -> None:
    async def play(world: Any) -> None:
        kept = await world.connect()
        await world.until(lambda: world.counters.connections == 1)
        assert await (await world.connect()).closed()
        assert kept is not None

    scripted(play, address_overrides={"127.0.0.1": 1})


def test_an_idle_connection_is_closed_and_a_busy_one_is_not(
    scripted: Run, requests: Requests
) -> None:
    async def play(world: Any) -> None:
        idle, busy = await world.connect(), await world.connect()
        waiting = asyncio.ensure_future(idle.closed())
        number = 0
        while not waiting.done():
            busy.send(requests[0](number))
            assert await busy.correlation() == number
            number += 1
            await asyncio.sleep(0.01)
        assert await waiting
        assert world.counters.idle_closed == 1
        assert world.counters.connections == 1

    scripted(play, idle_ms=200)


def test_a_frame_that_stops_half_way_is_given_up(scripted: Run) -> None:
    async def play(world: Any) -> None:
        client = await world.connect()
        client.send(struct.pack(">i", 1000) + b"x" * 10)
        await world.until(lambda: world.counters.held_bytes == 14)
        assert await client.closed()
        assert "stopped in the middle of a request" in world.said.text()
        await world.until(lambda: world.counters.held_bytes == 0)

    scripted(play, stall_ms=100)


def test_a_client_that_takes_no_replies_is_not_read_from(scripted: Run, requests: Requests) -> None:
    """Three hundred fetches of 2 MB each: only what fits the output bound is ever made."""
    _, fetch = requests
    size = 2 << 20

    async def play(world: Any) -> None:
        client = await world.connect()
        client.send(b"".join(fetch(number, size) for number in range(300)))
        last = -1
        while world.counters.requests.get(1, 0) != last:
            last = world.counters.requests.get(1, 0)
            await asyncio.sleep(0.1)
        (connection,) = world.server._connections.values()
        held = connection.transport.get_write_buffer_size()
        assert last < 20
        assert held < (4 << 20) + 2 * size
        for number in range(300):
            assert await client.correlation() == number

    scripted(play)


def test_requests_behind_a_fetch_wait_for_its_answer(scripted: Run, requests: Requests) -> None:
    versions, fetch = requests
    parked: list[Respond] = []

    def answer(connection: int, request: Any) -> list[Any]:
        effects = _answers(connection, request)
        if request.api_key == 1:
            parked.extend(effects)
            return []
        return effects

    async def play(world: Any) -> None:
        _answers.set(world.node.answer_all)
        client = await world.connect()
        client.send(versions(0) + fetch(1, 10) + versions(2) + versions(3))
        assert await client.correlation() == 0
        client.send(versions(4))
        await asyncio.sleep(0.02)
        assert [len(event.requests) for event in world.node.received()] == [2]
        world.server.respond(parked[0])
        world.server.flush()
        assert [await client.correlation() for _ in range(4)] == [1, 2, 3, 4]

    scripted(play, answer=answer)


def test_the_node_can_stop_and_restart_the_reading_of_a_connection(
    scripted: Run, requests: Requests
) -> None:
    async def play(world: Any) -> None:
        client = await world.connect()
        await world.until(lambda: world.counters.connections)
        world.server.pause_reading(PauseReading(1))
        client.send(requests[0](1))
        await asyncio.sleep(0.02)
        assert world.counters.bytes_in == 0
        world.server.resume_reading(ResumeReading(1))
        assert await client.correlation() == 1

    scripted(play)


def test_the_node_can_close_a_connection_after_its_last_reply(
    scripted: Run, requests: Requests
) -> None:
    async def play(world: Any) -> None:
        simple = world.node.answer
        world.node.answer = lambda connection, request: [
            *simple(connection, request),
            CloseConnection(connection, "it has said enough"),
        ]
        client = await world.connect()
        client.send(requests[0](9))
        assert await client.correlation() == 9
        assert await client.closed()
        assert "it has said enough" in world.said.text()

    scripted(play)


def test_a_closed_connection_whose_client_does_not_read_is_given_up(
    scripted: Run, requests: Requests
) -> None:
    async def play(world: Any) -> None:
        simple = world.node.answer
        world.node.answer = lambda connection, request: [
            *simple(connection, request),
            CloseConnection(connection, "it has said enough"),
        ]
        client = await world.connect()
        client.reader._limit = 1  # the client's own buffer takes nothing more
        client.send(requests[1](1, 50 << 20) + requests[0](2))
        await world.until(lambda: world.counters.requests)
        await world.until(lambda: not world.counters.connections)
        assert "does not take its last replies" in world.said.text()

    scripted(play, stall_ms=100)


def test_memory_held_by_begun_frames_is_bounded_and_all_of_them_end(
    scripted: Run, requests: Requests
) -> None:
    """Eight clients send 4 MB frames at once past a bound of 6 MB: all are answered."""
    whole = requests[1](1, 10, topics=140)

    async def play(world: Any) -> None:
        clients = [await world.connect() for _ in range(8)]
        for client in clients:
            client.send(whole[:-1])
        most = last = 0
        while world.counters.bytes_in != last or not last:
            last = world.counters.bytes_in
            await asyncio.sleep(0.05)
            most = max(most, world.counters.held_bytes)
        reads = 8 * (256 << 10)  # each may bring one read before it is stopped
        assert (6 << 20) <= most <= (6 << 20) + (4 << 20) + reads
        for client in clients:
            client.send(whole[-1:])
        assert [await client.correlation() for client in clients] == [1] * 8
        assert world.counters.held_bytes == 0

    scripted(play, held_bytes_max=6 << 20, frame_bytes_max=8 << 20)


class _Answers:
    """The default answers, reachable from a module that cannot import its conftest."""

    def __init__(self) -> None:
        self._answer: Callable[[int, Any], list[Any]] | None = None

    def set(self, answer: Callable[[int, Any], list[Any]]) -> None:
        self._answer = answer

    def __call__(self, connection: int, request: Any) -> list[Any]:
        assert self._answer is not None
        return list(self._answer(connection, request))


_answers = _Answers()
