from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from cotidal.client.cluster import Cluster as Client
from cotidal.client.failures import Refused
from cotidal.client.partitioner import partition_for_key
from cotidal.spark.columns import arrow_schema, full_schema
from cotidal.spark.failures import DifferentBatch, Unusable, WrongOption
from cotidal.spark.memory import fence, recall, settle, transactional_id
from cotidal.spark.options import SinkOptions, parse_sink, parse_source
from cotidal.spark.planning import plan_batch
from cotidal.spark.reading import read_ranges
from cotidal.spark.sink import BatchWriter, StreamWriter, Wrote, check_sink, write_task
from cotidal.spark.source import CotidalSource

QUERY = "0d1f"
SCHEMA = arrow_schema(full_schema(headers=False))


def table(*values: bytes | None, **more: list[Any]) -> pa.RecordBatch:
    columns = {"value": pa.array(values, pa.binary())}
    columns |= {name: pa.array(made) for name, made in more.items()}
    return pa.RecordBatch.from_pydict(columns)


@pytest.fixture
def sink(source: Any) -> Any:
    def options(topic: str | None, **more: str) -> SinkOptions:
        given = source(**({"topic": topic} if topic else {}), **more)
        return parse_sink(given)

    return options


@pytest.fixture
def read(source: Any) -> Any:
    def rows(topic: str, *, committed: bool = True) -> list[dict[str, Any]]:
        level = "read_committed" if committed else "read_uncommitted"
        options = parse_source(source(topic, **{"kafka.isolation.level": level}), streaming=False)
        return [
            row
            for batch in read_ranges(options, plan_batch(options), SCHEMA)
            for row in batch.to_pylist()
        ]

    return rows


def values(rows: list[dict[str, Any]]) -> list[bytes]:
    return [row["value"] for row in rows]


def run(
    options: SinkOptions, *parts: list[pa.RecordBatch], batch: int = 0, query: str = QUERY
) -> None:
    """A micro-batch, task by task, then the driver."""
    tasks = [write_task(options, query, at, iter(part)) for at, part in enumerate(parts)]
    told = [pickle.loads(pickle.dumps(each)).task for each in tasks]
    settle(options, query, batch, told)
    fence(options, query, range(len(told)))  # markers are written a moment after the answer


def test_rows_are_seen_when_the_driver_has_committed(new_topic: Any, sink: Any, read: Any) -> None:
    topic = new_topic()
    options = sink(topic)
    wrote = write_task(options, topic, 0, iter([table(b"a", b"b"), table(b"c")]))
    assert isinstance(wrote, Wrote)
    assert read(topic) == []
    assert values(read(topic, committed=False)) == [b"a", b"b", b"c"]
    settle(options, topic, 0, [wrote.task])
    fence(options, topic, [0])
    assert values(read(topic)) == [b"a", b"b", b"c"]


def test_columns_say_where_rows_go(new_topic: Any, sink: Any, read: Any) -> None:
    one, other = new_topic(partitions=4), new_topic()
    batch = table(
        b"a", b"b", b"c", b"d",
        key=[b"k", b"k", None, b"k"],
        topic=[one, one, other, None],
        partition=pa.array([None, 2, None, 3], pa.int32()),
    )  # fmt: skip
    run(sink(one), [batch], query=one)
    found = {row["value"]: (row["topic"], row["partition"]) for row in read(one) + read(other)}
    assert found == {
        b"a": (one, partition_for_key(b"k", partitions=4)),
        b"b": (one, 2),
        b"c": (other, 0),
        b"d": (one, 3),
    }


def test_strings_headers_and_times_are_written(
    new_topic: Any, sink: Any, source: Any, read: Any
) -> None:
    topic = new_topic()
    stamp = pa.array([1_700_000_000_123_000], pa.timestamp("us", tz="UTC"))
    headers = pa.array(
        [[{"key": "h", "value": b"1"}]],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    )
    batch = pa.RecordBatch.from_pydict(
        {"key": ["k"], "value": ["v"], "headers": headers, "timestamp": stamp}
    )
    for compression in ("none", "gzip", "snappy", "lz4", "zstd"):
        more = {"includeTimestamps": "true", "kafka.compression.type": compression}
        run(sink(topic, **more), [batch], query=f"{topic}-{compression}")
    rows = read(topic)
    assert {(row["key"], row["value"]) for row in rows} == {(b"k", b"v")}
    assert {int(row["timestamp"].timestamp() * 1000) for row in rows} == {1_700_000_000_123}
    assert len(rows) == 5


