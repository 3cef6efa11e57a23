"""``df.write.format("cotidal")`` and ``df.writeStream.format("cotidal")``: what Spark calls.

Exactly once, by default: each task writes in a transaction, and the driver commits when all have
written (memory.py). A task that is tried again fences the attempt before it; a micro-batch that is
run again, after a crash, is found to be there. Readers with read_committed see whole batches, those
of a job that failed never. A batch write is exactly-once within its job: run it twice, and the rows
are there twice, unless it says with txnAppId and txnVersion which batch of which job it is.

With delivery=at-least-once tasks write without a transaction: a retry of a lost answer is still
known to the leader, but a task or a micro-batch that is run again writes again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from cotidal.client.transactions import begin, new_identity
from cotidal.spark.memory import (
    TaskWrote,
    abandon,
    fence,
    settle,
    transactional_id,
    unless_fenced,
)
from cotidal.spark.options import SinkOptions
from cotidal.spark.planning import reachable
from cotidal.spark.writing import check_columns, write_rows

QUERY: Final = "sql.streaming.queryId"


class Wrote(WriterCommitMessage):
    """What a task tells the driver."""

    def __init__(self, writer: str, task: TaskWrote) -> None:
        self.writer = writer
        self.task = task


def check_sink(schema: StructType, options: SinkOptions) -> None:
    """On the driver, before anything is written."""
    check_columns(schema, options)
    with reachable(options) as cluster:
        if options.topic is None:
            cluster.metadata([])
        else:
            cluster.topic(options.topic)


def write_task(
    options: SinkOptions, writer: str, partition: int, batches: Iterator[pa.RecordBatch]
) -> Wrote:
    with reachable(options) as cluster, unless_fenced(partition):
        if options.exactly_once:
            name = transactional_id(writer, partition)
            identity = begin(cluster, name, timeout_ms=options.transaction_timeout_ms)
        else:
            name, identity = None, new_identity(cluster)
        wrote = write_rows(cluster, options, identity, batches, transactional_id=name)
    return Wrote(writer, TaskWrote(partition, identity, wrote.digest, wrote.topic))


class _Writer:
    """What both writers do on the driver."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def _settle(self, messages: list[WriterCommitMessage | None], batch: int) -> None:
        told = [each for each in messages if isinstance(each, Wrote)]
        if told and self._options.exactly_once:
            settle(self._options, told[0].writer, batch, [each.task for each in told])

    def _abandon(self, messages: list[WriterCommitMessage | None]) -> None:
        told = [each for each in messages if isinstance(each, Wrote)]
        if told and self._options.exactly_once:
            writer = told[0].writer
            abandon(self._options, writer, [each.task for each in told])
            silent = [at for at, each in enumerate(messages) if each is None]
            fence(self._options, writer, silent)


class BatchWriter(_Writer, DataSourceArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        super().__init__(options)
        self._job = options.job or str(uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_task(self._options, self._job, _task().partitionId(), iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._settle(messages, self._options.batch)
        if self._options.exactly_once:  # whoever waited for the job may read what it wrote
            fence(self._options, self._job, range(len(messages)))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._abandon(messages)


class StreamWriter(_Writer, DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        task = _task()
        query = task.getLocalProperty(QUERY)
        assert query is not None, "a stream has a query id"
        return write_task(self._options, query, task.partitionId(), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._settle(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._abandon(messages)


def _task() -> TaskContext:
    task = TaskContext.get()
    assert task is not None, "rows are written within a task"
    return task
