"""Rows of one task, written as records: on an executor.

Which columns there are is looked at on the driver (``check_columns``): ``value``, and if they are
there ``key``, ``topic``, ``partition``, ``headers``, and with includeTimestamps ``timestamp``.
Others are not written, as in Spark's ``kafka`` format. A null topic is that of the option.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

from cotidal.client.cluster import Cluster
from cotidal.client.idempotent import Encoded, IdempotentWriter
from cotidal.client.transactions import Identity
from cotidal.spark.columns import HEADER, MICROS
from cotidal.spark.digest import Digest
from cotidal.spark.encoding import Rows, batch_edges, encode, encode_headers
from cotidal.spark.failures import WrongOption
from cotidal.spark.options import SinkOptions
from cotidal.spark.partitioning import groups, partitions_of
from cotidal.values import TopicPartition
from cotidal.wire.compression import Compression

TEXT: Final = (BinaryType(), StringType())
ALLOWED: Final[dict[str, tuple[DataType, ...]]] = {
    "key": TEXT,
    "value": TEXT,
    "topic": (StringType(),),
    "partition": (IntegerType(),),
    "headers": (ArrayType(HEADER),),
    "timestamp": (TimestampType(),),
}


def check_columns(schema: StructType, options: SinkOptions) -> None:
    names = schema.fieldNames()
    if "value" not in names:
        raise WrongOption("the rows have no column value; name what is to be written value")
    if options.topic is None and "topic" not in names:
        raise WrongOption("no topic is named; give the option topic, or a column topic")
    if options.include_timestamps and "timestamp" not in names:
        raise WrongOption("includeTimestamps is true, but the rows have no column timestamp")
    for field in schema.fields:
        allowed = ALLOWED.get(field.name)
        if field.name == "timestamp" and not options.include_timestamps:
            continue
        if allowed is not None and field.dataType.simpleString() not in (
            each.simpleString() for each in allowed
        ):
            kinds = " or ".join(each.simpleString() for each in allowed)
            raise WrongOption(
                f"column {field.name} is {field.dataType.simpleString()}; it must be {kinds}"
            )


class Written(NamedTuple):
    digest: Digest
    topic: str | None
    """One that was written to."""


def write_rows(
    cluster: Cluster,
    options: SinkOptions,
    identity: Identity,
    batches: Iterable[pa.RecordBatch],
    *,
    transactional_id: str | None,
) -> Written:
    """All rows, acknowledged when this returns."""
    writer = IdempotentWriter(
        cluster,
        identity,
        transactional_id=transactional_id,
        compression=Compression[options.compression],
    )
    digest, seen = Digest(), None
    for number, batch in enumerate(batches):
        if not batch.num_rows:
            continue
        columns = _Columns(batch, options)
        if transactional_id is not None:
            digest = digest.with_rows(columns.identifying())
        seen = seen or columns.topics[0].as_py()
        for each in _rounds(columns, writer, options, sticky=number):
            writer.send(each)
    writer.finish()
    return Written(digest, seen)


class _Columns:
    """The columns of one Arrow batch, as they are written."""

    def __init__(self, batch: pa.RecordBatch, options: SinkOptions) -> None:
        names = batch.schema.names
        count = batch.num_rows

        def column(name: str, kind: pa.DataType) -> pa.Array:
            if name not in names:
                return pa.nulls(count, kind)
            return batch.column(name).cast(kind)

        self.partitions = column("partition", pa.int32()) if "partition" in names else None
        self.topics = column("topic", pa.string())
        if self.topics.null_count:
            if options.topic is None:
                raise WrongOption("a row has no topic, and there is no option topic")
            self.topics = self.topics.fill_null(options.topic)
        headers = encode_headers(batch.column("headers")) if "headers" in names else None
        if options.include_timestamps:
            micros = column("timestamp", pa.timestamp("us", tz="UTC")).cast(pa.int64())
            if micros.null_count:
                raise WrongOption("a row has no timestamp, and includeTimestamps is true")
            times = micros.to_numpy(zero_copy_only=False) // MICROS
        else:
            times = np.full(count, int(time.time() * 1000), np.int64)
        self._timed = options.include_timestamps
        self.rows = Rows(column("key", pa.binary()), column("value", pa.binary()), headers, times)

    def identifying(self) -> list[pa.Array]:
        """What makes two rows the same: everything but the time of writing."""
        rows = self.rows
        found = [rows.keys, rows.values, self.topics.cast(pa.binary())]
        numbers = [self.partitions] if self.partitions is not None else []
        numbers += [pa.array(rows.timestamps_ms)] if self._timed else []
        found += [each.cast(pa.string()).cast(pa.binary()) for each in numbers]
        return [*found, rows.headers] if rows.headers is not None else found


def _rounds(
    columns: _Columns, writer: IdempotentWriter, options: SinkOptions, *, sticky: int
) -> Iterator[dict[TopicPartition, Encoded]]:
    """One batch of each partition at a time, until all rows are in one."""
    waiting: dict[TopicPartition, tuple[Rows, list[int]]] = {}
    for topic, which in _by_topic(columns.topics):
        count = len(writer.topic(topic).partitions)
        own = columns.rows.take(which)
        wanted = columns.partitions
        chosen = partitions_of(
            own.keys,
            None if wanted is None else wanted.take(pa.array(which)),
            count=count,
            sticky=sticky,
        )
        if int(chosen.max()) >= count:
            raise WrongOption(
                f"a row is for partition {int(chosen.max())} of '{topic}', which has {count}"
            )
        for partition, rows in groups(chosen):
            together = own.take(rows)
            edges = batch_edges(together, bytes_max=options.batch_bytes)
            waiting[TopicPartition(topic, partition)] = (together, edges)
    at = 0
    while ready := {
        where: encode(rows.slice(edges[at], edges[at + 1]))
        for where, (rows, edges) in waiting.items()
        if at + 1 < len(edges)
    }:
        yield ready
        at += 1


def _by_topic(
    topics: pa.Array,
) -> Iterator[tuple[str, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]]:
    encoded = pc.dictionary_encode(topics)
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    for code, which in groups(codes):
        yield encoded.dictionary[code].as_py(), which
