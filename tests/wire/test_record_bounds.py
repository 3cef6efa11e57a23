from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotidal.errors import MalformedFrame
from cotidal.messages.batch import HEADER_BYTES
from cotidal.wire.record_bounds import record_bounds
from cotidal.wire.records import Record, build_batch


def records_of(*values: bytes) -> bytes:
    return build_batch([Record(None, value) for value in values])[HEADER_BYTES:]


@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=8))
def test_every_record_lies_within_its_bounds(sizes: list[int]) -> None:
    values = [bytes([65 + at]) * size for at, size in enumerate(sizes)]
    data = records_of(*values)
    bounds = record_bounds(data, len(data), len(values))
    assert len(bounds) == 2 * len(values)
    assert bounds[-1] == len(data)
    for at, value in enumerate(values):
        begin, end = bounds[2 * at : 2 * at + 2]
        assert data[begin] == 0  # attributes
        assert data[begin:end].endswith(value + b"\0")


def test_bytes_after_the_size_are_not_looked_at() -> None:
    data = records_of(b"a", b"b")
    assert record_bounds(data + bytes(12), len(data), 2) == record_bounds(data, len(data), 2)


@pytest.mark.parametrize(
    ("data", "count", "sentence"),
    [
        (records_of(b"a", b"b"), 1, "bytes follow the last record"),
        (records_of(b"a", b"b")[:-1], 2, "lacks 1 bytes"),
        (records_of(b"a"), 2, "end within a field"),
        (b"\x01", 1, "negative length"),
        (b"\xff\xff\xff\xff\xff\x01", 1, "does not end within 5 bytes"),
    ],
)
def test_records_that_do_not_fill_their_batch_are_refused(
    data: bytes, count: int, sentence: str
) -> None:
    with pytest.raises(MalformedFrame, match=sentence):
        record_bounds(data, len(data), count)
