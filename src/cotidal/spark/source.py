"""``spark.read.format("cotidal")``: what Spark calls.

Readers are made on the driver, pickled, and sent to executors: they hold options and open nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from cotidal.spark.columns import arrow_schema, check_schema, full_schema
from cotidal.spark.failures import WrongOption
from cotidal.spark.options import (
    SinkOptions,
    SourceOptions,
    parse_sink,
    parse_source,
    wants_headers,
)
from cotidal.spark.planning import plan_batch, plan_tasks
from cotidal.spark.reading import read_ranges
from cotidal.spark.sink import BatchWriter, StreamWriter, check_sink
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

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        if overwrite:
            raise WrongOption("a topic cannot be overwritten; write with mode append")
        return BatchWriter(self._sink(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        # Complete mode: every micro-batch writes the whole result, one after the other.
        return StreamWriter(self._sink(schema))

    def _sink(self, schema: StructType) -> SinkOptions:
        options = parse_sink(self.options)
        check_sink(schema, options)
        return options


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        planned = plan_batch(self._options)
        return [InputPartition(task) for task in plan_tasks(self._options, planned)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_ranges(self._options, partition.value, arrow_schema(self._schema))
