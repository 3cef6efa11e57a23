"""Records inside a batch: built and read, against two other implementations, and under damage."""

from __future__ import annotations

import contextlib
import warnings

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from cotidal.errors import MalformedFrame
from cotidal.messages.batch import HEADER_BYTES
from cotidal.messages.records.quorum import LeaderChangeMessage, LeaderChangeMessageVoter
from cotidal.messages.records.transaction import EndTxnMarker
from cotidal.wire.batch import CRC_START, crc32c, read_batches, read_header
from cotidal.wire.compression import Compression
from cotidal.wire.records import (
    NEXT_OFFSET,
    ControlType,
    Record,
    build_batch,
    control_record,
    read_control_record,
    read_pairs,
    read_records,
)

with warnings.catch_warnings():  # kafka-python reads its schemas in a deprecated way
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatch as KafkaBatch
    from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaBuilder

HEADERS = st.tuples(st.text(max_size=9), st.none() | st.binary(max_size=9))
RECORDS = st.lists(
    st.builds(
        Record,
        st.none() | st.binary(max_size=40),
        st.none() | st.binary(max_size=300),
        st.lists(HEADERS, max_size=3).map(tuple),
        st.integers(0, 2**45),
        st.just(NEXT_OFFSET),
    ),
    min_size=1,
    max_size=8,
)


def placed(records: list[Record], base_offset: int) -> list[Record]:
    return [r._replace(offset=base_offset + i) for i, r in enumerate(records)]


def resealed(batch: bytes) -> bytes:
    out = bytearray(batch)
    out[8:12] = (len(batch) - 12).to_bytes(4, "big")
    out[17:21] = crc32c(batch[CRC_START:]).to_bytes(4, "big")
    return bytes(out)


@pytest.mark.parametrize("compression", list(Compression), ids=lambda c: c.name)
@settings(max_examples=30)
@given(records=RECORDS, base_offset=st.integers(0, 2**60))
def test_records_come_back_in_every_compression(
    compression: Compression, records: list[Record], base_offset: int
) -> None:
    batch = build_batch(records, base_offset=base_offset, compression=compression)
    found = read_batches(batch)
    assert (found.fault, found.cut, len(found.headers)) == (None, False, 1)
    assert found.headers[0].compression == compression
    assert read_records(batch) == placed(records, base_offset)
    pairs = [(record.key, record.value) for record in records]
    assert read_pairs(found.headers[0], b"before" + batch, len(b"before")) == pairs


@settings(max_examples=50)
@given(records=RECORDS)
def test_kafka_python_and_aiokafka_build_the_same_bytes(records: list[Record]) -> None:
    for builder_class in (KafkaBuilder, AioBuilder):
        builder = builder_class(
            magic=2, compression_type=0, is_transactional=0, producer_id=7, producer_epoch=1,
            base_sequence=3, batch_size=1 << 20,
        )  # fmt: skip
        for i, r in enumerate(records):
            builder.append(i, r.timestamp, r.key, r.value, list(r.headers))
        ours = build_batch(
            records, producer_id=7, producer_epoch=1, base_sequence=3, leader_epoch=0
        )
        theirs = bytes(builder.build())
        # The leader epoch is the broker's to write: builders put 0 or -1 there.
        assert theirs[:12] + theirs[16:] == ours[:12] + ours[16:]


@pytest.mark.parametrize(
    "compression",
    [c for c in Compression if c is not Compression.NONE],
    ids=lambda c: c.name,
)
def test_compressed_batches_of_others_are_read_and_ours_by_them(compression: Compression) -> None:
    records = [
        Record(b"k%d" % i, b"value " * 200, (("h", b"%d" % i),), 1000 + i) for i in range(120)
    ]
    builder = AioBuilder(
        magic=2, compression_type=int(compression), is_transactional=0, producer_id=-1,
        producer_epoch=-1, base_sequence=-1, batch_size=1 << 20,
    )  # fmt: skip
    for i, r in enumerate(records):
        builder.append(i, r.timestamp, r.key, r.value, list(r.headers))
    assert read_records(bytes(builder.build())) == placed(records, 0)

    ours = build_batch(records, compression=compression)
    batch = AioBatch(ours)
    assert batch.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value) for r in batch] == [
        (i, r.timestamp, r.key, r.value) for i, r in enumerate(records)
    ]


def test_kafka_python_reads_our_batch() -> None:
    ours = build_batch([Record(b"k", None, (("h", b"x"),), 12)], base_offset=5)
    (record,) = list(KafkaBatch(ours))
    assert (record.offset, record.timestamp, record.key, record.value) == (5, 12, b"k", None)
    assert record.headers == [("h", b"x")]


