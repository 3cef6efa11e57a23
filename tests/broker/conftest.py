"""A scripted node behind the real driver and the real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest
import uvloop

from cotidal.broker.counters import Counters
from cotidal.broker.driver import Driver
from cotidal.broker.journal import Journal
from cotidal.broker.listeners import Listener, bind
from cotidal.broker.server import Bounds, Gate, Server
from cotidal.messages.batch import Batches
from cotidal.messages.rpc.api_versions import ApiVersionsRequest, ApiVersionsResponse
from cotidal.messages.rpc.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from cotidal.node.effects import (
    CloseConnection,
    Effect,
    PauseReading,
    Respond,
    ResumeReading,
)
from cotidal.node.events import Event, Received, Request
from cotidal.values import Millis
from cotidal.wire.frames import request_buffers

BOUNDS = Bounds(
    connections_max=100,
    connections_per_address_max=100,
    address_overrides={},
    idle_ms=60_000,
    stall_ms=60_000,
    frame_bytes_max=1 << 20,
    held_bytes_max=1 << 26,
)

Answer = Callable[[int, Request], Sequence[Effect]]


def answer_all(connection: int, request: Request) -> Sequence[Effect]:
    """ApiVersions at once; a Fetch with as many bytes as it allows."""
    message: object
    version = request.api_version
    if request.message is None:
        message, version = ApiVersionsResponse(error_code=35), 0
    elif isinstance(request.message, ApiVersionsRequest):
        message = ApiVersionsResponse()
    else:
        assert isinstance(request.message, FetchRequest)
        records = Batches((), bytes(request.message.max_bytes))
        message = FetchResponse(
            responses=(FetchableTopicResponse("t", partitions=(PartitionData(records=records),)),)
        )
    return [Respond(connection, request.api_key, version, request.correlation_id, message)]


class ScriptedNode:
    """Answers each request as the test says and remembers what it saw."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.answer_all = answer_all
        self.seen: list[Event] = []
        self.deadline: Millis | None = None

    def step(self, event: Event, now: Millis) -> tuple[Effect, ...]:
        self.seen.append(event)
        effects: list[Effect] = []
        if isinstance(event, Received):
            for request in event.requests:
                effects.extend(self.answer(event.connection, request))
        return tuple(effects)

    def next_deadline(self) -> Millis | None:
        return self.deadline

    def received(self) -> list[Received]:
        return [event for event in self.seen if isinstance(event, Received)]


class Sentences:
    """A journal's sink that a test can read."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def write(self, level: str, text: str) -> None:
        self.lines.append((level, text))

    def text(self) -> str:
        return "\n".join(text for _, text in self.lines)


class Scripted:
    """Driver, server and a listener on a free port, around a scripted node."""

    def __init__(self, answer: Answer, bounds: Bounds) -> None:
        loop = asyncio.get_running_loop()
        self.node = ScriptedNode(answer)
        self.said = Sentences()
        self.counters = Counters()
        self.faulted = False
        journal = Journal(self.said)
        self.driver = Driver(
            self.node, loop, journal=journal, counters=self.counters, on_fault=self._fault
        )
        self.server = Server(
            loop,
            bounds=bounds,
            post=self.driver.post,
            journal=journal,
            counters=self.counters,
        )
        obey: dict[type, Callable[[Any], None]] = {
            Respond: self.server.respond,
            CloseConnection: self.server.close_connection,
            PauseReading: self.server.pause_reading,
            ResumeReading: self.server.resume_reading,
        }
        self.driver.obey_with(obey, self.server.flush)
        self.port = 0
        self.clients: list[asyncio.StreamWriter] = []

    def _fault(self) -> None:
        self.faulted = True

    async def start(self) -> None:
        listener, sockets = bind(Listener("PLAINTEXT", "127.0.0.1", 0))
        self.port = listener.port
        await self.server.listen(sockets, Gate("PLAINTEXT", {18: (0, 4), 1: (4, 18), 58: (0, 0)}))

    async def connect(self) -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 16)
        self.clients.append(writer)
        return Client(reader, writer)

    async def until(self, condition: Callable[[], object]) -> None:
        """Let the loop turn until it holds; the test's own time limit is the bound."""
        while not condition():
            await asyncio.sleep(0.001)


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def frame(self) -> bytes:
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def correlation(self) -> int:
        return int.from_bytes((await self.frame())[:4], "big")

    async def closed(self) -> bool:
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self.writer.close()


def versions_request(correlation: int, version: int = 3) -> bytes:
    return b"".join(request_buffers(18, version, correlation, "test", ApiVersionsRequest()))


def fetch_request(correlation: int, max_bytes: int, topics: int = 0) -> bytes:
    """Each topic's name is 30 KB long: a way to a large frame that every decoder accepts."""
    request = FetchRequest(max_bytes=max_bytes, topics=(FetchTopic("t" * 30_000),) * topics)
    return b"".join(request_buffers(1, 12, correlation, "test", request))


@pytest.fixture(params=[uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def scripted(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Run a coroutine function against a scripted node on a loop of its own."""

    def run(
        play: Callable[[Scripted], Coroutine[Any, Any, None]],
        *,
        answer: Answer = answer_all,
        **bounds: Any,
    ) -> None:
        async def whole() -> None:
            world = Scripted(answer, BOUNDS._replace(**bounds))
            await world.start()
            try:
                await asyncio.wait_for(play(world), 20)
            finally:
                world.driver.stop()
                world.server.abort_all()
                for writer in world.clients:
                    writer.transport.abort()
                    with contextlib.suppress(OSError):
                        await writer.wait_closed()
                await world.until(lambda: not world.server.connected)

        loop = request.param()
        try:
            loop.run_until_complete(whole())
        finally:
            loop.close()

    return run


@pytest.fixture
def requests() -> tuple[Callable[..., bytes], Callable[..., bytes]]:
    return versions_request, fetch_request
