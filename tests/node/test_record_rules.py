"""Topics that ask something of records: batches are opened for these, and for no others."""

from __future__ import annotations

from typing import Any

from asking import create, node_with, produce
from cotidal.errors import ErrorCode
from cotidal.limits import RECORD_FAULTS_MAX
from cotidal.messages.batch import Batches
from cotidal.values import TopicPartition
from cotidal.wire.batch import read_batches, read_header
from cotidal.wire.codec import decode_response
from cotidal.wire.compression import Compression
from cotidal.wire.frames import read_response_header, response_buffers
from cotidal.wire.records import Record, build_batch
from lone_node import WALL, LoneNode


def sent(*records: Record, **fields: Any) -> Batches:
    return read_batches(build_batch(records, **fields))


def ask(node: LoneNode, topic: str, batches: Batches) -> Any:
    asked = produce(topic=topic, records=batches)
    return node.ask(*asked).responses[0].partition_responses[0]


def test_compacted_topic_refuses_records_without_a_key() -> None:
    node = node_with()
    create(node, "kept", cleanup_policy="compact,delete")
    refused = ask(node, "kept", sent(Record(b"k", b"v"), Record(None, b"v")))
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert refused.error_message == "record 1 of the batch has no key, and the topic is compacted"
    assert [tuple(each) for each in refused.record_errors] == [(1, refused.error_message)]
    assert ask(node, "kept", sent(Record(b"k", b"v"))).base_offset == 0
    assert ask(node, "orders", sent(Record(None, b"v"))).error_code == 0


def test_policy_that_changes_holds_at_once() -> None:
    from cotidal.messages.rpc.incremental_alter_configs import (
        AlterableConfig,
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
    )

    node = node_with()
    assert ask(node, "orders", sent(Record(None, b"v"))).error_code == 0
    change = AlterableConfig("cleanup.policy", 0, "compact")
    request = IncrementalAlterConfigsRequest((AlterConfigsResource(2, "orders", (change,)),))
    node.ask(44, 1, request)
    refused = ask(node, "orders", sent(Record(None, b"v")))
    assert refused.error_code == ErrorCode.INVALID_RECORD


def test_record_that_is_too_old_is_refused_unless_the_log_gives_the_time() -> None:
    node = node_with()
    create(node, "young", message_timestamp_before_max_ms="1000")
    create(
        node,
        "stamped",
        message_timestamp_before_max_ms="1000",
        message_timestamp_type="LogAppendTime",
    )
    old = sent(Record(None, b"v", timestamp=WALL - 100_000))
    assert ask(node, "young", old).error_code == ErrorCode.INVALID_TIMESTAMP
    assert ask(node, "stamped", old).error_code == 0
    assert ask(node, "orders", old).error_code == 0
    new = sent(Record(None, b"v", timestamp=WALL + node.now))
    assert ask(node, "young", new).error_code == 0


def test_record_that_is_ahead_of_the_clock_is_named() -> None:
    node = node_with()
    create(node, "present", message_timestamp_after_max_ms="1000")
    now = WALL + node.now
    sentence = (
        f"the timestamp {now + 5_000} of record 1 is more than"
        " message.timestamp.after.max.ms=1000 ahead of the clock"
    )
    ahead = sent(Record(None, b"v", timestamp=now), Record(None, b"v", timestamp=now + 5_000))
    refused = ask(node, "present", ahead)
    assert refused.error_code == ErrorCode.INVALID_TIMESTAMP
    assert refused.error_message == sentence
    assert [tuple(each) for each in refused.record_errors] == [(1, sentence)]


def test_one_answer_names_no_more_records_than_the_bound() -> None:
    node = node_with()
    create(node, "kept", partitions=2, cleanup_policy="compact")
    key, version, request = produce(topic="kept", records=sent(*[Record(None, b"v")] * 700))
    (topic,) = request.topic_data
    (data,) = topic.partition_data
    both = topic._replace(partition_data=(data, data._replace(partition_index=1)))
    reply = node.ask(key, version, request._replace(topic_data=(both,)))
    told = [len(each.record_errors) for each in reply.responses[0].partition_responses]
    assert told == [700, RECORD_FAULTS_MAX - 700]


def test_versions_without_room_for_records_are_told_the_error_alone() -> None:
    node = node_with()
    create(node, "kept", cleanup_policy="compact")
    key, _, request = produce(topic="kept", records=sent(Record(None, b"v")))
    for version, told in ((7, 0), (8, 1)):
        refused = node.ask(key, version, request).responses[0].partition_responses[0]
        assert refused.error_code == ErrorCode.INVALID_RECORD
        frame = b"".join(map(bytes, response_buffers(key, version, 1, node.replies[-1].message)))
        _, position = read_response_header(frame[4:], key, version)
        read = decode_response(key, version, frame[4:], position)
        assert len(read.responses[0].partition_responses[0].record_errors) == told


def test_batches_are_stored_in_the_compression_of_the_topic() -> None:
    node = node_with()
    create(node, "packed", compression_type="zstd")
    create(node, "plain", compression_type="uncompressed")
    for topic, expected in (("packed", Compression.ZSTD), ("plain", 0), ("orders", 3)):
        ask(node, topic, sent(Record(None, b"v" * 99), compression=Compression.LZ4))
        ((_, _, stored),) = node.logs[TopicPartition(topic, 0)].batches
        assert read_header(stored).compression == expected


def test_size_that_counts_is_that_of_the_batch_as_it_is_stored() -> None:
    node = node_with()
    create(node, "plain", compression_type="uncompressed", max_message_bytes="500")
    packed = sent(Record(None, b"v" * 1000), compression=Compression.ZSTD)
    assert len(packed.data) < 500
    assert ask(node, "plain", packed).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_duplicate_is_known_in_another_compression() -> None:
    node = node_with()
    create(node, "packed", compression_type="gzip")
    fields = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
    first = ask(node, "packed", sent(Record(None, b"v"), **fields))
    again = ask(node, "packed", sent(Record(None, b"v"), **fields))
    assert (first.base_offset, again.base_offset, again.error_code) == (0, 0, 0)
