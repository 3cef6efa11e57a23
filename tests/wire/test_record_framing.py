"""Records of the metadata log and of the coordinators, in their keys and values."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotidal.errors import MalformedFrame
from cotidal.messages.records.group import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from cotidal.messages.records.metadata import NoOpRecord, PartitionRecord, TopicRecord
from cotidal.messages.records.share_state import ShareSnapshotKey
from cotidal.messages.records.transaction import TransactionLogKey, TransactionLogValue
from cotidal.values import Uuid
from cotidal.wire.codec import codec_of
from cotidal.wire.record_framing import (
    Coordinator,
    coordinator_readers,
    decode_coordinator_record,
    decode_metadata,
    encode_key,
    encode_metadata,
    encode_value,
    written_version,
)
from message_samples import Sampler, seeded
from message_schema import read_modules

SCHEMA = Path(__file__).resolve().parents[2] / "schema"
MODULES = {m.name: m for m in read_modules(SCHEMA) if m.room == "records"}


def test_every_metadata_record_comes_back_in_every_version() -> None:
    for message in MODULES["metadata"].messages:
        for version in message.versions:
            chance = seeded(message.name, version)
            record = Sampler(MODULES["metadata"], chance).message(message, version)
            data = encode_metadata(record, version)
            assert data[0] == 1
            assert decode_metadata(data) == record
            for end in range(len(data)):
                with pytest.raises(MalformedFrame):
                    decode_metadata(data[:end])


def test_a_topic_record_is_framed_as_kafka_frames_it() -> None:
    record = TopicRecord(name="t", topic_id=Uuid(bytes(range(16))))
    assert encode_metadata(record) == bytes.fromhex("010200 0274") + bytes(range(16)) + b"\0"


def test_records_are_written_in_the_newest_version() -> None:
    assert encode_metadata(PartitionRecord())[:3] == b"\x01\x03\x02"
    assert encode_metadata(NoOpRecord())[:3] == b"\x01\x14\x00"


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\x02\x02\x00", "frame version 2"),
        (b"\x01\x7f\x00", "key 127"),
        (b"\x01\x02\x09", "no version 9"),
    ],
)
def test_a_frame_of_no_known_record_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(MalformedFrame, match=complaint):
        decode_metadata(data)


@pytest.mark.parametrize("coordinator", list(Coordinator), ids=lambda c: c.name)
def test_every_coordinator_record_comes_back_in_every_version(coordinator: Coordinator) -> None:
    readers = coordinator_readers(coordinator)
    for name in coordinator.value:
        module = MODULES[name]
        keys = {m.key: m for m in module.messages if m.kind == "key"}
        values = {m.key: m for m in module.messages if m.kind == "value"}
        assert keys.keys() == values.keys()
        for number, key_message in keys.items():
            for version in values[number].versions:
                sampler = Sampler(module, seeded(key_message.name, version))
                key = sampler.message(key_message, 0)
                value = sampler.message(values[number], version)
                raw_key, raw_value = encode_key(key), encode_value(value, version)
                assert decode_coordinator_record(readers, raw_key, raw_value) == (key, value)
                assert decode_coordinator_record(readers, raw_key, None) == (key, None)


def test_keys_and_values_carry_their_number_and_version() -> None:
    key = encode_key(OffsetCommitKey("g", "t", 1))
    assert key == bytes.fromhex("0001 000167 000174 00000001")
    assert encode_key(GroupMetadataKey("g"))[:2] == b"\0\x02"
    assert encode_key(TransactionLogKey("x"))[:2] == b"\0\0"
    assert encode_key(ShareSnapshotKey())[:2] == b"\0\0"


def test_values_are_written_in_the_versions_that_kafka_writes() -> None:
    assert written_version(GroupMetadataValue()) == 3
    assert written_version(OffsetCommitValue()) == 4
    assert written_version(OffsetCommitValue(expire_timestamp=5)) == 1
    assert written_version(TransactionLogValue()) == 1
    assert encode_value(OffsetCommitValue())[:2] == b"\0\x04"


def test_a_key_of_a_later_version_is_passed_over() -> None:
    readers = coordinator_readers(Coordinator.TRANSACTION)
    assert decode_coordinator_record(readers, b"\0\x63what", b"\0\0") is None


@pytest.mark.parametrize(
    ("key", "value"), [(b"", None), (b"\0\x02\0\x01g", b"\0"), (b"\0\x02\0\x01g", b"\0\x63")]
)
def test_keys_and_values_cut_short_or_of_unknown_version_are_refused(
    key: bytes, value: bytes | None
) -> None:
    with pytest.raises(MalformedFrame):
        decode_coordinator_record(coordinator_readers(Coordinator.GROUP), key, value)


def test_a_record_of_another_kind_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="not a metadata record"):
        encode_metadata(TransactionLogKey("x"))
    with pytest.raises(ValueError, match="not the key"):
        encode_key(TransactionLogValue())
    with pytest.raises(ValueError, match="not the value"):
        encode_value(TransactionLogKey("x"))


def test_a_record_class_knows_its_facts() -> None:
    facts = codec_of(PartitionRecord)
    assert (facts.kind, facts.key, facts.first_version, facts.last_version) == ("metadata", 3, 0, 2)
