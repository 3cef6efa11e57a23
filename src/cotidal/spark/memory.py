"""What was written for a batch, remembered with it: one transaction holds rows and memory.

Each partition of a query writes with a transactional id of its own, and commits in the same
transaction an offset of a group of the same name: batch + 1, and as its metadata

    {"batch": 7, "partitions": 4, "rows": 1000, "digest": "00f3..."}

The driver commits when all tasks have written (``settle``): partition 0 first, then the others. So
whoever finds no memory of a batch in partition 0 knows that nothing of it was committed, and one
look is enough. If partition 0 remembers the batch, it comes again, after a crash: each partition
either remembers it too, and what it has written now is aborted once it is seen to be the same, or
its transaction is committed now. Something else under the same batch commits nothing and fails.

A memory is kept as committed offsets are (offsets.retention.minutes): a query that stands still for
longer may write its last batch twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, NamedTuple

from cotidal.client.cluster import Cluster
from cotidal.client.failures import Refused
from cotidal.client.transactions import (
    Committed,
    Identity,
    begin,
    commit_within,
    end,
    settled_offsets,
)
from cotidal.errors import ErrorCode
from cotidal.limits import SPARK_COMMITS_AT_ONCE_MAX
from cotidal.spark.digest import Digest
from cotidal.spark.failures import DifferentBatch, Unusable
from cotidal.spark.options import SinkOptions
from cotidal.spark.planning import reachable
from cotidal.values import Offset, TopicPartition

FENCED: Final = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)


class TaskWrote(NamedTuple):
    """A task has written its rows, in a transaction that is open still."""

    partition: int
    identity: Identity
    digest: Digest
    topic: str | None


class Memory(NamedTuple):
    batch: int
    partitions: int
    rows: int
    digest: str


def transactional_id(writer: str, partition: int) -> str:
    """Of one partition of a query, or of a job; its group is named the same."""
    return f"cotidal-spark-{writer}-{partition}"


def recall(cluster: Cluster, name: str) -> Memory | None:
    """The last batch that this partition wrote."""
    found = [Memory(**json.loads(each.metadata)) for each in settled_offsets(cluster, name)]
    return max(found, default=None)


def settle(options: SinkOptions, writer: str, batch: int, tasks: Sequence[TaskWrote]) -> None:
    """Commit what the tasks have written, unless it is there already; all or, on failure, none
    of those that are not."""
    topic = options.topic or next((each.topic for each in tasks if each.topic), None)
    if topic is None:  # nobody had a row
        abandon(options, writer, tasks)
        return
    try:
        with reachable(options) as cluster:
            known = _compare(cluster, writer, batch, tasks)
    except BaseException:
        abandon(options, writer, tasks)
        raise
    fresh = [task for task in tasks if task.partition not in known]
    at = TopicPartition(topic, 0)

    def commit(cluster: Cluster, task: TaskWrote) -> None:
        name = transactional_id(writer, task.partition)
        memory = Memory(batch, len(tasks), task.digest.rows, str(task.digest))
        note = Committed(Offset(batch + 1), json.dumps(memory._asdict()))
        commit_within(cluster, name, task.identity, group=name, offsets={at: note})
        end(cluster, name, task.identity, committed=True)

    abandon(options, writer, [task for task in tasks if task.partition in known])
    first = [task for task in fresh if task.partition == 0]
    _each(options, first, commit)
    _each(options, [task for task in fresh if task.partition != 0], commit)


def _compare(cluster: Cluster, writer: str, batch: int, tasks: Sequence[TaskWrote]) -> set[int]:
    """The partitions that have this batch already; DifferentBatch if it is another one."""
    first = recall(cluster, transactional_id(writer, 0))
    if first is None or first.batch < batch:
        return set()
    if first.batch > batch:
        raise DifferentBatch(
            f"batch {batch} comes after batch {first.batch} was written: the checkpoint is older "
            "than what it has written; begin with a new checkpoint, or restore the newer one"
        )
    if first.partitions != len(tasks):
        raise DifferentBatch(
            f"batch {batch} was written from {first.partitions} partitions and comes again from "
            f"{len(tasks)}; run it with the same number of partitions as before"
        )
    known: set[int] = set()
    for task in tasks:
        memory = recall(cluster, transactional_id(writer, task.partition))
        if memory is None or memory.batch != batch:
            continue
        if (memory.rows, memory.digest) != (task.digest.rows, str(task.digest)):
            raise DifferentBatch(
                f"batch {batch} comes again with other rows: partition {task.partition} wrote "
                f"{memory.rows} (digest {memory.digest}), and has {task.digest.rows} (digest "
                f"{task.digest}) now; make the query deterministic, or undo its change"
            )
        known.add(task.partition)
    return known


def abandon(options: SinkOptions, writer: str, tasks: Sequence[TaskWrote]) -> None:
    """Abort what these tasks have written."""

    def abort(cluster: Cluster, task: TaskWrote) -> None:
        try:
            end(
                cluster,
                transactional_id(writer, task.partition),
                task.identity,
                committed=False,
            )
        except Refused as refused:
            if refused.error not in (*FENCED, ErrorCode.INVALID_TXN_STATE):
                raise  # fenced, or without a row: nothing is open

    _each(options, tasks, abort)


def fence(options: SinkOptions, writer: str, partitions: Sequence[int]) -> None:
    """Abort what tasks have written that have not told of it, and wait until what was committed
    can be read."""
    with reachable(options) as cluster:
        for partition in partitions:
            name = transactional_id(writer, partition)
            begin(cluster, name, timeout_ms=options.transaction_timeout_ms)


@contextmanager
def unless_fenced(partition: int) -> Iterator[None]:
    """Says in one sentence that somebody else writes as this partition now."""
    try:
        yield
    except Refused as refused:
        if refused.error in FENCED:
            raise Unusable(
                f"partition {partition} is written by a later attempt, or by another run of this "
                "query: if it runs twice, stop one of them"
            ) from None
        raise


def _each(
    options: SinkOptions, tasks: Sequence[TaskWrote], do: Callable[[Cluster, TaskWrote], None]
) -> None:
    """Side by side, each with connections of its own."""

    def one(task: TaskWrote) -> None:
        with reachable(options) as cluster, unless_fenced(task.partition):
            do(cluster, task)

    if len(tasks) == 1:
        one(tasks[0])
    elif tasks:
        with ThreadPoolExecutor(min(len(tasks), SPARK_COMMITS_AT_ONCE_MAX)) as pool:
            list(pool.map(one, tasks))
