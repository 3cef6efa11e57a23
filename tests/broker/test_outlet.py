"""Large answers whose bytes are still in a file: sent whole, in order, and given up cleanly."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cotidal.broker.lane import Lane
from cotidal.broker.outlet import PUSH_BYTES
from cotidal.broker.parcel import COLD_S, Parcel
from cotidal.broker.stalls import Readings
from cotidal.log.failure import Gone
from cotidal.log.files import LeftBytes, OsFile, OsFiles
from cotidal.messages.batch import Batches
from cotidal.messages.rpc.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from cotidal.node.effects import CloseConnection, Respond
from cotidal.values import TopicPartition, Uuid

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files are sent on Linux only")

Run = Callable[..., None]
Requests = tuple[Callable[..., bytes], Callable[..., bytes]]

MB = 1 << 20
LANE = Lane(TopicPartition("orders", 0), Uuid(bytes(16)), None)


class Shelf:
    """A file, and answers to fetches whose records are left in it."""

    def __init__(self, path: Path) -> None:
        self.files = OsFiles()
        self.content = random.Random(7).randbytes(24 * MB)
        self.file: OsFile = self.files.open(str(path / "log"), create=True)
        self.file.append([self.content])

    def parcel(self, size: int, position: int = 0) -> Parcel:
        left = self.file.leave(size, position)
        assert isinstance(left, LeftBytes)
        return Parcel(asyncio.get_running_loop(), Readings(), LANE, left)

    def fetched(self, connection: int, request: Any, *parts: tuple[int, int]) -> Respond:
        """One partition for each (size, position), every other one of them read."""
        partitions = tuple(
            PartitionData(
                number,
                records=Batches(
                    (),
                    self.content[position : position + size]
                    if number % 2
                    else self.parcel(size, position),  # type: ignore[arg-type]
                ),
            )
            for number, (size, position) in enumerate(parts)
        )
        message = FetchResponse(responses=(FetchableTopicResponse("t", partitions=partitions),))
        return Respond(connection, 1, request.api_version, request.correlation_id, message)

    def answer(self, *parts: tuple[int, int]) -> Callable[..., list[Any]]:
        def answer(connection: int, request: Any) -> list[Any]:
            if request.api_key == 1:
                return [self.fetched(connection, request, *parts)]
            return list(self.others(connection, request))

        return answer

    others: Callable[..., Any]


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def answering(world: Any, shelf: Shelf, *parts: tuple[int, int]) -> None:
    shelf.others = world.node.answer_all
    world.node.answer = shelf.answer(*parts)


async def asked(world: Any, shelf: Shelf, requests: Requests) -> Any:
    """A client whose Fetch has all of the file for an answer, which it does not take yet."""
    answering(world, shelf, (24 * MB, 0))
    client = await world.connect()
    client.send(requests[1](1, 10))
    return client


def the_connection(world: Any) -> Any:
    (connection,) = world.server._connections.values()
    return connection


async def stuck(world: Any) -> Any:
    """Wait until the client takes nothing more."""
    await world.until(lambda: world.counters.requests.get(1))
    connection = the_connection(world)
    last = -1
    while connection.unsent != last or not last:
        last = connection.unsent
        await asyncio.sleep(0.05)
    return connection


def test_records_come_out_of_their_file_between_the_bytes_around_them(
    scripted: Run, requests: Requests, shelf: Shelf
) -> None:
    versions, fetch = requests
    parts = ((3 * MB, 17), (100_000, 5), (200_000, 9 * MB), (1, 3), (64 << 10, 0))

    async def play(world: Any) -> None:
        answering(world, shelf, *parts)
        client = await world.connect()
        client.send(b"".join(fetch(number, 10) + versions(100 + number) for number in range(5)))
        for number in range(5):
            frame = await client.frame()
            assert int.from_bytes(frame[:4], "big") == number
            at = 0
            for size, position in parts:
                at = frame.index(shelf.content[position : position + size], at) + size
            assert await client.correlation() == 100 + number
        assert the_connection(world).unsent == 0
        assert shelf.files.left == 0
        assert not world.faulted

    scripted(play)


def test_who_takes_slowly_is_answered_in_order_and_costs_little_memory(
    scripted: Run, requests: Requests, shelf: Shelf
) -> None:
    """Three hundred fetches of 24 MB at once: one answer is made, and nothing of it is read."""
    versions, fetch = requests

    async def play(world: Any) -> None:
        answering(world, shelf, (24 * MB, 0))
        client = await world.connect()
        client.send(b"".join(fetch(number, 10) for number in range(300)) + versions(300))
        connection = await stuck(world)
        assert world.counters.requests[1] == 1
        assert 10 * MB < connection.unsent < 24 * MB
        assert connection.transport.get_write_buffer_size() <= PUSH_BYTES
        assert shelf.files.left == 1
        for number in range(3):
            frame = await client.frame()
            assert int.from_bytes(frame[:4], "big") == number
            assert shelf.content in frame
            assert world.counters.requests[1] <= number + 2

    scripted(play)


def test_what_was_sent_makes_the_room_of_an_ordinary_connection_again(
    scripted: Run, requests: Requests, shelf: Shelf
) -> None:
    """Who has not taken a piece of a small answer is listened to, after a large one as before."""
    versions, _ = requests

    async def play(world: Any) -> None:
        client = await asked(world, shelf, requests)
        connection = await stuck(world)
        assert connection.paused_for
        await client.frame()
        await world.until(lambda: not connection.paused_for)
        written = 0
        while not connection.transport.get_write_buffer_size():
            connection.transport.write(bytes(MB))
            written += MB
        assert not connection.paused_for
        client.send(versions(2))
        await client.reader.readexactly(written)
        assert await client.correlation() == 2

    scripted(play)


def test_an_answer_that_waits_behind_another_comes_after_it(
    scripted: Run, requests: Requests, shelf: Shelf
) -> None:
    """The reply to a Produce that was parked while a Fetch is on its way out, say."""

    async def play(world: Any) -> None:
        client = await asked(world, shelf, requests)
        connection = await stuck(world)
        connection.output.append(struct.pack(">ii", 4, 77))
        assert connection.flush() == 8
        assert await client.correlation() == 1
        assert await client.correlation() == 77

    scripted(play)


def test_what_a_cut_took_away_ends_the_connection_and_no_other(
    scripted: Run, requests: Requests, shelf: Shelf
) -> None:
    versions, fetch = requests

    async def play(world: Any) -> None:
        answering(world, shelf, (24 * MB, 0))
        good, bad = await world.connect(), await world.connect()
        bad.send(fetch(1, 10))
        await world.until(lambda: world.counters.requests.get(1))
        while not shelf.files.left:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        shelf.file.truncate(23 * MB)
        shelf.file.append([bytes(MB)])
        got = b""
        while part := await _read(bad):
            got += part
        at = got.index(shelf.content[:1000])
        assert got[at:] == shelf.content[: len(got) - at]
        assert len(got) < 24 * MB
        good.send(versions(5))
        assert await good.correlation() == 5
        assert "was cut before what was left in it had been sent" in world.said.text()
        assert shelf.files.left == 0
        assert not world.faulted

    scripted(play)


async def _read(client: Any) -> bytes:
    try:
        data: bytes = await client.reader.read(1 << 16)
    except ConnectionError:
        return b""
    return data


def test_a_client_that_leaves_takes_what_was_left_for_it_along(
    scripted: Run, requests: Requests, shelf: Shelf
) -> None:
    async def play(world: Any) -> None:
        client = await asked(world, shelf, requests)
        await stuck(world)
        client.writer.transport.abort()
        await world.until(lambda: not world.server.connected)
        await world.until(lambda: not shelf.files.left)
        assert not world.faulted

    scripted(play)


def test_nothing_goes_to_a_socket_that_has_been_given_up(
    scripted: Run, requests: Requests, shelf: Shelf
) -> None:
    """Its number may be another connection's by then."""

    async def play(world: Any) -> None:
        await world.connect()
        await world.until(lambda: world.server.connected)
        connection = the_connection(world)
        connection.transport.abort()
        parcel = shelf.parcel(MB)
        connection.output.append(parcel)
        connection.flush()
        assert parcel.unsent == MB

    scripted(play)


