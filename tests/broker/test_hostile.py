"""Well-formed requests with absurd contents: whatever a client asks, a node answers or closes."""

from __future__ import annotations

import asyncio
import importlib
import random
import types
import typing
from typing import Any

import pytest
import uvloop

from cotidal.api.registry import APIS
from cotidal.broker.config import make_config
from cotidal.broker.journal import Journal
from cotidal.broker.main import Running, serve
from cotidal.broker.storage import format_storage
from cotidal.log.memory import MemoryFiles
from cotidal.messages.batch import Batches
from cotidal.messages.rpc.apis import APIS as KNOWN
from cotidal.messages.rpc.metadata import MetadataRequest, MetadataRequestTopic
from cotidal.values import NodeId
from cotidal.wire.batch import read_batches
from cotidal.wire.frames import request_buffers
from cotidal.wire.records import Record, build_batch

REQUESTS = 1500
NUMBERS = [-(2**31), -3, -2, -1, 0, 0, 0, 1, 1, 2, 5, 100, 2**15 - 1, 2**31 - 1, 2**63 - 1]
WORDS = ["", "orders", "orders", "orders", "nope", "x" * 300, "__cluster_metadata", "..", "1"]


class Absurd:
    """Values of any message class, drawn from the corners of what its fields can hold."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def request(self) -> bytes | None:
        """None for a value that this version cannot say."""
        api = APIS[self.draw.choice(list(APIS))]
        module = importlib.import_module(f"cotidal.messages.rpc.{KNOWN[api.key].module}")
        version = self.draw.randint(api.oldest, api.newest)
        message = self.value(getattr(module, f"{api.name}Request"))
        try:
            return b"".join(request_buffers(api.key, version, 7, "absurd", message))
        except (ValueError, OverflowError, TypeError, ArithmeticError, KeyError):
            return None
        except Exception as wrong:
            if type(wrong).__name__ == "error":  # struct.error: a number too large for its field
                return None
            raise

    def value(self, kind: Any) -> Any:
        origin = typing.get_origin(kind)
        if origin in (typing.Union, types.UnionType):
            choices = [each for each in typing.get_args(kind) if each is not type(None)]
            return None if self.draw.random() < 0.1 else self.value(self.draw.choice(choices))
        if origin is tuple:
            return tuple(
                self.value(typing.get_args(kind)[0]) for _ in range(self.draw.choice([0, 1, 1, 2]))
            )
        if kind is Batches:
            return self.batches()
        if hasattr(kind, "_fields"):
            hints = typing.get_type_hints(kind)
            return kind(
                **{name: self.value(hints[name]) for name in hints if self.draw.random() < 0.8}
            )
        if kind is bool:
            return self.draw.random() < 0.5
        if kind is int:
            return self.draw.choice(NUMBERS)
        if kind is str:
            return self.draw.choice(WORDS)
        return bytes(16)

    def batches(self) -> Batches:
        times = [-1, 0, 10**12, 2**60]
        records = [Record(None, b"v", timestamp=self.draw.choice(times))]
        return read_batches(
            build_batch(
                records,
                producer_id=self.draw.choice([-1, -1, 0, 5]),
                producer_epoch=self.draw.choice([-1, 0, 1]),
                base_sequence=self.draw.choice([-1, 0, 1, 7]),
                control=self.draw.random() < 0.1,
                transactional=self.draw.random() < 0.1,
            )
        )


class Nowhere:
    def write(self, level: str, text: str) -> None:
        return None


async def send(running: Running, frames: list[bytes]) -> None:
    """One connection; reads what comes until the node has taken everything or closed."""
    reader, writer = await asyncio.open_connection("localhost", running.addresses[0].port)
    before = running.counters.bytes_in
    try:
        writer.write(b"".join(frames))
        writer.write_eof()
        await asyncio.wait_for(reader.read(), 0.2)
    except (OSError, TimeoutError):
        pass
    finally:
        writer.transport.abort()
    assert running.counters.bytes_in >= before


@pytest.mark.parametrize("seed", [1, 2])
def test_no_request_stops_a_node(seed: int) -> None:
    async def script() -> None:
        files = MemoryFiles()
        format_storage(files, "/data", node_id=NodeId(1))
        config = make_config(
            {"node.id": "1", "listeners": "PLAINTEXT://localhost:0", "log.dirs": "/data"}
        )
        running = await serve(config, journal=Journal(Nowhere()), files=files)
        create = MetadataRequest((MetadataRequestTopic(name="orders"),), True)
        await send(running, [b"".join(request_buffers(3, 12, 1, "test", create))])
        absurd = Absurd(seed)
        sent = 0
        while sent < REQUESTS:
            frames = [frame for frame in (absurd.request() for _ in range(10)) if frame]
            await send(running, frames)
            sent += len(frames)
            assert running._is_serving()
        assert sum(running.counters.requests.values()) > REQUESTS / 4
        assert await running.stop() == 0

    loop = uvloop.new_event_loop()
    try:
        loop.run_until_complete(asyncio.wait_for(script(), 60))
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
