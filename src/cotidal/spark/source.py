"""``spark.read.format("cotidal")``: what Spark calls.

Readers are made on the driver, pickled, and sent to executors: they hold options and open nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from cotidal.spark.columns import arrow_schema, check_schema, full_schema
from cotidal.spark.options import SourceOptions, parse_source, wants_headers
from cotidal.spark.planning import plan_batch
from cotidal.spark.ranges import OffsetRange
from cotidal.spark.reading import read_range
from cotidal.spark.stream import StreamReader


class CotidalSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "cotidal"

    def schema(self) -> StructType:
        return full_schema(headers=wants_headers(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        check_schema(schema)
        return BatchReader(parse_source(self.options, streaming=False), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        check_schema(schema)
        return StreamReader(parse_source(self.options, streaming=True), schema)


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(each) for each in plan_batch(self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition.value, OffsetRange)
        return read_range(self._options, partition.value, arrow_schema(self._schema))