@pytest.mark.parametrize("compression", list(Compression), ids=lambda c: c.name)
def test_damage_under_a_good_checksum_is_refused_or_read_and_nothing_else(
    compression: Compression,
) -> None:
    batch = build_batch(
        [Record(b"key", b"value" * 9, (("h", b"x"),), i) for i in range(3)], compression=compression
    )
    for at in range(HEADER_BYTES - 4, len(batch)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(batch)
            damaged[at] ^= flip
            broken = resealed(bytes(damaged))
            with contextlib.suppress(MalformedFrame):
                pairs = read_pairs(read_header(broken), broken)
                # Pairs are read without headers: what is wrong with those only the other finds.
                assert pairs == [(each.key, each.value) for each in read_records(broken)]


def test_records_cut_anywhere_are_refused() -> None:
    batch = build_batch([Record(b"key", b"value", (("h", b"x"),), i) for i in range(3)])
    for end in range(HEADER_BYTES, len(batch)):
        with pytest.raises(MalformedFrame):
            read_records(batch[:end])
        short = resealed(batch[:end])
        with pytest.raises(MalformedFrame):
            read_records(short)
        with pytest.raises(MalformedFrame):
            read_pairs(read_header(short), short)
    long = resealed(batch + b"\0")
    with pytest.raises(MalformedFrame, match="follow the last record"):
        read_records(long)
    with pytest.raises(MalformedFrame, match="follow the last record"):
        read_pairs(read_header(long), long)


def test_a_record_longer_than_its_fields_is_refused() -> None:
    batch = bytearray(build_batch([Record(b"k", b"v"), Record(b"k", b"v")]))
    batch[HEADER_BYTES] += 2  # the length, in zigzag: one more than the fields take
    batch.insert(HEADER_BYTES + 1 + batch[HEADER_BYTES] // 2 - 1, 0)
    with pytest.raises(MalformedFrame, match="1 bytes after its last field"):
        read_records(resealed(bytes(batch)))


def test_pairs_are_found_behind_numbers_of_any_length() -> None:
    records = [Record(b"k" * at, b"v" * 2 * at, (("h", b"x"),), 40**at % 2**45) for at in range(99)]
    batch = build_batch(records)
    assert read_pairs(read_header(batch), batch) == [(each.key, each.value) for each in records]


def test_a_value_that_reaches_into_the_next_record_is_no_pair() -> None:
    batch = bytearray(build_batch([Record(b"k", b"v"), Record(b"k", b"v")]))
    batch[HEADER_BYTES + 6] += 4  # the value's length, in zigzag: two more
    with pytest.raises(MalformedFrame, match="a field of a record"):
        read_pairs(read_header(batch), bytes(batch))


@pytest.mark.parametrize("count", [2**31 - 1, -1, 4])
def test_a_count_that_the_bytes_cannot_hold_is_refused(count: int) -> None:
    batch = bytearray(build_batch([Record(b"key", b"v") for _ in range(3)]))
    batch[57:61] = count.to_bytes(4, "big", signed=True)
    with pytest.raises(MalformedFrame):
        read_records(resealed(bytes(batch)))
    with pytest.raises(MalformedFrame):
        read_pairs(read_header(batch), bytes(batch))


def test_a_compaction_keeps_offsets_and_the_end_of_its_batch() -> None:
    kept = [Record(b"a", b"1", offset=103), Record(b"b", b"2", offset=107)]
    batch = build_batch(kept, base_offset=100, last_offset=109)
    assert read_header(batch).last_offset == 109
    assert read_header(batch).record_count == 2
    assert [r.offset for r in read_records(batch)] == [103, 107]
    empty = build_batch([], base_offset=100, last_offset=109)
    assert len(empty) == HEADER_BYTES
    assert read_records(empty) == []
    with pytest.raises(ValueError, match="last_offset"):
        build_batch([])


@pytest.mark.parametrize(
    "offsets", [(99,), (101, 101), (102, 101), (100 + 2**31,)], ids=["below", "same", "back", "far"]
)
def test_offsets_that_a_batch_cannot_hold_are_refused(offsets: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="offset"):
        build_batch([Record(None, None, offset=offset) for offset in offsets], base_offset=100)


def test_log_append_time_is_the_time_of_every_record() -> None:
    batch = build_batch(
        [Record(None, b"x", timestamp=5), Record(None, b"y", timestamp=9)], append_time=77
    )
    assert [r.timestamp for r in read_records(batch)] == [77, 77]


def test_header_names_that_are_not_utf8_keep_their_bytes() -> None:
    name = b"\xff\xfe".decode("utf-8", "surrogateescape")
    (record,) = read_records(build_batch([Record(None, None, ((name, None),))]))
    assert record.headers == ((name, None),)


def test_the_end_of_a_transaction_is_kafkas_control_batch() -> None:
    record = control_record(ControlType.COMMIT, EndTxnMarker(33), timestamp=777)
    assert record.key == bytes.fromhex("00000001")
    assert record.value == bytes.fromhex("000000000021")
    batch = build_batch([record], control=True, transactional=True, producer_id=8, producer_epoch=2)
    assert read_header(batch).is_control
    (again,) = read_records(batch)
    assert read_control_record(again) == (ControlType.COMMIT, EndTxnMarker(33))


def test_a_leader_change_is_kafkas_control_record() -> None:
    voters = (LeaderChangeMessageVoter(1), LeaderChangeMessageVoter(2))
    change = LeaderChangeMessage(0, 1, voters, voters[1:])
    record = control_record(ControlType.LEADER_CHANGE, change)
    assert record.key == bytes.fromhex("00000002")
    assert record.value == bytes.fromhex("0000 00000001 03 0000000100 0000000200 02 0000000200 00")
    assert read_control_record(record) == (ControlType.LEADER_CHANGE, change)


def test_control_records_of_later_versions_are_passed_over_and_damaged_ones_refused() -> None:
    assert read_control_record(Record(bytes.fromhex("00000063"), b"?")) is None
    for bad in (
        Record(None, b""),
        Record(b"\0\0", b""),
        Record(bytes(4), None),
        Record(bytes(4), b""),
    ):
        with pytest.raises(MalformedFrame):
            read_control_record(bad)
    with pytest.raises(ValueError, match="COMMIT needs EndTxnMarker"):
        control_record(ControlType.COMMIT, LeaderChangeMessage())
