"""Files that are not as they were left: cut where that is safe, named where it is not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from real_node import RealNode, real_node
from tests.clients.confluent import Confluent
from tests.clients.speaking import Acks, Sent

ALL = Acks(-1)
TOPIC = "t"
SEGMENT = "00000000000000000000.log"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[RealNode]:
    with real_node(tmp_path) as started:
        yield started


@pytest.fixture
def client(node: RealNode) -> Confluent:
    """Two partitions with ten batches of one record each."""
    made = Confluent(node.bootstrap)
    made.create_topic(TOPIC, partitions=2)
    for partition in (0, 1):
        for number in range(10):
            record = Sent(None, b"record %d" % number)
            made.write(TOPIC, partition, [record], codec="none", acks=ALL)
    return made


def segment(node: RealNode, partition: int = 0) -> Path:
    return node.log_directory(TOPIC, partition) / SEGMENT


def batch_bytes(node: RealNode) -> int:
    return segment(node).stat().st_size // 10


def values(client: Confluent, partition: int, count: int) -> list[bytes | None]:
    return [got.value for got in client.read(TOPIC, [partition], count)]


@pytest.mark.parametrize("garbage", [b"\0" * 200, os.urandom(200), b"\0", b"\xff" * 61])
def test_garbage_at_the_end_is_cut_and_told(
    node: RealNode, client: Confluent, garbage: bytes
) -> None:
    node.kill()
    with segment(node).open("ab") as end:
        end.write(garbage)
    node.start()
    assert client.watermarks(TOPIC, 0) == (0, 10)
    assert len(values(client, 0, 10)) == 10
    assert client.write(TOPIC, 0, [Sent(None, b"next")], codec="none", acks=ALL) == [10]
    (told,) = [said.text for said in node.sentences("warning") if f"{TOPIC}-0" in said.text]
    assert f"{len(garbage)} bytes" in told
    assert values(client, 0, 11)[-1] == b"next"


def test_a_batch_that_is_cut_short_goes_and_the_rest_stays(
    node: RealNode, client: Confluent
) -> None:
    node.kill()
    os.truncate(segment(node), segment(node).stat().st_size - 5)
    node.start()
    assert client.watermarks(TOPIC, 0) == (0, 9)
    assert client.watermarks(TOPIC, 1) == (0, 10)
    assert values(client, 0, 9) == [b"record %d" % number for number in range(9)]
    assert any(f"{TOPIC}-0" in said.text for said in node.sentences("warning"))
    assert not any(f"{TOPIC}-1" in said.text for said in node.sentences("warning"))


def test_indexes_are_made_anew(node: RealNode, client: Confluent) -> None:
    node.kill()
    for name in ("index", "timeindex"):
        path = segment(node).with_suffix(f".{name}")
        path.write_bytes(os.urandom(64))
    node.start()
    assert len(values(client, 0, 10)) == 10
    assert client.offset_at(TOPIC, 0, 0) == 0


def test_a_bit_that_flips_in_the_middle_takes_the_log_offline_and_is_never_served(
    node: RealNode, client: Confluent
) -> None:
    """The node has stopped in order, so that nobody looks at the log before it is read."""
    assert node.stop() == 0
    flip(node, batch_bytes(node) * 5 - 3)
    node.start()
    consumer = client.consumer()
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    got = [message.value() for message in consumer.consume(10, 3)]
    consumer.close()
    assert got == [b"record %d" % number for number in range(4)]
    (told,) = [said.text for said in node.sentences("error")]
    assert f"{TOPIC}-0: {SEGMENT} is damaged at byte {batch_bytes(node) * 4}: crc" in told
    assert "offsets from 4 to the next good segment are not served" in told
    assert "this replica is offline" in told
    assert values(client, 1, 10) == [b"record %d" % number for number in range(10)]
    assert client.write(TOPIC, 1, [Sent(None, b"v")], codec="none", acks=ALL) == [10]
    assert segment(node).stat().st_size == batch_bytes(node) * 10, "the last replica is not cut"


def flip(node: RealNode, position: int) -> None:
    data = bytearray(segment(node).read_bytes())
    data[position] ^= 0x10
    segment(node).write_bytes(data)
