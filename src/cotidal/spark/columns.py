"""The columns of a record: those of Spark's ``kafka`` format, in its order, and two more. Pure.

``headers`` is there with includeHeaders; a record without headers has an empty list. leader_epoch
and producer_id are the batch's. A reader that is given a schema reads only the columns it names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from cotidal.spark.decoding import Decoded
from cotidal.spark.failures import WrongOption

MICROS: Final = 1000
"""In a millisecond."""

HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
STOCK: Final = (
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
)
HEADERS: Final = StructField("headers", ArrayType(HEADER))
OURS: Final = (StructField("leader_epoch", IntegerType()), StructField("producer_id", LongType()))


def full_schema(*, headers: bool) -> StructType:
    return StructType([*STOCK, *((HEADERS,) if headers else ()), *OURS])


def check_schema(wanted: StructType) -> None:
    """WrongOption unless every field is a column of ours, with its type."""
    known = {field.name: field.dataType for field in full_schema(headers=True).fields}
    for field in wanted.fields:
        if field.name not in known:
            raise WrongOption(
                f"there is no column {field.name}; choose from {', '.join(known)}",
            )
        if field.dataType != known[field.name]:
            raise WrongOption(
                f"column {field.name} is {known[field.name].simpleString()}, "
                f"not {field.dataType.simpleString()}"
            )


def arrow_schema(wanted: StructType) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(wanted, timezone="UTC")


def record_batch(
    decoded: Decoded, schema: pa.Schema, *, topic: str, partition: int
) -> pa.RecordBatch:
    columns = [
        COLUMNS[field.name](decoded, topic, partition).cast(field.type, safe=False)
        if field.name == "headers"
        else COLUMNS[field.name](decoded, topic, partition)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _timestamps(decoded: Decoded) -> pa.Array:
    micros = pa.array(decoded.timestamps_ms * MICROS)
    return micros.view(pa.timestamp("us", tz="UTC"))


def _topic(decoded: Decoded, topic: str) -> pa.Array:
    return pa.repeat(pa.scalar(topic, pa.string()), len(decoded.offsets))


COLUMNS: Final[dict[str, Callable[[Decoded, str, int], Any]]] = {
    "key": lambda decoded, _, __: decoded.keys,
    "value": lambda decoded, _, __: decoded.values,
    "topic": lambda decoded, topic, _: _topic(decoded, topic),
    "partition": lambda decoded, _, partition: pa.array(
        np.full(len(decoded.offsets), partition, np.int32)
    ),
    "offset": lambda decoded, _, __: pa.array(decoded.offsets),
    "timestamp": lambda decoded, _, __: _timestamps(decoded),
    "timestampType": lambda decoded, _, __: pa.array(decoded.timestamp_types),
    "headers": lambda decoded, _, __: decoded.headers,
    "leader_epoch": lambda decoded, _, __: pa.array(decoded.leader_epochs),
    "producer_id": lambda decoded, _, __: pa.array(decoded.producer_ids),
}
