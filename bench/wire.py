"""Microseconds per message: the codec alone, without sockets (``python -m bench.wire``).

The messages are those of the hot path as clients send them, and the one big answer, Metadata.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from bench.timing import Task, main
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from cotidal.messages.rpc.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from cotidal.messages.rpc.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from cotidal.values import Uuid
from cotidal.wire.batch import crc32c, read_batches
from cotidal.wire.codec import decode_request, decode_response
from cotidal.wire.frames import (
    FrameReader,
    read_request_header,
    request_buffers,
    response_buffers,
)

TOPIC_ID: Final = Uuid(bytes(range(16)))
FRAME_BYTES_MAX: Final = 100 << 20


def batch(value_bytes: int) -> bytes:
    """A batch of one record."""
    body = b"\x00\x00\x00\x01" + _varint(value_bytes) + bytes(value_bytes) + b"\x00"
    record = _varint(len(body)) + body
    tail = struct.pack(">hiqqqhii", 0, 0, 1, 1, -1, -1, -1, 1) + record
    return struct.pack(">qiibI", 0, len(tail) + 9, -1, 2, crc32c(tail)) + tail


def _varint(value: int) -> bytes:
    rest, out = value << 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def tasks() -> Iterator[Task]:
    yield from _produce()
    yield from _fetch()
    yield from _metadata()
    yield from _batches()


def _produce() -> Iterator[Task]:
    key = int(ApiKey.PRODUCE)
    for version in (9, 13):
        identity: dict[str, Any] = {"topic_id": TOPIC_ID} if version >= 13 else {"name": "orders"}
        data = (PartitionProduceData(0, read_batches(batch(100))),)
        request = ProduceRequest(
            None, -1, 30_000, (TopicProduceData(**identity, partition_data=data),)
        )
        frame = b"".join(request_buffers(key, version, 7, "client", request))
        answers = (PartitionProduceResponse(0, 0, 1234, -1, 0),)
        response = ProduceResponse((TopicProduceResponse(**identity, partition_responses=answers),))
        yield Task(f"ProduceRequest v{version}, 100 B: frame to value", _reading(frame))
        yield Task(f"ProduceRequest v{version}, 100 B: body to value", _decoding(frame[4:]), 3.0)
        yield Task(
            f"ProduceResponse v{version}: value to frame", _writing(key, version, response), 1.5
        )


def _fetch() -> Iterator[Task]:
    key, version = int(ApiKey.FETCH), 17
    partitions = tuple(FetchPartition(n, 3, 1000, -1, -1, 1 << 20) for n in range(6))
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, session_id=9, topics=(FetchTopic("", TOPIC_ID, partitions),)
    )
    frame = b"".join(request_buffers(key, version, 7, "client", request))
    yield Task("FetchRequest v17, 6 partitions: frame to value", _reading(frame))
    empty = FetchRequest(max_wait_ms=500, min_bytes=1, session_id=9, session_epoch=5)
    frame = b"".join(request_buffers(key, version, 7, "client", empty))
    yield Task("FetchRequest v17, session without change: frame to value", _reading(frame))
    for size in (100, 1 << 20):
        data = (PartitionData(0, 0, 1001, 1001, 0, records=read_batches(batch(size))),)
        response = FetchResponse(responses=(FetchableTopicResponse("", TOPIC_ID, data),))
        yield Task(f"FetchResponse v17, {size} B: value to frame", _writing(key, version, response))


def _metadata() -> Iterator[Task]:
    key, version = int(ApiKey.METADATA), 12
    partition = MetadataResponsePartition(0, 0, 1, 5, (1, 2, 3), (1, 2, 3))
    topics = tuple(
        MetadataResponseTopic(
            0,
            f"topic-{n}",
            TOPIC_ID,
            False,
            tuple(partition._replace(partition_index=p) for p in range(12)),
        )
        for n in range(100)
    )
    brokers = tuple(MetadataResponseBroker(n, "localhost", 9092 + n, f"r{n}") for n in range(3))
    response = MetadataResponse(0, brokers, "cluster", 1, topics)
    frame = b"".join(response_buffers(key, version, 7, response))
    yield Task(
        "MetadataResponse v12, 1,200 partitions: value to frame",
        _writing(key, version, response),
        1600.0,
    )
    yield Task(
        "MetadataResponse v12, 1,200 partitions: frame to value",
        lambda: decode_response(key, version, frame, 9),
    )


def _batches() -> Iterator[Task]:
    for size in (100, 16_384, 1 << 20):
        data = batch(size)
        yield Task(f"batch of {size} B: header and crc", partial(read_batches, data))
    frames = b"".join(struct.pack(">i", 200) + bytes(200) for _ in range(100))
    reader = FrameReader(FRAME_BYTES_MAX)
    yield Task("100 frames of 200 B in one read", lambda: reader.feed(frames))


def _reading(frame: bytes) -> Callable[[], object]:
    """What a broker does with a frame: cut it off, read its header, read its body."""
    reader = FrameReader(FRAME_BYTES_MAX)

    def run() -> object:
        (whole,) = reader.feed(frame)
        header = read_request_header(whole)
        return decode_request(header.api_key, header.api_version, whole, header.body_position)

    return run


def _decoding(frame: bytes) -> Callable[[], object]:
    header = read_request_header(frame)
    return partial(decode_request, header.api_key, header.api_version, frame, header.body_position)


def _writing(api_key: int, version: int, response: object) -> Callable[[], object]:
    return lambda: response_buffers(api_key, version, 7, response)


if __name__ == "__main__":
    sys.exit(main("python -m bench.wire", __doc__, tasks))
