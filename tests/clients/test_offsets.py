"""Where logs start and end, and which offset belongs to a time."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from tests.clients.confluent import Confluent
from tests.clients.speaking import Acks, Client, Sent

ALL = Acks(-1)
NOON = 1_700_000_000_000
TEN = tuple(Sent(b"k", b"v%d" % n, (), NOON + 1_000 * n) for n in range(10))


@pytest.fixture
def written(client: Client, topic: str) -> str:
    """Ten records, a second apart, in five batches."""
    client.create_topic(topic)
    for first in range(0, 10, 2):
        client.write(topic, 0, TEN[first : first + 2], codec="none", acks=ALL)
    return topic


def test_watermarks_are_the_ends_of_the_log(client: Client, written: str) -> None:
    assert client.watermarks(written, 0) == (0, 10)


@pytest.mark.parametrize(
    ("timestamp", "offset"),
    [
        (0, 0),
        (NOON, 0),
        (NOON + 1, 1),
        (NOON + 5_000, 5),
        (NOON + 9_000, 9),
        (NOON + 9_001, None),
    ],
)
def test_a_time_is_the_first_record_not_before_it(
    client: Client, written: str, timestamp: int, offset: int | None
) -> None:
    assert client.offset_at(written, 0, timestamp) == offset


def test_a_time_before_deleted_records_is_the_start_of_the_log(
    client: Client, written: str
) -> None:
    client.delete_records(written, 0, before=3)
    assert client.offset_at(written, 0, NOON) == 3


def test_a_compressed_batch_is_looked_into(client: Client, topic: str) -> None:
    client.create_topic(topic)
    client.write(topic, 0, TEN, codec="gzip", acks=ALL)
    assert client.offset_at(topic, 0, NOON + 6_500) == 7


def test_append_time_replaces_the_time_of_the_client(client: Client, topic: str) -> None:
    client.create_topic(topic, configs={"message.timestamp.type": "LogAppendTime"})
    before = int(time.time() * 1000)
    client.write(topic, 0, TEN, codec="gzip", acks=ALL)
    after = int(time.time() * 1000)
    for got in client.read(topic, [0], 10):
        assert got.timestamp_type == 1
        assert before <= got.timestamp <= after
    assert client.offset_at(topic, 0, before) == 0
    assert client.offset_at(topic, 0, after + 1) is None


def test_admin_lists_offsets_of_every_kind(topic: str, confluent: Confluent) -> None:
    confluent.create_topic(topic)
    confluent.write(topic, 0, [*TEN[5:], *TEN[:5]], codec="none", acks=ALL)
    confluent.delete_records(topic, 0, before=2)
    asked = TopicPartition(topic, 0)

    def offset(spec: OffsetSpec) -> tuple[int, int]:
        found = confluent.admin.list_offsets({asked: spec})[asked].result(10)
        return (found.offset, found.timestamp)

    assert offset(OffsetSpec.earliest()) == (2, -1)
    assert offset(OffsetSpec.latest()) == (10, -1)
    assert offset(OffsetSpec.max_timestamp()) == (4, NOON + 9_000)
    assert offset(OffsetSpec.for_timestamp(NOON + 8_500)) == (4, NOON + 9_000)
