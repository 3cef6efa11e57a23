"""Numbers, strings, bytes and tags: what is written is read; what cannot be is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotidal.errors import MalformedFrame
from cotidal.values import Uuid
from cotidal.wire import primitives as p


@given(st.integers(0, 2**32 - 1))
def test_unsigned_varints_come_back(value: int) -> None:
    out = bytearray()
    p.write_uvarint(out, value)
    assert p.read_uvarint(bytes(out), 0) == (value, len(out))
    assert p.read_uvarlong(bytes(out), 0) == (value, len(out))


@given(st.integers(-(2**31), 2**31 - 1))
def test_signed_varints_come_back(value: int) -> None:
    out = bytearray()
    p.write_varint(out, value)
    assert len(out) <= 5
    assert p.read_varint(bytes(out), 0) == (value, len(out))


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_varlongs_come_back(value: int) -> None:
    out = bytearray()
    p.write_varlong(out, value)
    assert len(out) <= 10
    assert p.read_varlong(bytes(out), 0) == (value, len(out))


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (64, "8001"), (-(2**31), "ffffffff0f")],
)
def test_zigzag_is_the_protocols(value: int, data: str) -> None:
    out = bytearray()
    p.write_varint(out, value)
    assert out.hex() == data


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\x80\x80\x80\x80\x80\x01", "within 5 bytes"),
        (b"\xff\xff\xff\xff\x1f", "larger than 32"),
        (b"\xff" * 20, "within 5 bytes"),
    ],
)
def test_a_varint_that_is_too_long_or_too_large_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(MalformedFrame, match=complaint):
        p.read_uvarint(data, 0)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [(b"\x80" * 10 + b"\x01", "within 10 bytes"), (b"\xff" * 9 + b"\x02", "larger than 64")],
)
def test_a_varlong_that_is_too_long_or_too_large_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(MalformedFrame, match=complaint):
        p.read_uvarlong(data, 0)


def test_a_padded_varint_within_five_bytes_is_read_as_kafka_reads_it() -> None:
    assert p.read_uvarint(b"\x81\x80\x00", 0) == (1, 3)


@given(st.text(max_size=300) | st.none())
def test_strings_come_back_in_all_four_forms(text: str | None) -> None:
    out = bytearray()
    p.write_nullable_string(out, text)
    assert p.read_nullable_string(bytes(out), 0) == (text, len(out))
    out = bytearray()
    p.write_compact_nullable_string(out, text)
    assert p.read_compact_nullable_string(memoryview(out), 0) == (text, len(out))
    if text is not None:
        out = bytearray()
        p.write_string(out, text)
        assert p.read_string(bytes(out), 0) == (text, len(out))
        out = bytearray()
        p.write_compact_string(out, text)
        assert p.read_compact_string(bytes(out), 0) == (text, len(out))


@given(st.binary(max_size=300) | st.none())
def test_bytes_and_records_come_back_in_all_forms(data: bytes | None) -> None:
    out = bytearray()
    p.write_nullable_bytes(out, data)
    assert p.read_nullable_bytes(bytes(out), 0) == (data, len(out))
    assert p.read_nullable_records(bytes(out), 0) == (data, len(out))
    out = bytearray()
    p.write_compact_nullable_bytes(out, data)
    assert p.read_compact_nullable_bytes(bytes(out), 0) == (data, len(out))
    assert p.read_compact_nullable_records(bytes(out), 0) == (data, len(out))
    if data is not None:
        assert p.read_compact_bytes(bytes(out), 0) == (data, len(out))
        assert p.read_compact_records(bytes(out), 0) == (data, len(out))


@pytest.mark.parametrize(
    "read",
    [p.read_string, p.read_bytes, p.read_records, lambda b, i: p.read_count(b, i, 1)],
    ids=["string", "bytes", "records", "array"],
)
def test_a_plain_null_is_refused_where_it_may_not_be(read: object) -> None:
    with pytest.raises(MalformedFrame, match="null"):
        read(b"\xff\xff\xff\xff", 0)  # type: ignore[operator]


@pytest.mark.parametrize(
    "read",
    [
        p.read_compact_string,
        p.read_compact_bytes,
        p.read_compact_records,
        lambda b, i: p.read_compact_count(b, i, 1),
    ],
    ids=["string", "bytes", "records", "array"],
)
def test_a_compact_null_is_refused_where_it_may_not_be(read: object) -> None:
    with pytest.raises(MalformedFrame, match="null"):
        read(b"\0", 0)  # type: ignore[operator]


@pytest.mark.parametrize("read", [p.read_string, p.read_nullable_string])
def test_a_length_past_the_end_is_refused(read: object) -> None:
    with pytest.raises(MalformedFrame, match="claims 5 bytes where 4 are left"):
        read(b"\0\x05abcd", 0)  # type: ignore[operator]


@given(st.lists(st.binary(min_size=16, max_size=16), max_size=4))
def test_uuids_come_back(values: list[bytes]) -> None:
    uuids = tuple(Uuid(value) for value in values)
    out = bytearray()
    p.write_uuids(out, uuids)
    assert p.read_uuids(bytes(out), 0, len(uuids)) == (uuids, len(out))
    with pytest.raises(MalformedFrame):
        p.read_uuids(bytes(out), 0, len(uuids) + 1)


def test_tags_are_skipped_to_their_end_and_no_further() -> None:
    out = bytearray(b"\x02")
    p.write_tag(out, 3, bytearray(b"abc"))
    p.write_tag(out, 200, bytearray(200))
    assert p.skip_tags(bytes(out) + b"rest", 0) == len(out)
    with pytest.raises(MalformedFrame, match="tagged field 200"):
        p.skip_tags(bytes(out)[:-1], 0)
