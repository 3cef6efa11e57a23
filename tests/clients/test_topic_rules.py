"""What a topic asks of records: keys where it is compacted, youth, a compression of its own."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import KafkaError, Message

from cotidal.errors import ErrorCode
from tests.clients.confluent import Confluent
from tests.clients.speaking import PATIENCE_SECONDS, Acks, Client, Refused, Sent

ALL = Acks(-1)


@pytest.mark.parametrize("acks", [Acks(-1), Acks(-1, idempotent=True)], ids=str)
def test_compacted_topic_takes_records_with_a_key_only(
    client: Client, topic: str, acks: Acks
) -> None:
    client.create_topic(topic, configs={"cleanup.policy": "compact"})
    with pytest.raises(Refused) as refused:
        client.write(topic, 0, [Sent(None, b"v")], codec="none", acks=acks)
    if client.name != "aiokafka":  # which does not know this code, and calls it unknown
        assert refused.value.code == ErrorCode.INVALID_RECORD
    assert client.write(topic, 0, [Sent(b"k", b"v")], codec="none", acks=acks) == [0]


def test_of_a_batch_that_is_refused_the_client_tells_which_record_is_at_fault(
    topic: str, confluent: Confluent
) -> None:
    confluent.create_topic(topic, configs={"cleanup.policy": "compact"})
    producer = confluent.producer(**{"linger.ms": 300})
    told: dict[bytes | None, int] = {}

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        assert error is not None, "none of them is written"
        told[message.value()] = error.code()

    # librdkafka looks at them only where there are two.
    for key, value in ((b"k", b"good"), (None, b"bad"), (None, b"bad too"), (b"l", b"good too")):
        producer.produce(topic, value, key, partition=0, on_delivery=on_delivery)
    assert producer.flush(PATIENCE_SECONDS) == 0
    different = KafkaError._INVALID_DIFFERENT_RECORD
    assert {told[b"bad"], told[b"bad too"]} == {ErrorCode.INVALID_RECORD}
    assert {told[b"good"], told[b"good too"]} == {different}


def test_record_that_is_too_old_is_refused(client: Client, topic: str) -> None:
    client.create_topic(topic, configs={"message.timestamp.before.max.ms": "60000"})
    now = int(time.time() * 1000)
    with pytest.raises(Refused) as refused:
        client.write(topic, 0, [Sent(b"k", b"v", (), now - 120_000)], codec="none", acks=ALL)
    assert refused.value.code == ErrorCode.INVALID_TIMESTAMP
    young = [Sent(b"k", b"v", (), now)]
    assert client.write(topic, 0, young, codec="none", acks=ALL) == [0]


@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_client_reads_what_the_broker_has_compressed(
    client: Client, topic: str, codec: str
) -> None:
    if codec not in ("uncompressed", *client.codecs):
        pytest.skip(f"{client.name} does not read {codec} here")
    client.create_topic(topic, configs={"compression.type": codec})
    values = [Sent(b"k%d" % n, b"v" * 1000, (("h", b"1"),), 1_700_000_000_000) for n in range(50)]
    client.write(topic, 0, values, codec="gzip", acks=ALL)
    found = client.read(topic, [0], 50)
    assert [(each.key, each.value, each.headers) for each in found] == [
        (each.key, each.value, each.headers) for each in values
    ]


def test_client_reads_a_compacted_log(client: Client, topic: str) -> None:
    """With gaps, and with batches that no record is left in."""
    client.create_topic(
        topic,
        configs={
            "cleanup.policy": "compact",
            "internal.segment.bytes": "4000",
            "min.cleanable.dirty.ratio": "0.01",
        },
    )
    acks = Acks(-1, idempotent=True)
    newest: dict[bytes, tuple[int, bytes]] = {}
    for first in range(0, 300, 10):
        records = [Sent(b"k%d" % (n % 7), b"%d" % n + b"." * 30) for n in range(first, first + 10)]
        for offset, each in zip(
            client.write(topic, 0, records, codec="none", acks=acks), records, strict=True
        ):
            assert each.key is not None
            assert each.value is not None
            newest[each.key] = (offset, each.value)
    until = time.monotonic() + PATIENCE_SECONDS
    while (begins := client.read(topic, [0], 1)[0].offset) < 100:
        assert time.monotonic() < until, f"not compacted: it begins at {begins}"
        time.sleep(0.2)
    assert client.watermarks(topic, 0) == (0, 300)
    last = max(offset for offset, _ in newest.values())
    count = 7
    while (found := client.read(topic, [0], count))[-1].offset < last:
        count += 1
    assert {each.key: (each.offset, each.value) for each in found} == newest
    assert [each.offset for each in found] == sorted(each.offset for each in found)


def test_policy_that_is_both_compacts_and_deletes(topic: str, confluent: Confluent) -> None:
    confluent.create_topic(topic, configs={"cleanup.policy": "compact,delete"})
    assert confluent.configs(topic)["cleanup.policy"] == "compact,delete"
    with pytest.raises(Refused):
        confluent.write(topic, 0, [Sent(None, b"v")], codec="none", acks=ALL)