def test_large_rows_are_cut_into_batches_in_order(new_topic: Any, sink: Any, read: Any) -> None:
    topic = new_topic()
    made = [b"%04d" % at + bytes(500) for at in range(400)]
    run(sink(topic, **{"kafka.batch.size": "4000"}), [table(*made)], query=topic)
    assert values(read(topic)) == made


def test_a_batch_that_comes_again_is_there_once(new_topic: Any, sink: Any, read: Any) -> None:
    topic = new_topic()
    options = sink(topic)
    for _ in range(2):
        run(options, [table(b"a", b"b")], [table(b"c")], batch=0, query=topic)
    run(options, [table(b"d")], [table()], batch=1, query=topic)
    run(options, [table(b"d")], [table()], batch=1, query=topic)
    assert sorted(values(read(topic))) == [b"a", b"b", b"c", b"d"]


def test_rows_in_another_order_are_the_same_batch(new_topic: Any, sink: Any, read: Any) -> None:
    topic = new_topic()
    run(sink(topic), [table(b"a", b"b")], query=topic)
    run(sink(topic), [table(b"b"), table(b"a")], query=topic)
    assert values(read(topic)) == [b"a", b"b"]


def test_a_driver_that_died_between_commits_goes_on_where_it_stood(
    new_topic: Any, sink: Any, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic()
    options = sink(topic)
    ended: list[str] = []

    def dying(cluster: Any, name: str, identity: Any, *, committed: bool) -> Any:
        if ended and committed:
            raise KeyboardInterrupt
        ended.append(name)
        return real(cluster, name, identity, committed=committed)

    from cotidal.spark import memory

    real = memory.end
    parts = [table(b"a")], [table(b"b")], [table(b"c")]
    with monkeypatch.context() as dies:
        dies.setattr(memory, "end", dying)
        with pytest.raises(KeyboardInterrupt):
            run(options, *parts, query=topic)
    assert ended == [transactional_id(topic, 0)]
    run(options, *parts, query=topic)
    assert sorted(values(read(topic))) == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    ("again", "sentence"),
    [
        ([[table(b"a")], [table(b"x")]], r"other rows: partition 1 wrote 1 .* and has 1"),
        ([[table(b"a")], [table()]], r"other rows: partition 1 wrote 1 .* and has 0"),
        ([[table(b"a", b"b")]], "from 2 partitions and comes again from 1"),
        ([[table(b"a")], [table(b"b")], [table()]], "from 2 partitions and comes again from 3"),
    ],
)
def test_something_else_under_the_same_batch_fails_and_writes_nothing(
    new_topic: Any, sink: Any, read: Any, again: Any, sentence: str
) -> None:
    topic = new_topic()
    run(sink(topic), [table(b"a")], [table(b"b")], batch=3, query=topic)
    with pytest.raises(DifferentBatch, match=sentence):
        run(sink(topic), *again, batch=3, query=topic)
    assert sorted(values(read(topic))) == [b"a", b"b"]
    with pytest.raises(DifferentBatch, match="the checkpoint is older"):
        run(sink(topic), [table(b"a")], batch=2, query=topic)


def test_a_task_tried_again_writes_once(new_topic: Any, sink: Any, read: Any) -> None:
    """The first attempt is slow, not dead: it is fenced, and what it wrote is gone."""
    topic = new_topic()
    options = sink(topic, **{"kafka.batch.size": "1000"})
    second: list[Wrote] = []

    def slow() -> Iterator[pa.RecordBatch]:
        yield table(b"a")
        yield table(b"b")  # by now the first is written
        second.append(write_task(options, topic, 0, iter([table(b"a"), table(b"b")])))
        yield table(b"late")

    with pytest.raises(Unusable, match="is written by a later attempt"):
        write_task(options, topic, 0, slow())
    settle(options, topic, 0, [second[0].task])
    fence(options, topic, [0])
    assert values(read(topic)) == [b"a", b"b"]


