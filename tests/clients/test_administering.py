"""Topics, partitions, settings and the cluster itself, as each client's admin asks for them."""

from __future__ import annotations

import pytest

from cotidal.errors import ErrorCode
from real_node import RealNode
from tests.clients.confluent import Confluent
from tests.clients.kafka_python import KafkaPython
from tests.clients.speaking import Acks, Client, Refused, Sent

ALL = Acks(-1)
TEN = tuple(Sent(b"k", b"v%d" % n, (), 1_000_000 + n) for n in range(10))


def test_a_topic_is_there_when_its_creation_is_answered_and_gone_after_its_deletion(
    client: Client, topic: str
) -> None:
    client.create_topic(topic, partitions=3)
    assert topic in client.topics()
    assert client.partition_count(topic) == 3
    client.delete_topic(topic)
    assert topic not in client.topics()


def test_a_topic_of_the_same_name_begins_empty(client: Client, topic: str) -> None:
    client.create_topic(topic)
    client.write(topic, 0, TEN, codec="none", acks=ALL)
    client.delete_topic(topic)
    client.create_topic(topic)
    assert client.watermarks(topic, 0) == (0, 0)
    client.write(topic, 0, TEN[:2], codec="none", acks=ALL)
    assert [got.value for got in client.read(topic, [0], 2)] == [b"v0", b"v1"]


def test_a_topic_that_exists_is_not_created_again(client: Client, topic: str) -> None:
    client.create_topic(topic)
    with pytest.raises(Refused) as refused:
        client.create_topic(topic)
    assert refused.value.code == ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize("name", ["with space", "a/b", "..", "x" * 250])
def test_a_name_that_is_none_is_refused(client: Client, name: str) -> None:
    with pytest.raises(Refused) as refused:
        client.create_topic(name)
    assert refused.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_deleting_what_is_not_there_is_refused(client: Client, topic: str) -> None:
    with pytest.raises(Refused) as refused:
        client.delete_topic(topic)
    assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_partitions_are_added_and_can_be_written(client: Client, topic: str) -> None:
    client.create_topic(topic)
    client.add_partitions(topic, total=4)
    assert client.partition_count(topic) == 4
    assert client.write(topic, 3, TEN, codec="none", acks=ALL) == list(range(10))


def test_partitions_are_never_removed(client: Client, topic: str) -> None:
    client.create_topic(topic, partitions=3)
    with pytest.raises(Refused) as refused:
        client.add_partitions(topic, total=2)
    assert refused.value.code == ErrorCode.INVALID_PARTITIONS


def test_settings_are_given_at_creation_and_altered_later(client: Client, topic: str) -> None:
    client.create_topic(topic, configs={"retention.ms": "86400000"})
    assert client.configs(topic)["retention.ms"] == "86400000"
    client.alter_config(topic, "max.message.bytes", "54321")
    assert client.configs(topic)["max.message.bytes"] == "54321"


def test_incremental_alteration_leaves_other_settings(topic: str, confluent: Confluent) -> None:
    confluent.create_topic(topic, configs={"retention.ms": "86400000"})
    confluent.alter_config(topic, "max.message.bytes", "54321")
    found = confluent.configs(topic)
    assert (found["retention.ms"], found["max.message.bytes"]) == ("86400000", "54321")


def test_a_setting_takes_effect_at_once(client: Client, topic: str) -> None:
    client.create_topic(topic)
    client.write(topic, 0, [Sent(b"k", b"x" * 5_000)], codec="none", acks=ALL)
    client.alter_config(topic, "max.message.bytes", "1000")
    with pytest.raises(Refused) as refused:
        client.write(topic, 0, [Sent(b"k", b"x" * 5_000)], codec="none", acks=ALL)
    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize(
    ("name", "value"), [("retention.ms", "soon"), ("no.such.setting", "1"), ("segment.bytes", "-1")]
)
def test_a_wrong_setting_is_refused(client: Client, topic: str, name: str, value: str) -> None:
    with pytest.raises(Refused) as refused:
        client.create_topic(topic, configs={name: value})
    assert refused.value.code == ErrorCode.INVALID_CONFIG
    assert topic not in client.topics()
    client.create_topic(topic)
    with pytest.raises(Refused) as refused:
        client.alter_config(topic, name, value)
    assert refused.value.code == ErrorCode.INVALID_CONFIG


def test_the_cluster_describes_itself(client: Client, node: RealNode) -> None:
    seen = client.cluster()
    assert seen.brokers == ((1, "localhost", node.port),)
    assert seen.controller_id == 1
    assert seen.cluster_id


def test_records_are_deleted_up_to_an_offset(client: Client, topic: str) -> None:
    client.create_topic(topic)
    client.write(topic, 0, TEN, codec="none", acks=ALL)
    assert client.delete_records(topic, 0, before=4) == 4
    assert client.watermarks(topic, 0) == (4, 10)


def test_no_more_records_are_deleted_than_there_are(topic: str, confluent: Confluent) -> None:
    confluent.create_topic(topic)
    once = Acks(-1, idempotent=True)  # a retry on a busy machine must not make it twenty
    confluent.write(topic, 0, TEN, codec="none", acks=once)
    with pytest.raises(Refused) as refused:
        confluent.delete_records(topic, 0, before=11)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_log_directories_quorum_and_producers_can_be_asked_for(node: RealNode, topic: str) -> None:
    client = KafkaPython(node.bootstrap)
    client.create_topic(topic)
    client.write(topic, 0, TEN, codec="none", acks=Acks(-1, idempotent=True))
    size, quorum, sequences = client.observe(topic)
    assert size == sum(each.stat().st_size for each in node.log_directory(topic).glob("*.log"))
    assert quorum == (1, [1])
    assert sequences == [9]
