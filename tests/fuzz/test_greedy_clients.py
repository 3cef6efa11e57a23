"""Clients that ask for much and take nothing, or promise much and send nearly all of it."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from cotidal.limits import HELD_BYTES_MAX, MIB, NODE_RESIDENT_BYTES_MAX, UNSENT_BYTES_MAX
from cotidal.messages.rpc.fetch import FetchPartition, FetchRequest, FetchTopic
from cotidal.wire.frames import request_buffers
from real_node import RealNode, real_node
from tests.clients.confluent import Confluent
from tests.clients.speaking import Acks, Sent

LOG_BYTES = 64 * MIB
RECORD_BYTES = 900_000
GREEDY = 30
SOCKET_BYTES = 10 * MIB
"""What the kernel takes off the node for a client that reads nothing: its own buffers, not ours."""
HOARDERS = 12
HOARDED_FRAME_BYTES = 50 * MIB


@pytest.fixture
def node(tmp_path: Path) -> Iterator[RealNode]:
    with real_node(tmp_path) as started:
        yield started


def connection(node: RealNode) -> socket.socket:
    return socket.create_connection(("127.0.0.1", node.port))


def everything(topic: str) -> bytes:
    """A fetch of all that there is, however much."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**31 - 1)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=2**31 - 1,
        topics=(FetchTopic(topic=topic, partitions=(partition,)),),
    )
    return b"".join(bytes(part) for part in request_buffers(1, 12, 1, "greedy", request))


def length_of_answer(reader: socket.socket) -> int:
    size: int = struct.unpack(">i", reader.recv(4, socket.MSG_WAITALL))[0]
    return size


def test_clients_that_take_no_answers_hold_a_bounded_memory(node: RealNode) -> None:
    client = Confluent(node.bootstrap)
    client.create_topic("big")
    record = Sent(None, bytes(RECORD_BYTES))
    client.write("big", 0, [record] * (LOG_BYTES // RECORD_BYTES), codec="none", acks=Acks(1))
    with contextlib.ExitStack() as open_:
        greedy = [open_.enter_context(connection(node)) for _ in range(GREEDY)]
        for each in greedy:
            each.sendall(everything("big"))
        sizes = [length_of_answer(each) for each in greedy]
        assert max(sizes) <= 57_671_680 + RECORD_BYTES  # fetch.max.bytes
        assert min(sizes) > RECORD_BYTES  # the least: one batch
        assert sum(sizes) < UNSENT_BYTES_MAX + GREEDY * (RECORD_BYTES + SOCKET_BYTES)
        assert client.watermarks("big", 0)[0] == 0
        assert len(client.read("big", [0], 10)) == 10
        assert node.memory_bytes() < NODE_RESIDENT_BYTES_MAX


def test_frames_that_are_never_finished_hold_a_bounded_memory(node: RealNode) -> None:
    client = Confluent(node.bootstrap)
    client.create_topic("small")
    head = struct.pack(">ihhih", HOARDED_FRAME_BYTES, 0, 9, 1, -1)
    piece = bytes(MIB)
    with contextlib.ExitStack() as open_:
        hoarders = [open_.enter_context(connection(node)) for _ in range(HOARDERS)]
        taken = 0
        for each in hoarders:
            each.settimeout(0.3)
            each.sendall(head)
            with contextlib.suppress(TimeoutError):
                for _ in range(HOARDED_FRAME_BYTES // MIB - 1):
                    each.sendall(piece)
                    taken += MIB
        assert taken < HOARDERS * (HOARDED_FRAME_BYTES - 2 * MIB)
        assert node.memory_bytes() < HELD_BYTES_MAX + 100 * MIB
        for number in range(20):
            sent = [Sent(None, b"%d" % number)]
            assert client.write("small", 0, sent, codec="none", acks=Acks(-1)) == [number]
