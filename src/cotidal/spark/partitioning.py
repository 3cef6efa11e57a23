"""Which partition each row goes to, and rows put together by it. Pure.

A row with a partition of its own goes there; one with a key where the Java clients would put it
(client/partitioner.py, here for all keys at once); the others stay together, and the next batch of
them goes to the next partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from cotidal.client.partitioner import MULTIPLIER, SEED
from cotidal.spark.decoding import Ints


def murmur2s(keys: pa.Array) -> Any:
    """client/partitioner.py's murmur2 of every key; null is taken for empty."""
    plain = keys.fill_null(b"")
    count = len(plain)
    edges = np.frombuffer(plain.buffers()[1], np.int32)[plain.offset : plain.offset + count + 1]
    starts, lengths = edges[:-1].astype(np.int64), np.diff(edges).astype(np.uint32)
    held = plain.buffers()[2]
    data = np.frombuffer(held, np.uint8) if held is not None else np.zeros(0, np.uint8)
    data = np.concatenate((data, np.zeros(4, np.uint8)))
    multiplier = np.uint32(MULTIPLIER)
    mixed = np.uint32(SEED) ^ lengths
    words = lengths >> 2
    for at in range(int(words.max(initial=0))):
        which = np.flatnonzero(words > at)
        word = _words(data, starts[which] + 4 * at, 4) * multiplier
        word = (word ^ (word >> np.uint32(24))) * multiplier
        mixed[which] = (mixed[which] * multiplier) ^ word
    for left in (1, 2, 3):
        which = np.flatnonzero(lengths & 3 == left)
        if which.size:
            tail = starts[which] + (words[which].astype(np.int64) << 2)
            mixed[which] = (mixed[which] ^ _words(data, tail, left)) * multiplier
    mixed = (mixed ^ (mixed >> np.uint32(13))) * multiplier
    return mixed ^ (mixed >> np.uint32(15))


def _words(data: Any, starts: Ints, size: int) -> Any:
    """Little-endian numbers of so many bytes."""
    word = np.zeros(len(starts), np.uint32)
    for at in range(size):
        word |= data[starts + at].astype(np.uint32) << np.uint32(8 * at)
    return word


def partitions_of(keys: pa.Array, wanted: pa.Array | None, *, count: int, sticky: int) -> Ints:
    """``wanted``: a column of partitions, null where the key decides."""
    chosen: Ints = ((murmur2s(keys) & np.uint32(0x7FFFFFFF)) % np.uint32(count)).astype(np.int64)
    if keys.null_count:
        chosen[keys.is_null().to_numpy(zero_copy_only=False)] = sticky % count
    if wanted is not None:
        given = wanted.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        chosen = np.where(given >= 0, given, chosen)
    return chosen


def groups(codes: Ints) -> Iterator[tuple[int, Ints]]:
    """Each code with the rows that have it, in their order."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    edges = np.flatnonzero(np.diff(ordered)) + 1
    for rows in np.split(order, edges):
        if rows.size:
            yield int(codes[rows[0]]), rows
