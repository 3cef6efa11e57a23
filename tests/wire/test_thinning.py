"""Batches with fewer records than they had."""

from __future__ import annotations

import pytest

from cotidal.errors import MalformedFrame
from cotidal.wire.batch import read_batches, read_header, with_append_time
from cotidal.wire.compression import Compression
from cotidal.wire.records import Record, build_batch, read_records
from cotidal.wire.thinning import emptied, record_bytes, record_spans, thinned

RECORDS = [
    Record(b"a", b"1", (("trace", b"\x01"),), timestamp=1000),
    Record(None, b"x" * 300, timestamp=99_000_000_000),
    Record(b"k" * 200, None, timestamp=900),
    Record(b"", b"", timestamp=1000),
]


def batch(codec: Compression = Compression.NONE) -> bytes:
    return build_batch(
        RECORDS, base_offset=70, leader_epoch=3, compression=codec, producer_id=9,
        producer_epoch=1, base_sequence=5,
    )  # fmt: skip


@pytest.mark.parametrize("codec", list(Compression))
def test_spans_tell_of_every_record_what_reading_it_tells(codec: Compression) -> None:
    made = batch(codec)
    header = read_header(made)
    spans = record_spans(header, record_bytes(header, made))
    told = [
        (header.base_timestamp + span[2], header.base_offset + span[3], span[4], span[5])
        for span in spans
    ]
    assert told == [
        (each.timestamp, each.offset, each.key, each.value is not None)
        for each in read_records(made)
    ]


@pytest.mark.parametrize("codec", list(Compression))
@pytest.mark.parametrize("horizon", [None, 5_000_000_000])
def test_records_that_stay_are_what_they_were(codec: Compression, horizon: int | None) -> None:
    made = batch(codec)
    header = read_header(made)
    data = record_bytes(header, made)
    for mask in range(1, 16):
        spans = [each for at, each in enumerate(record_spans(header, data)) if mask >> at & 1]
        thin = thinned(header, data, spans, delete_horizon=horizon)
        found = read_batches(thin)
        assert found.fault is None
        (left,) = found.headers
        stayed = [each for at, each in enumerate(read_records(made)) if mask >> at & 1]
        assert read_records(thin) == stayed
        assert left.max_timestamp == max(each.timestamp for each in stayed)
        assert left.delete_horizon == horizon
        assert left.record_count == len(stayed)
        same = ("base_offset", "last_offset", "leader_epoch", "producer_id", "producer_epoch",
                "base_sequence", "last_sequence", "compression")  # fmt: skip
        for name in same:
            assert getattr(left, name) == getattr(header, name)


def test_batch_that_has_a_horizon_keeps_it() -> None:
    made = batch()
    header = read_header(made)
    data = record_bytes(header, made)
    once = thinned(header, data, record_spans(header, data), delete_horizon=77)
    again = read_header(once)
    body = record_bytes(again, once)
    twice = thinned(again, body, record_spans(again, body)[2:])
    assert read_header(twice).delete_horizon == 77
    assert read_records(twice) == read_records(made)[2:]


def test_time_of_the_log_stays_the_time_of_all_its_records() -> None:
    made = with_append_time(batch(), 12_345)
    header = read_header(made)
    data = record_bytes(header, made)
    thin = thinned(header, data, record_spans(header, data)[:1], delete_horizon=99)
    assert [each.timestamp for each in read_records(thin)] == [12_345]


def test_emptied_batch_keeps_its_offsets_and_its_producer() -> None:
    made = batch(Compression.ZSTD)
    header = read_header(made)
    empty = emptied(header)
    assert len(empty) == 61
    (left,) = read_batches(empty).headers
    assert (left.base_offset, left.last_offset, left.last_sequence) == (70, 73, 8)
    assert (left.record_count, left.max_timestamp, left.compression) == (0, -1, 0)
    assert read_records(empty) == []


@pytest.mark.parametrize("cut", range(1, 40))
def test_records_that_cannot_be_read_are_refused_and_nothing_else_happens(cut: int) -> None:
    made = batch()
    header = read_header(made)
    with pytest.raises(MalformedFrame):
        record_spans(header, record_bytes(header, made)[:-cut])


def test_a_walk_of_many_records_pauses_on_its_way() -> None:
    batch = build_batch([Record(b"k", b"v") for _ in range(950)])
    header = read_header(batch)
    pauses: list[int] = []
    record_spans(header, record_bytes(header, batch), lambda: pauses.append(1))
    assert len(pauses) == 10
