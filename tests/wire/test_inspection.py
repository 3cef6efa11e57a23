"""Topics that ask something of the records inside a batch."""

from __future__ import annotations

import pytest

from cotidal.errors import ErrorCode, Refusal
from cotidal.limits import RECORD_FAULTS_MAX
from cotidal.messages.batch import Batches, RecordRules
from cotidal.values import WallMillis
from cotidal.wire.batch import crc32c, read_batches
from cotidal.wire.compression import Compression
from cotidal.wire.inspection import inspected
from cotidal.wire.records import Record, build_batch, read_records

NOW = WallMillis(1_000_000)
RECORDS = (Record(b"a", b"1" * 200, timestamp=NOW), Record(b"b", None, timestamp=NOW - 500))


def batches(*records: Record, codec: Compression = Compression.NONE) -> Batches:
    made = build_batch(records, compression=codec, producer_id=4, producer_epoch=0, base_sequence=9)
    return read_batches(made)


def test_batch_that_is_as_it_should_be_passes_unchanged() -> None:
    given = batches(*RECORDS)
    rules = RecordRules(needs_keys=True, timestamp_before_max_ms=500, compression=0)
    assert inspected(given, rules, NOW) is given


@pytest.mark.parametrize("codec", list(Compression))
def test_record_without_a_key_is_named(codec: Compression) -> None:
    given = batches(*RECORDS, Record(None, b"x"), codec=codec)
    refused = inspected(given, RecordRules(needs_keys=True), NOW)
    assert isinstance(refused, Refusal)
    assert refused.error is ErrorCode.INVALID_RECORD
    assert refused.text.startswith("record 2 of the batch has no key")
    empty = inspected(batches(Record(b"", b"x")), RecordRules(needs_keys=True), NOW)
    assert isinstance(empty, Batches), "an empty key is a key"


def test_record_that_is_too_old_is_named() -> None:
    given = batches(*RECORDS)
    assert inspected(given, RecordRules(timestamp_before_max_ms=500), NOW) is given
    refused = inspected(given, RecordRules(timestamp_before_max_ms=499), NOW)
    assert isinstance(refused, Refusal)
    assert refused.error is ErrorCode.INVALID_TIMESTAMP
    assert "record 1" in refused.text


def test_every_record_at_fault_is_told_and_a_wrong_time_decides_the_error() -> None:
    given = batches(
        Record(None, b"x", timestamp=NOW),
        Record(b"k", b"x", timestamp=NOW + 20),
        Record(b"k", b"x", timestamp=NOW - 11),
        Record(b"k", b"x", timestamp=NOW + 21),
        Record(None, b"x", timestamp=NOW + 21),
    )
    rules = RecordRules(needs_keys=True, timestamp_before_max_ms=10, timestamp_after_max_ms=20)
    refused = inspected(given, rules, NOW)
    assert isinstance(refused, Refusal)
    assert [fault.number for fault in refused.records] == [0, 2, 3, 4]
    assert refused.error is ErrorCode.INVALID_TIMESTAMP
    assert refused.message == refused.records[1].sentence
    assert refused.records[1].sentence.endswith("before.max.ms=10 behind the clock")
    assert refused.records[2].sentence.endswith("after.max.ms=20 ahead of the clock")
    assert "no key" in refused.records[0].sentence
    assert "no key" in refused.records[3].sentence


def test_no_more_records_are_told_than_the_bound() -> None:
    refused = inspected(
        batches(*[Record(None, b"")] * (RECORD_FAULTS_MAX + 5)), RecordRules(needs_keys=True), NOW
    )
    assert isinstance(refused, Refusal)
    assert len(refused.records) == RECORD_FAULTS_MAX


def test_record_without_a_time_is_not_too_old() -> None:
    given = batches(Record(b"a", b"1", timestamp=-1))
    assert inspected(given, RecordRules(timestamp_before_max_ms=1), NOW) is given


@pytest.mark.parametrize("before", list(Compression))
@pytest.mark.parametrize("after", list(Compression))
def test_batch_takes_the_compression_of_its_topic(before: Compression, after: Compression) -> None:
    given = batches(*RECORDS, codec=before)
    found = inspected(given, RecordRules(compression=after), NOW)
    assert isinstance(found, Batches)
    assert found.fault is None
    (header,) = found.headers
    assert header.compression == after
    assert read_records(found.data) == read_records(given.data)
    assert header._replace(attributes=0, size_bytes=0) == given.headers[0]._replace(
        attributes=0, size_bytes=0
    )


def test_batch_whose_records_cannot_be_read_is_refused() -> None:
    damaged = bytearray(batches(*RECORDS).data)
    damaged[61] = 0xFF
    damaged[17:21] = crc32c(memoryview(damaged)[21:]).to_bytes(4, "big")
    refused = inspected(read_batches(bytes(damaged)), RecordRules(needs_keys=True), NOW)
    assert isinstance(refused, Refusal)
    assert refused.error is ErrorCode.INVALID_RECORD
