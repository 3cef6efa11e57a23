"""Whole nodes: in this process on a file system in memory, and as processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import json
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import uvloop

from cotidal.broker.config import BrokerConfig, make_config
from cotidal.broker.journal import Journal
from cotidal.broker.listeners import ListenerError
from cotidal.broker.main import Running, serve
from cotidal.broker.storage import StorageError, format_storage
from cotidal.log.files import OsFiles
from cotidal.log.memory import FOREVER, MemoryFiles
from cotidal.messages.rpc.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from cotidal.messages.rpc.create_topics import CreatableTopic, CreateTopicsRequest
from cotidal.messages.rpc.describe_log_dirs import DescribeLogDirsRequest
from cotidal.messages.rpc.fetch import FetchPartition, FetchRequest, FetchTopic
from cotidal.messages.rpc.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from cotidal.node.effects import Effect
from cotidal.node.node import Node
from cotidal.values import NodeId
from cotidal.wire.batch import read_batches
from cotidal.wire.codec import decode_response
from cotidal.wire.frames import read_response_header, request_buffers
from cotidal.wire.records import Record, build_batch, read_records

PRODUCE, FETCH, CREATE_TOPICS = 0, 1, 19


class Quiet:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def write(self, level: str, text: str) -> None:
        self.texts.append(text)


class Talk:
    """A client with blocking calls, for another process or, in a thread, for this one."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("localhost", port), 10)
        self._correlation = 0

    def call(self, key: int, version: int, message: Any) -> Any:
        self._correlation += 1
        self.socket.sendall(
            b"".join(request_buffers(key, version, self._correlation, "test", message))
        )
        (size,) = struct.unpack(">i", self._exactly(4))
        frame = self._exactly(size)
        correlation, position = read_response_header(frame, key, version)
        assert correlation == self._correlation
        return decode_response(key, version, frame, position)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the node closed the connection")
            data += piece
        return data

    def create(self, topic: str) -> None:
        created = self.call(
            CREATE_TOPICS, 7, CreateTopicsRequest((CreatableTopic(topic, 1, 1),), 10_000)
        )
        assert created.topics[0].error_code == 0, created

    def produce(self, topic: str, value: bytes) -> int:
        """The offset it was acknowledged with."""
        batch = read_batches(build_batch([Record(None, value, timestamp=int(time.time() * 1000))]))
        data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(0, batch),))
        answer = self.call(PRODUCE, 11, ProduceRequest(None, -1, 10_000, (data,)))
        (partition,) = answer.responses[0].partition_responses
        assert partition.error_code == 0, answer
        return int(partition.base_offset)

    def values(self, topic: str) -> list[bytes | None]:
        found: list[bytes | None] = []
        wanted = FetchPartition(0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(max_wait_ms=0, topics=(FetchTopic(topic, partitions=(wanted,)),))
        (partition,) = self.call(FETCH, 12, request).responses[0].partitions
        assert partition.error_code == 0, partition
        position = 0
        for header in partition.records.headers:
            found += [record.value for record in read_records(partition.records.data, position)]
            position += header.size_bytes
        return found

    def close(self) -> None:
        self.socket.close()


# In this process ------------------------------------------------------------------------------


def configured(**settings: str) -> BrokerConfig:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return make_config(
        {"node.id": "1", "listeners": "PLAINTEXT://localhost:0", "log.dirs": "/data", **named}
    )


def play(script: Callable[[], Coroutine[Any, Any, None]]) -> None:
    loop = uvloop.new_event_loop()
    try:
        loop.run_until_complete(asyncio.wait_for(script(), 30))
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def formatted() -> MemoryFiles:
    files = MemoryFiles()
    format_storage(files, "/data", node_id=NodeId(1))
    return files


async def started(files: MemoryFiles, **settings: str) -> Running:
    return await serve(configured(**settings), journal=Journal(Quiet()), files=files)


async def talking(running: Running, work: Callable[[Talk], Any]) -> Any:
    def whole() -> Any:
        talk = Talk(running.addresses[0].port)
        try:
            return work(talk)
        finally:
            talk.close()

    return await asyncio.to_thread(whole)


def test_someone_obeys_every_effect() -> None:
    async def script() -> None:
        running = await started(formatted())
        assert set(running._obeys()) == set(get_args(Effect))
        assert await running.stop() == 0

    play(script)


def test_records_outlive_a_clean_stop_and_a_kill() -> None:
    files = formatted()

    async def script() -> None:
        running = await started(files)
        await talking(running, lambda talk: talk.create("orders"))
        assert await talking(running, lambda talk: talk.produce("orders", b"first")) == 0
        assert await running.stop() == 0
        assert files.exists("/data/.kafka_cleanshutdown")
        running = await started(files)
        assert not files.exists("/data/.kafka_cleanshutdown")
        assert await talking(running, lambda talk: talk.produce("orders", b"second")) == 1
        running.kill()
        files.crash()
        running = await started(files)
        assert await talking(running, lambda talk: talk.values("orders")) == [b"first", b"second"]
        assert await running.stop() == 0

    play(script)


def test_a_node_in_a_test_changes_nothing_of_the_process() -> None:
    before = (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT), gc.get_threshold())

    async def script() -> None:
        running = await started(formatted())
        assert (
            signal.getsignal(signal.SIGTERM),
            signal.getsignal(signal.SIGINT),
            gc.get_threshold(),
        ) == before
        await running.stop()

    play(script)