def test_what_a_failed_job_wrote_is_never_seen(new_topic: Any, sink: Any, read: Any) -> None:
    topic = new_topic()
    options = sink(topic)
    stream = StreamWriter(options)
    wrote = write_task(options, topic, 0, iter([table(b"a")]))
    write_task(options, topic, 1, iter([table(b"b")]))  # and its message is lost
    stream.abort([wrote, None], 0)
    run(options, [table(b"c")], [table(b"d")], query=topic)
    assert sorted(values(read(topic))) == [b"c", b"d"]


def test_a_batch_write_that_says_who_it_is_writes_once(
    new_topic: Any, sink: Any, read: Any
) -> None:
    """As within foreachBatch: the same job and version again, after a crash."""
    topic = new_topic()
    for version in (0, 0, 1, 1):
        options = sink(topic, txnAppId=f"{topic}-app", txnVersion=str(version))
        writer = BatchWriter(options)
        wrote = write_task(options, writer._job, 0, iter([table(b"%d" % version)]))
        writer.commit([wrote])
    assert values(read(topic)) == [b"0", b"1"]
    with pytest.raises(WrongOption, match="go together"):
        sink(topic, txnAppId="a")


def test_a_memory_is_of_the_last_batch(client: Client, new_topic: Any, sink: Any) -> None:
    topic = new_topic()
    for batch in (4, 5):
        run(sink(topic), [table(b"a", b"b")], [table()], batch=batch, query=topic)
    memory = recall(client, transactional_id(topic, 0))
    assert memory is not None
    assert memory._replace(digest="") == (5, 2, 2, "")
    assert recall(client, transactional_id(topic, 7)) is None


def test_at_least_once_is_seen_at_once_and_again(new_topic: Any, sink: Any, read: Any) -> None:
    topic = new_topic()
    options = sink(topic, delivery="at-least-once")
    for _ in range(2):
        write_task(options, topic, 0, iter([table(b"a")]))
    assert values(read(topic)) == [b"a", b"a"]


def test_what_is_wrong_with_a_sink_is_one_sentence(new_topic: Any, sink: Any, source: Any) -> None:
    topic = new_topic()
    value = StructType().add("value", "binary")
    for schema, options, sentence in (
        (StructType().add("key", "binary"), sink(topic), "no column value"),
        (value, sink(None), "no topic is named"),
        (
            StructType().add("value", "integer"),
            sink(topic),
            "column value is int; it must be binary",
        ),
        (value, sink(topic, includeTimestamps="true"), "no column timestamp"),
    ):
        with pytest.raises(WrongOption, match=sentence):
            check_sink(schema, options)
    with pytest.raises(Unusable, match="does not exist"):
        check_sink(value, sink("nowhere-to-be-found"))
    check_sink(value, sink(topic))
    for more, sentence in (
        ({"delivery": "twice"}, "write exactly-once or at-least-once"),
        ({"kafka.compression.type": "zip"}, "write one of none, gzip"),
        ({"kafka.acks": "1"}, "acks=all"),
        ({"startingOffsets": "earliest"}, "there is no option startingoffsets"),
    ):
        with pytest.raises(WrongOption, match=sentence):
            sink(topic, **more)
    with pytest.raises(WrongOption, match="cannot be overwritten"):
        CotidalSource(source(topic=topic)).writer(value, True)
    batch = table(b"a", partition=pa.array([9], pa.int32()))
    with pytest.raises(WrongOption, match=r"partition 9 of .*, which has 1"):
        write_task(sink(topic), topic, 0, iter([batch]))


def test_a_topic_deleted_under_a_writer_is_told(client: Client, new_topic: Any, sink: Any) -> None:
    from cotidal.client.admin import delete_topics

    topic = new_topic()
    options = sink(topic, **{"kafka.request.timeout.ms": "20000"})

    def rows() -> Iterator[pa.RecordBatch]:
        yield table(b"a")
        delete_topics(client, [topic])
        yield table(b"b")

    with pytest.raises((Unusable, Refused), match="does not exist"):
        write_task(options, topic, 0, rows())
