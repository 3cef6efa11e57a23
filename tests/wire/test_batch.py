"""Batch headers: scanned, checked, stamped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotidal.errors import ErrorCode, MalformedFrame
from cotidal.messages.batch import HEADER_BYTES, NO_BATCHES, producer_refusal
from cotidal.wire.batch import (
    CRC_START,
    crc32c,
    read_batches,
    read_header,
    slow_crc32c,
    stamp_prefix,
    stored_crc,
    with_append_time,
)
from cotidal.wire.records import Record, build_batch, read_records

ONE = build_batch(
    [Record(b"k", b"v", timestamp=1000), Record(None, b"w", timestamp=1007)],
    base_offset=40, leader_epoch=6, producer_id=9, producer_epoch=2, base_sequence=5,
    transactional=True,
)  # fmt: skip
TWO = build_batch([Record(None, b"x" * 300, timestamp=1)], base_offset=42)


def with_bytes(batch: bytes, at: int, new: bytes) -> bytes:
    """The batch with some bytes replaced and its checksum made right again."""
    changed = bytearray(batch[:at] + new + batch[at + len(new) :])
    changed[17:21] = crc32c(changed[CRC_START:]).to_bytes(4, "big")
    return bytes(changed)


def test_the_header_says_what_was_built() -> None:
    header = read_header(ONE)
    assert header.base_offset == 40
    assert header.last_offset == 41
    assert header.next_offset == 42
    assert header.size_bytes == len(ONE)
    assert header.leader_epoch == 6
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1007)
    assert (header.producer_id, header.producer_epoch) == (9, 2)
    assert (header.base_sequence, header.last_sequence) == (5, 6)
    assert header.record_count == 2
    assert header.is_transactional
    assert not header.is_control


def test_batches_in_a_row_are_all_found() -> None:
    found = read_batches(ONE + TWO + ONE)
    assert found.headers == (read_header(ONE), read_header(TWO), read_header(ONE))
    assert found.data == ONE + TWO + ONE
    assert (found.fault, found.cut) == (None, False)


def test_no_bytes_are_no_batches() -> None:
    assert read_batches(b"") == NO_BATCHES


def test_a_view_stays_a_view() -> None:
    data = memoryview(ONE + TWO[:100])
    found = read_batches(data)
    assert isinstance(found.data, memoryview)
    assert found.data.obj is data.obj


@pytest.mark.parametrize("left", range(1, len(TWO)))
def test_a_batch_cut_short_is_dropped_and_told(left: int) -> None:
    found = read_batches(ONE + TWO[:left])
    assert found.headers == (read_header(ONE),)
    assert found.data == ONE
    assert found.fault is None
    assert found.cut


@given(st.integers(0, 8 * len(ONE) - 1))
def test_a_flipped_bit_is_found_unless_it_lies_where_the_log_writes_its_own(bit: int) -> None:
    flipped = bytearray(TWO + ONE)
    flipped[len(TWO) + bit // 8] ^= 1 << bit % 8
    found = read_batches(bytes(flipped))
    assert found.headers[0] == read_header(TWO)
    at = bit // 8
    if at < 8 or 12 <= at < 16:  # base offset and leader epoch
        changed_sign = at == 0 and bit % 8 == 7
        assert len(found.headers) == (1 if changed_sign else 2)
        assert (found.fault is None) == (not changed_sign)
    else:
        assert len(found.headers) == 1
        assert found.data == TWO
        assert found.fault is not None or (found.cut and 8 <= at < 12)


@pytest.mark.parametrize("magic", [0, 1, 3, 255])
def test_other_formats_are_a_fault(magic: int) -> None:
    old = bytearray(ONE)
    old[16] = magic
    assert "format version" in (read_batches(bytes(old)).fault or "")
    with pytest.raises(MalformedFrame, match="format version"):
        read_header(bytes(old))


def test_an_old_message_shorter_than_a_header_is_a_fault_and_not_a_cut() -> None:
    old = bytes(8) + (22).to_bytes(4, "big") + bytes(4) + b"\x01" + bytes(17)
    found = read_batches(old)
    assert not found.cut
    assert found.fault is not None


@pytest.mark.parametrize("length", [-1, 0, HEADER_BYTES - 12 - 1, -(2**31)])
def test_a_length_below_a_header_is_a_fault(length: int) -> None:
    bad = ONE[:8] + length.to_bytes(4, "big", signed=True) + ONE[12:]
    assert "fewer than a header" in (read_batches(bad).fault or "")
    with pytest.raises(MalformedFrame, match="fewer than a header"):
        read_header(bad)


def test_a_header_cut_short_cannot_be_read() -> None:
    with pytest.raises(MalformedFrame, match="too few"):
        read_header(ONE[: HEADER_BYTES - 1])


@pytest.mark.parametrize(("at", "size"), [(23, 4), (57, 4)], ids=["offset delta", "count"])
def test_negative_numbers_are_a_fault_even_under_a_good_checksum(at: int, size: int) -> None:
    assert "negative" in (read_batches(with_bytes(ONE, at, b"\xff" * size)).fault or "")


def test_a_producer_may_send_one_whole_batch() -> None:
    assert producer_refusal(read_batches(ONE)) is None
    assert producer_refusal(read_batches(TWO)) is None


@pytest.mark.parametrize(
    ("data", "error", "sentence"),
    [
        (b"", ErrorCode.INVALID_RECORD, "no batch"),
        (ONE[:-1], ErrorCode.CORRUPT_MESSAGE, "cut short"),
        (ONE[:-1] + b"?", ErrorCode.CORRUPT_MESSAGE, "checksum"),
        (ONE + TWO, ErrorCode.INVALID_RECORD, "not 2"),
        (ONE + TWO[:-1] + b"?", ErrorCode.CORRUPT_MESSAGE, "checksum"),
        (build_batch([Record(b"", b"")], control=True), ErrorCode.INVALID_RECORD, "control"),
        (with_bytes(ONE, 57, bytes(4)), ErrorCode.INVALID_RECORD, "0 records, but offsets for 2"),
        (build_batch([Record(None, b"")], last_offset=5), ErrorCode.INVALID_RECORD, "for 6"),
        (build_batch([Record(None, b"")], producer_id=3), ErrorCode.INVALID_RECORD, "no sequence"),
        (with_bytes(ONE, 21, b"\0\x05"), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "number 5"),
    ],
)
def test_what_a_producer_may_not_send_is_refused(
    data: bytes, error: ErrorCode, sentence: str
) -> None:
    refusal = producer_refusal(read_batches(data))
    assert refusal is not None
    assert refusal.error is error
    assert sentence in refusal.text


def test_no_records_at_all_are_refused() -> None:
    refusal = producer_refusal(None)
    assert refusal is not None
    assert refusal.error is ErrorCode.INVALID_RECORD


def test_a_stamped_prefix_moves_a_batch_without_its_checksum() -> None:
    prefix = stamp_prefix(base_offset=2**40, size=len(ONE), leader_epoch=11)
    moved = prefix + ONE[16:]
    assert read_batches(moved).fault is None
    header = read_header(moved)
    assert header == read_header(ONE)._replace(base_offset=2**40, leader_epoch=11)


def test_append_time_is_that_of_all_records_and_keeps_the_rest() -> None:
    stamped = with_append_time(ONE, 5555)
    (header,) = read_batches(stamped).headers
    assert header.has_log_append_time
    assert header.is_transactional
    assert (header.base_timestamp, header.max_timestamp) == (1000, 5555)
    assert [r.timestamp for r in read_records(stamped)] == [5555, 5555]
    assert stamped[HEADER_BYTES:] == ONE[HEADER_BYTES:]


@given(st.binary(max_size=200))
def test_the_checksum_in_plain_python_is_that_of_the_extension(data: bytes) -> None:
    assert slow_crc32c(data) == crc32c(data)


def test_the_checksum_is_the_published_one() -> None:
    assert slow_crc32c(b"123456789") == 0xE3069283
    assert stored_crc(ONE) == slow_crc32c(ONE[CRC_START:])