def test_a_fault_in_the_node_ends_it_with_70(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script() -> None:
        said = Quiet()
        running = await serve(configured(), journal=Journal(said), files=formatted())

        def broken(self: Node, event: Any, now: Any) -> Any:
            raise AssertionError("a promise is broken")

        monkeypatch.setattr(Node, "step", broken)
        with contextlib.suppress(ConnectionError):
            await talking(running, lambda talk: talk.create("orders"))
        assert await running.wait() == 70
        assert "a promise is broken" in "\n".join(said.texts)

    play(script)


def test_a_metadata_log_that_fails_ends_the_node_with_a_sentence() -> None:
    files = formatted()

    async def script() -> None:
        said = Quiet()
        running = await serve(configured(), journal=Journal(said), files=files)
        files.fail("sync", "__cluster_metadata-0", error=errno.EIO, times=100)
        with contextlib.suppress(ConnectionError):
            await talking(running, lambda talk: talk.create("orders"))
        assert await running.wait() == 1
        assert "the metadata log cannot be written" in "\n".join(said.texts)

    play(script)


def test_what_keeps_a_node_from_starting_is_one_sentence() -> None:
    async def script() -> None:
        with pytest.raises(StorageError, match="not formatted"):
            await started(MemoryFiles())
        files = formatted()
        running = await started(files)
        with pytest.raises(StorageError, match="in use by another process"):
            await started(files)
        port = running.addresses[0].port
        other = formatted()
        with pytest.raises(ListenerError, match="the port is in use"):
            await started(other, listeners=f"PLAINTEXT://localhost:{port}")
        await (await started(other)).stop()  # the failed start has let go of the directory
        await running.stop()

    play(script)


def test_a_node_goes_on_with_the_log_directories_it_has_left() -> None:
    files = MemoryFiles()
    cluster = format_storage(files, "/m", node_id=NodeId(1)).cluster_id
    for path in ("/a", "/b"):
        format_storage(files, path, node_id=NodeId(1), cluster_id=cluster)
    settings = {"log_dirs": "/a,/b", "metadata_log_dir": "/m"}

    async def script() -> None:
        running = await started(files, **settings)
        await talking(running, lambda talk: [talk.create(name) for name in ("one", "two")])
        for name in ("one", "two"):
            assert await talking(running, lambda talk, to=name: talk.produce(to, b"kept")) == 0
        assert files.exists("/a/one-0")
        assert files.exists("/b/two-0")
        assert files.exists("/m/__cluster_metadata-0")
        files.fail("append", "/b/", times=FOREVER)
        with pytest.raises(AssertionError, match="error_code=56"):
            await talking(running, lambda talk: talk.produce("two", b"lost"))
        assert await talking(running, lambda talk: talk.produce("one", b"more")) == 1
        described = await talking(
            running, lambda talk: talk.call(35, 4, DescribeLogDirsRequest(None))
        )
        assert [(each.log_dir, each.error_code) for each in described.results] == [
            ("/a", 0),
            ("/b", 56),
        ]
        assert await running.stop() == 0
        assert files.exists("/a/.kafka_cleanshutdown")
        assert not files.exists("/b/.kafka_cleanshutdown")
        files.mend()
        running = await started(files, **settings)
        assert await talking(running, lambda talk: talk.values("two")) == [b"kept"]
        assert await talking(running, lambda talk: talk.produce("two", b"again")) == 1
        assert await running.stop() == 0

    play(script)


def test_a_replica_moves_between_directories_and_the_controller_knows_where_it_is() -> None:
    files = MemoryFiles()
    cluster = format_storage(files, "/m", node_id=NodeId(1)).cluster_id
    ids = {
        path: format_storage(files, path, node_id=NodeId(1), cluster_id=cluster).directory_id
        for path in ("/a", "/b")
    }
    settings = {"log_dirs": "/a,/b", "metadata_log_dir": "/m"}
    places = AlterReplicaLogDir("/b", (AlterReplicaLogDirTopic("one", (0, 7)),))
    nowhere = AlterReplicaLogDir("/c", (AlterReplicaLogDirTopic("one", (0,)),))

    async def script() -> None:
        running = await started(files, **settings)
        await talking(running, lambda talk: talk.create("one"))
        assert await talking(running, lambda talk: talk.produce("one", b"before")) == 0
        asked = AlterReplicaLogDirsRequest((places, nowhere))
        moved = await talking(running, lambda talk: talk.call(34, 2, asked))
        assert [(each.topic_name, each.partitions) for each in moved.results] == [
            ("one", ((0, 0), (7, 3), (0, 57)))
        ]
        image = running._node._state.controller.committed
        while image.partition("one", 0).directory(NodeId(1)) != ids["/b"]:
            await asyncio.sleep(0.001)
            image = running._node._state.controller.committed
        assert await talking(running, lambda talk: talk.produce("one", b"after")) == 1
        described = await talking(
            running, lambda talk: talk.call(35, 4, DescribeLogDirsRequest(None))
        )
        held = {each.log_dir: [topic.name for topic in each.topics] for each in described.results}
        assert held == {"/a": [], "/b": ["one"]}
        assert await running.stop() == 0
        running = await started(files, **settings)
        assert await talking(running, lambda talk: talk.values("one")) == [b"before", b"after"]
        assert await running.stop() == 0

    play(script)


def test_a_node_without_any_log_directory_left_ends_with_a_sentence() -> None:
    files = MemoryFiles()
    cluster = format_storage(files, "/m", node_id=NodeId(1)).cluster_id
    for path in ("/a", "/b"):
        format_storage(files, path, node_id=NodeId(1), cluster_id=cluster)

    async def script() -> None:
        quiet = Quiet()
        config = configured(log_dirs="/a,/b", metadata_log_dir="/m")
        running = await serve(config, journal=Journal(quiet), files=files)
        await talking(running, lambda talk: [talk.create(name) for name in ("one", "two")])
        files.fail("append", "/a/one-0")
        files.fail("append", "/b/two-0")
        for name in ("one", "two"):
            with contextlib.suppress(AssertionError, ConnectionError):
                await talking(running, lambda talk, to=name: talk.produce(to, b"x"))
        assert await running.wait() == 1
        assert quiet.texts[-1].startswith("every log directory has failed, the last one with two-0")
        assert quiet.texts[-1].endswith("; this node stops")

    play(script)


async def http(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("localhost", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


def test_metrics_and_health_are_answered_on_their_own_port() -> None:
    async def script() -> None:
        running = await started(formatted(), cotidal_metrics_port="0")
        await talking(running, lambda talk: talk.create("orders"))
        assert running.metrics_address is not None
        port = running.metrics_address.port
        health = await http(port, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert health.startswith(b"HTTP/1.1 200 OK\r\n")
        metrics = (await http(port, b"GET /metrics?x=1 HTTP/1.1\r\n\r\n")).decode()
        assert 'cotidal_requests_total{api="CreateTopics"} 1\n' in metrics
        assert "cotidal_partitions 1\n" in metrics
        assert 'cotidal_loop_lag_seconds_bucket{le="+Inf"}' in metrics
        assert (await http(port, b"HEAD /healthz HTTP/1.1\r\n\r\n")).endswith(b"\r\n\r\n")
        assert b" 404 " in await http(port, b"GET / HTTP/1.1\r\n\r\n")
        assert b" 405 " in await http(port, b"POST /metrics HTTP/1.1\r\n\r\n")
        assert b" 431 " in await http(port, b"GET /" + b"x" * 9000)
        await running.stop()

    play(script)


def test_a_node_that_is_not_ready_is_not_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script() -> None:
        monkeypatch.setattr(Node, "step", lambda self, event, now: ())
        running = Running(configured(cotidal_metrics_port="0"), Journal(Quiet()), formatted())
        starting = asyncio.ensure_future(running.start())
        while running.metrics_address is None:
            await asyncio.sleep(0.001)
        answer = await http(running.metrics_address.port, b"GET /healthz HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 503 ")
        running.kill()
        await starting

    play(script)


# As a process ---------------------------------------------------------------------------------


class Process:
    """`cotidal broker` on a directory, known by the line it says when it serves."""

    def __init__(self, directory: Path, *options: str, limit: int | None = None) -> None:
        config = directory / "server.properties"
        config.write_text(
            f"node.id=1\nlisteners=PLAINTEXT://localhost:0\nlog.dirs={directory}/data\n"
        )
        command = [sys.executable, "-m", "cotidal", "broker", "--config", str(config), *options]
        if limit is not None:
            command = ["bash", "-c", f'ulimit -n {limit}; exec "$@"', "-", *command]
        self.popen = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.port = 0
        self.lines: list[str] = []

    def serving(self) -> Process:
        assert self.popen.stderr is not None
        for line in self.popen.stderr:
            self.lines.append(line)
            if "serving on" in line:
                text = json.loads(line)["text"]
                self.port = int(text.split("localhost:")[1].split()[0])
                return self
        raise AssertionError(f"it does not serve: {self.lines}")

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.popen.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        assert self.popen.stderr is not None
        self.lines += self.popen.stderr.readlines()
        return self.popen.wait(20)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    format_storage(OsFiles(), str(tmp_path / "data"), node_id=NodeId(1))
    return tmp_path


@pytest.fixture
def launch(directory: Path) -> Iterator[Callable[..., Process]]:
    made: list[Process] = []

    def start(*options: str, **more: Any) -> Process:
        made.append(Process(directory, *options, **more))
        return made[-1]

    yield start
    for process in made:
        process.popen.kill()
        process.popen.wait()
        assert process.popen.stderr is not None
        process.popen.stderr.close()


Launch = Callable[..., Process]


def test_sigterm_stops_a_process_in_order(launch: Launch, directory: Path) -> None:
    process = launch().serving()
    talk = Talk(process.port)
    talk.create("orders")
    talk.produce("orders", b"kept")
    talk.close()
    assert process.stop() == 0
    assert json.loads((directory / "data/.kafka_cleanshutdown").read_text())["version"] == 0
    checkpoint = (directory / "data/recovery-point-offset-checkpoint").read_text()
    assert "orders 0 1" in checkpoint


def test_what_was_acknowledged_survives_kill_9(launch: Launch, directory: Path) -> None:
    process = launch().serving()
    talk = Talk(process.port)
    talk.create("orders")
    sent = [b"value %d" % number for number in range(50)]
    assert [talk.produce("orders", value) for value in sent] == list(range(50))
    assert process.stop(signal.SIGKILL) == -signal.SIGKILL
    assert not (directory / "data/.kafka_cleanshutdown").exists()
    talk.close()
    again = launch().serving()
    talk = Talk(again.port)
    assert talk.values("orders") == sent
    assert talk.produce("orders", b"next") == 50
    talk.close()


@pytest.mark.parametrize(
    ("option", "code", "sentence"),
    [
        ("node.id=x", 2, "node.id is 'x', but must be a whole number"),
        ("listeners=SSL://:0", 2, "only PLAINTEXT is spoken"),
        ("node.id=7", 1, "belongs to node 1, but node.id is 7"),
        ("listeners=PLAINTEXT://no.such.host.invalid:0", 1, "has no address"),
    ],
)
def test_a_wrong_start_is_one_sentence_and_an_exit_code(
    launch: Launch, option: str, code: int, sentence: str
) -> None:
    process = launch("--override", option)
    assert process.ended() == code
    assert len(process.lines) == 1
    assert sentence in process.lines[0]


def test_a_crowd_past_the_descriptors_does_not_stop_a_node(launch: Launch) -> None:
    process = launch(limit=128).serving()
    first = Talk(process.port)
    first.create("orders")
    crowd = []
    for _ in range(200):
        with contextlib.suppress(OSError):
            crowd.append(socket.create_connection(("localhost", process.port), 1))
    assert first.produce("orders", b"still here") == 0
    for each in crowd:
        each.close()
    deadline = time.monotonic() + 10
    while True:
        try:
            late = Talk(process.port)
            assert late.produce("orders", b"welcome again") == 1
            late.close()
            break
        except OSError:
            assert time.monotonic() < deadline
    first.close()
    assert process.stop() == 0


def test_a_process_says_how_long_its_start_took(launch: Launch) -> None:
    line = launch().serving().lines[-1]
    seconds = float(json.loads(line)["text"].rpartition(", ")[2].split()[0])
    assert seconds > 0
