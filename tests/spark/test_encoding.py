from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cotidal.client.partitioner import partition_for_key
from cotidal.spark.digest import Digest
from cotidal.spark.encoding import Rows, batch_edges, encode, encode_headers
from cotidal.spark.partitioning import groups, partitions_of
from cotidal.wire.records import Record, read_records, seal_batch

some_bytes = st.none() | st.binary(max_size=300)
rows = st.lists(
    st.tuples(
        some_bytes,
        some_bytes,
        st.integers(-(2**40), 2**44),
        st.lists(st.tuples(st.text(max_size=5), some_bytes), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=200,
)
Row = tuple[bytes | None, bytes | None, int, tuple[tuple[str, bytes | None], ...]]


def columns(made: list[Row]) -> Rows:
    headers = pa.array(
        [[{"key": key, "value": value} for key, value in headers] for *_, headers in made],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    )
    return Rows(
        pa.array([key for key, *_ in made], pa.binary()),
        pa.array([value for _, value, *_ in made], pa.binary()),
        encode_headers(headers),
        np.array([time for *_, time, _ in made], np.int64),
    )


@given(rows)
def test_what_is_encoded_reads_as_what_it_was(made: list[Row]) -> None:
    encoded = encode(columns(made))
    batch = seal_batch(
        encoded.records,
        attributes=0,
        last_offset_delta=encoded.record_count - 1,
        base_timestamp=encoded.base_timestamp,
        max_timestamp=encoded.max_timestamp,
        count=encoded.record_count,
    )
    assert read_records(batch) == [
        Record(key, value, headers, time, offset)
        for offset, (key, value, time, headers) in enumerate(made)
    ]
    assert encoded.max_timestamp == max(time for *_, time, _ in made)


def test_a_part_of_the_columns_is_encoded_from_its_own_beginning() -> None:
    whole = columns([(b"k%d" % at, b"v%d" % at, at, ()) for at in range(300)])
    part = encode(whole.slice(200, 203))
    again = encode(columns([(b"k%d" % at, b"v%d" % at, at, ()) for at in (200, 201, 202)]))
    assert bytes(part.records) == bytes(again.records)


@given(st.lists(st.integers(0, 900), min_size=1, max_size=30), st.integers(100, 1500))
def test_batches_are_cut_by_their_bytes_and_hold_a_record_at_least(
    sizes: list[int], most: int
) -> None:
    cut = columns([(None, bytes(size), 0, ()) for size in sizes])
    edges = batch_edges(cut, bytes_max=most)
    assert edges[0] == 0
    assert edges[-1] == len(sizes)
    for begin, end in itertools.pairwise(edges):
        assert begin < end
        assert end - begin == 1 or len(encode(cut.slice(begin, end)).records) <= most


@given(st.lists(st.none() | st.binary(max_size=40), min_size=1, max_size=50), st.integers(1, 20))
def test_keys_go_where_the_java_clients_put_them(keys: list[bytes | None], count: int) -> None:
    chosen = partitions_of(pa.array(keys, pa.binary()), None, count=count, sticky=7)
    assert chosen.tolist() == [
        7 % count if key is None else partition_for_key(key, partitions=count) for key in keys
    ]
    sliced = pa.array([b"before", *keys], pa.binary())[1:]
    assert partitions_of(sliced, None, count=count, sticky=7).tolist() == chosen.tolist()


def test_a_partition_of_its_own_comes_before_the_key() -> None:
    wanted = pa.array([3, None], pa.int32())
    chosen = partitions_of(pa.array([b"a", b"a"]), wanted, count=5, sticky=0)
    assert chosen.tolist() == [3, partition_for_key(b"a", partitions=5)]


def test_groups_keep_the_order_of_their_rows() -> None:
    found = {code: which.tolist() for code, which in groups(np.array([2, 0, 2, 1, 0]))}
    assert found == {0: [1, 4], 1: [3], 2: [0, 2]}


def digest(*made: tuple[bytes | None, bytes | None]) -> Digest:
    keys, values = zip(*made, strict=True)
    return Digest().with_rows([pa.array(keys, pa.binary()), pa.array(values, pa.binary())])


def test_a_digest_tells_rows_apart_and_not_their_order() -> None:
    same = digest((b"a", b"1"), (b"b", b"2"), (b"c", None))
    assert digest((b"c", None), (b"a", b"1"), (b"b", b"2")) == same
    assert digest((b"b", b"2")).with_rows([pa.array([b"a", b"c"]), pa.array([b"1", None])]) == same
    others = (
        digest((b"a", b"1"), (b"b", b"2"), (b"c", b"")),
        digest((b"a", b"2"), (b"b", b"1"), (b"c", None)),
        digest((b"1", b"a"), (b"b", b"2"), (b"c", None)),
        digest((b"a", b"1"), (b"b", b"2")),
        digest((b"a", b"1"), (b"b", b"2"), (b"c", None), (b"c", None)),
        digest((b"a", b"1"), (b"a", b"1"), (b"c", None)),
    )
    assert same not in others
    assert len(set(others)) == len(others)


def test_a_digest_is_the_same_in_every_process() -> None:
    assert str(digest((b"a", b"1"), (None, b"2"))) == "743fd3e14b96a5fa"
