from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotidal.errors import MalformedFrame
from cotidal.messages.batch import HEADER_BYTES
from cotidal.spark.decoding import Decoded, Section, decode, section
from cotidal.wire.batch import read_batches
from cotidal.wire.compression import Compression
from cotidal.wire.records import NEXT_OFFSET, Record, build_batch, read_records

some_bytes = st.none() | st.binary(max_size=40)
records = st.builds(
    Record,
    key=some_bytes,
    value=some_bytes | st.binary(min_size=60, max_size=300),
    headers=st.lists(st.tuples(st.text(max_size=8), some_bytes), max_size=2).map(tuple),
    timestamp=st.integers(0, 2**42) | st.just(-1),
    offset=st.just(NEXT_OFFSET),
)
batches = st.lists(
    st.tuples(
        st.lists(records, min_size=1, max_size=6),
        st.sampled_from(Compression),
        st.sampled_from((None, 1_700_000_000_000)),
    ),
    min_size=1,
    max_size=4,
)


def section_of(batch: bytes) -> Section:
    (header,) = read_batches(batch).headers
    return section(header, batch)


def rows(decoded: Decoded) -> list[Record]:
    assert decoded.headers is not None
    return [
        Record(key, value, tuple((h["key"], h["value"]) for h in headers), timestamp, offset)
        for key, value, headers, timestamp, offset in zip(
            decoded.keys.to_pylist(),
            decoded.values.to_pylist(),
            decoded.headers.to_pylist(),
            decoded.timestamps_ms.tolist(),
            decoded.offsets.tolist(),
            strict=True,
        )
    ]


@given(batches)
def test_columns_hold_what_the_record_reader_reads(
    made: list[tuple[list[Record], Compression, int | None]],
) -> None:
    written = []
    offset = 1000
    for inside, compression, append_time in made:
        written.append(
            build_batch(
                inside,
                base_offset=offset,
                compression=compression,
                append_time=append_time,
                leader_epoch=offset % 7,
                producer_id=offset,
            )
        )
        offset += len(inside)
    decoded = decode([section_of(batch) for batch in written], with_headers=True)
    assert rows(decoded) == [record for batch in written for record in read_records(batch)]
    sizes = [(read_batches(batch).headers[0], len(read_records(batch))) for batch in written]
    for column, of_header in (
        (decoded.leader_epochs, lambda header: header.leader_epoch),
        (decoded.producer_ids, lambda header: header.producer_id),
        (decoded.timestamp_types, lambda header: int(header.has_log_append_time)),
    ):
        assert column.tolist() == [of_header(header) for header, size in sizes for _ in range(size)]


def test_headers_are_not_looked_at_unless_they_are_wanted() -> None:
    batch = build_batch([Record(b"k", b"v", (("name", b"1"),)), Record(b"k", b"w")])
    decoded = decode([section_of(batch)])
    assert decoded.headers is None
    assert decoded.values.to_pylist() == [b"v", b"w"]


@given(st.lists(records, min_size=1, max_size=4), st.data())
def test_damaged_records_are_refused_or_read_as_the_record_reader_does(
    inside: list[Record], data: st.DataObject
) -> None:
    """A changed byte never leads out of bounds, and never to another error."""
    batch = bytearray(build_batch(inside))
    at = data.draw(st.integers(HEADER_BYTES, len(batch) - 1))
    batch[at] = data.draw(st.integers(0, 255))
    header = read_batches(build_batch(inside)).headers[0]
    damaged = Section(header, bytes(batch[HEADER_BYTES:]))
    try:
        expected = read_records(bytes(batch))
    except MalformedFrame:
        with pytest.raises(MalformedFrame):
            decode([damaged], with_headers=True)
        return
    found = rows(decode([damaged], with_headers=True))
    assert [(r.key, r.value, r.offset) for r in found] == [
        (r.key, r.value, r.offset) for r in expected
    ]


def test_a_record_too_many_in_one_batch_is_not_taken_for_the_next_ones() -> None:
    one = section_of(build_batch([Record(None, b"a"), Record(None, b"b")]))
    other = section_of(build_batch([Record(None, b"c")], base_offset=2))
    shifted = [
        one._replace(header=one.header._replace(record_count=1)),
        other._replace(header=other.header._replace(record_count=2)),
    ]
    with pytest.raises(MalformedFrame, match="more or fewer"):
        decode(shifted)


def test_a_batch_that_claims_more_records_than_its_bytes_is_refused() -> None:
    batch = build_batch([Record(None, b"a")])
    header = read_batches(batch).headers[0]._replace(record_count=1_000_000)
    with pytest.raises(MalformedFrame, match="claims 1000000 records"):
        section(header, batch)
