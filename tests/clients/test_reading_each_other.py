"""Every client reads what every client wrote: each codec, each acks level, all of a record."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotidal.wire.batch import read_batches
from real_node import RealNode
from tests.clients.conftest import CLIENTS
from tests.clients.speaking import Acks, Client, Got, Sent

ACKS = (Acks(0), Acks(1), Acks(-1), Acks(-1, idempotent=True))
"""Each has a partition of its own: an acks=0 producer may still be writing when it ends."""

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""In the order of their numbers in a batch's attributes."""

FIRST_TIME = 1_600_000_000_123

RECORDS = (
    Sent(b"plain", b"value", (), FIRST_TIME),
    Sent(None, b"no key", (), FIRST_TIME + 1),
    Sent(b"tombstone", None, (), FIRST_TIME + 2),
    Sent(b"", b"", (), FIRST_TIME + 3),
    Sent(b"h", b"v", (("one", b"1"), ("one", b"again"), ("empty", b"")), FIRST_TIME + 4),
    Sent("ключ".encode(), bytes(range(256)), (("заголовок", b"\xff\x00"),), FIRST_TIME + 5),
    Sent(b"earlier than the one before", b"v", (), FIRST_TIME - 86_400_000),
    *(Sent(b"%d" % n, b"the same again " * 200, (), FIRST_TIME + 10 + n) for n in range(20)),
)

WRITES = [
    pytest.param(make, codec, id=f"{make.name}-{codec}")
    for make in CLIENTS
    for codec in make.codecs
]


@pytest.mark.parametrize(("writer", "codec"), WRITES)
def test_every_client_reads_what_a_client_wrote(
    node: RealNode,
    clients: tuple[Client, ...],
    topic: str,
    writer: type[Client],
    codec: str,
) -> None:
    writing = writer(node.bootstrap)  # type: ignore[call-arg]
    writing.create_topic(topic, partitions=len(ACKS))
    for partition, acks in enumerate(ACKS):
        offsets = writing.write(topic, partition, RECORDS, codec=codec, acks=acks)
        assert offsets == (list(range(len(RECORDS))) if acks.level else [])
    expected = [
        Got(partition, offset, *sent, timestamp_type=0)
        for partition in range(len(ACKS))
        for offset, sent in enumerate(RECORDS)
    ]
    for reader in clients:
        if codec in reader.codecs:
            assert reader.read(topic, range(len(ACKS)), len(expected)) == expected, reader.name
    for partition in range(len(ACKS)):
        assert codecs_on_disk(node.log_directory(topic, partition)) == {codec}


def codecs_on_disk(directory: Path) -> set[str]:
    (segment,) = directory.glob("*.log")
    headers = read_batches(segment.read_bytes()).headers
    return {CODECS[header.attributes & 7] for header in headers}