def test_a_connection_is_closed_after_its_last_answer_however_large(
    scripted: Run, requests: Requests, shelf: Shelf
) -> None:
    _, fetch = requests

    async def play(world: Any) -> None:
        answering(world, shelf, (24 * MB, 0))
        large = world.node.answer
        world.node.answer = lambda connection, request: [
            *large(connection, request),
            CloseConnection(connection, "it has said enough"),
        ]
        client = await world.connect()
        client.send(fetch(1, 10))
        await stuck(world)
        assert shelf.content in await client.frame()
        assert await client.closed()
        await world.until(lambda: not world.server.connected)

    scripted(play)


def test_who_has_said_all_it_will_say_still_hears_the_answer(
    scripted: Run, requests: Requests, shelf: Shelf
) -> None:
    async def play(world: Any) -> None:
        client = await asked(world, shelf, requests)
        await stuck(world)
        client.writer.write_eof()
        await asyncio.sleep(0.05)
        assert shelf.content in await client.frame()
        assert await client.closed()
        await world.until(lambda: not world.server.connected)

    scripted(play)


def test_a_closed_connection_whose_client_takes_nothing_is_given_up(
    scripted: Run, requests: Requests, shelf: Shelf
) -> None:
    async def play(world: Any) -> None:
        await asked(world, shelf, requests)
        connection = await stuck(world)
        connection.close()
        await world.until(lambda: not world.server.connected)
        assert "does not take its last replies" in world.said.text()
        assert shelf.files.left == 0

    scripted(play, stall_ms=200)


def test_who_takes_little_by_little_is_not_idle(
    scripted: Run, requests: Requests, shelf: Shelf
) -> None:
    async def play(world: Any) -> None:
        client = await asked(world, shelf, requests)
        await stuck(world)
        for _ in range(20):
            await client.reader.readexactly(MB)
            await asyncio.sleep(0.05)
        assert world.server.connected == 1

    scripted(play, idle_ms=400)


class Broken:
    """LeftBytes on a disk that fails."""

    def __init__(self, error: OSError) -> None:
        self.error = error

    def send_to(self, socket: int) -> None:
        raise self.error


def test_a_disk_that_fails_is_told_and_its_log_read_by_a_thread_from_then_on() -> None:
    loop = asyncio.new_event_loop()
    try:
        lane = Lane(TopicPartition("orders", 1), Uuid(bytes(16)), None)
        left: Any = Broken(OSError(errno.EIO, os.strerror(errno.EIO)))
        with pytest.raises(Gone, match="orders-1: Input/output error"):
            Parcel(loop, Readings(), lane, left).send_to(0)
        assert loop.time() < lane.cold_until <= loop.time() + COLD_S
    finally:
        loop.close()


@pytest.mark.parametrize("error", [BlockingIOError, BrokenPipeError, ConnectionResetError])
def test_what_the_socket_says_is_not_blamed_on_the_disk(error: type[OSError]) -> None:
    loop = asyncio.new_event_loop()
    try:
        lane = Lane(TopicPartition("orders", 1), Uuid(bytes(16)), None)
        left: Any = Broken(error())
        with pytest.raises(error):
            Parcel(loop, Readings(), lane, left).send_to(0)
        assert lane.cold_until == 0
    finally:
        loop.close()
