from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.types import StructType

from cotidal.client.admin import delete_topics
from cotidal.client.cluster import Cluster as Client
from cotidal.spark.columns import arrow_schema, full_schema
from cotidal.spark.failures import DataLost, Unusable, WrongOption
from cotidal.spark.options import parse_source
from cotidal.spark.planning import plan_batch
from cotidal.spark.ranges import OffsetRange
from cotidal.spark.reading import RangeFetcher, read_ranges
from cotidal.spark.source import CotidalSource
from cotidal.testing.cluster import Cluster
from cotidal.values import LeaderEpoch, Offset
from cotidal.wire.compression import Compression

SCHEMA = arrow_schema(full_schema(headers=False))


def read(options: dict[str, str], schema: Any = SCHEMA) -> list[dict[str, Any]]:
    """Every row, range by range, as tasks would read them."""
    parsed = parse_source(options, streaming=False)
    return [
        row
        for batch in read_ranges(parsed, plan_batch(parsed), schema)
        for row in batch.to_pylist()
    ]


def values(rows: list[dict[str, Any]]) -> list[bytes]:
    return [row["value"] for row in rows]


def test_every_column_of_every_codec_is_read(new_topic: Any, write: Any, source: Any) -> None:
    topic = new_topic()
    for compression in Compression:
        write(topic, [b"%d" % compression], key=b"k", timestamp=77_000, compression=compression)
    rows = read(source(topic))
    assert values(rows) == [b"%d" % each for each in Compression]
    first = rows[0]
    assert int(first.pop("timestamp").timestamp() * 1000) == 77_000
    assert first.pop("producer_id") >= 0
    assert first == {
        "key": b"k", "value": b"0", "topic": topic, "partition": 0, "offset": 0,
        "timestampType": 0, "leader_epoch": 0,
    }  # fmt: skip


def test_headers_come_with_their_option(new_topic: Any, write: Any, source: Any) -> None:
    topic = new_topic()
    write(topic, [b"a"], headers=[("trace", b"1"), ("none", None)])
    write(topic, [b"b"])
    schema = CotidalSource(source(topic, includeHeaders="true")).schema()
    rows = read(source(topic, includeHeaders="true"), arrow_schema(schema))
    assert [row["headers"] for row in rows] == [
        [{"key": "trace", "value": b"1"}, {"key": "none", "value": None}],
        [],
    ]


def test_a_range_begins_and_ends_within_batches(new_topic: Any, write: Any, source: Any) -> None:
    topic = new_topic()
    for at in range(3):
        write(topic, [b"%d" % (10 * at + each) for each in range(10)])
    bounds = {
        "startingOffsets": f'{{"{topic}": {{"0": 7}}}}',
        "endingOffsets": f'{{"{topic}": {{"0": 23}}}}',
    }
    assert values(read(source(topic, **bounds))) == [b"%d" % each for each in range(7, 23)]
    cut = read(source(topic, **bounds, minPartitions="5"))
    assert values(cut) == [b"%d" % each for each in range(7, 23)]


@pytest.mark.parametrize(
    ("bounds", "tasks"),
    [
        ({}, 1),
        ({"minRecordsPerPartition": "20"}, 2),
        ({"minRecordsPerPartition": "1"}, 3),
        ({"minPartitions": "2"}, 3),
    ],
)
def test_small_partitions_share_a_task_unless_asked_not_to(
    new_topic: Any, write: Any, source: Any, bounds: dict[str, str], tasks: int
) -> None:
    topic = new_topic(partitions=3)
    for partition in range(3):
        write(topic, [b"%d" % (10 * partition + each) for each in range(10)], partition=partition)
    reader = CotidalSource(source(topic, **bounds)).reader(full_schema(headers=False))
    planned = reader.partitions()
    assert len(planned) == tasks
    found = [row for task in planned for batch in reader.read(task) for row in batch.to_pylist()]
    assert values(found) == [b"%d" % each for each in range(30)]
    assert [row["partition"] for row in found] == [each // 10 for each in range(30)]


def test_arrow_batches_are_bounded(new_topic: Any, write: Any, source: Any) -> None:
    topic = new_topic()
    for _ in range(4):
        write(topic, [bytes(100)] * 50)
    for bound, most in (({"arrowBatchRows": "60"}, 100), ({"arrowBatchBytes": "9000"}, 50)):
        options = parse_source(source(topic, **bound), streaming=False)
        (whole,) = plan_batch(options)
        sizes = [batch.num_rows for batch in read_ranges(options, [whole], SCHEMA)]
        assert sum(sizes) == 200
        assert len(sizes) > 1
        assert max(sizes) <= most


def test_fetches_that_hold_a_part_of_the_range_follow_each_other(
    new_topic: Any, write: Any, source: Any
) -> None:
    topic = new_topic()
    for at in range(20):
        write(topic, [b"%d" % at])
    small = source(topic, **{"kafka.max.partition.fetch.bytes": "150"})
    assert values(read(small)) == [b"%d" % at for at in range(20)]


def test_times_are_bounds_too(new_topic: Any, write: Any, source: Any) -> None:
    topic = new_topic()
    for at in range(1, 5):
        write(topic, [b"%d" % at], timestamp=at * 1000)
    between = source(topic, startingTimestamp="2000", endingTimestamp="4000")
    assert values(read(between)) == [b"2", b"3"]
    with pytest.raises(WrongOption, match="no record at or after the starting time"):
        read(source(topic, startingTimestamp="9000"))
    late = source(topic, startingTimestamp="9000", startingOffsetsByTimestampStrategy="latest")
    assert read(late) == []


def test_subscriptions_by_pattern_and_by_partition(new_topic: Any, write: Any, source: Any) -> None:
    one, other = new_topic(partitions=2), new_topic()
    write(one, [b"a"], partition=0)
    write(one, [b"b"], partition=1)
    write(other, [b"c"])
    assert values(read(source(subscribePattern=f"{one}|{other}"))) == [b"a", b"b", b"c"]
    assert values(read(source(assign=f'{{"{one}": [1]}}'))) == [b"b"]
    with pytest.raises(WrongOption, match="has no partition 5"):
        read(source(assign=f'{{"{one}": [5]}}'))
    with pytest.raises(Unusable, match="no topic matches"):
        read(source(subscribePattern="nothing-.*"))


def test_a_schema_names_the_columns_that_are_read(new_topic: Any, write: Any, source: Any) -> None:
    topic = new_topic()
    write(topic, [b"a"])
    wanted = StructType([full_schema(headers=False)["value"], full_schema(headers=False)["offset"]])
    reader = CotidalSource(source(topic)).reader(wanted)
    (part,) = reader.partitions()
    (batch,) = reader.read(part)
    assert batch.to_pylist() == [{"value": b"a", "offset": 0}]
    with pytest.raises(WrongOption, match="there is no column colour"):
        CotidalSource(source(topic)).reader(StructType().add("colour", "string"))
    with pytest.raises(WrongOption, match="column value is binary, not string"):
        CotidalSource(source(topic)).reader(StructType().add("value", "string"))


def test_what_was_aborted_is_seen_only_by_those_who_do_not_mind(
    cluster: Cluster, new_topic: Any, write: Any, source: Any
) -> None:
    from confluent_kafka import Producer

    topic = new_topic()
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "transactional.id": f"{topic}-writer"}
    )
    producer.init_transactions(30)
    for value, commits in ((b"kept", True), (b"dropped", False), (b"kept too", True)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush()
        (producer.commit_transaction if commits else producer.abort_transaction)(30)
    write(topic, [b"plain"])
    committed = source(topic, **{"kafka.isolation.level": "read_committed"})
    assert values(read(committed)) == [b"kept", b"kept too", b"plain"]
    assert values(read(source(topic))) == [b"kept", b"dropped", b"kept too", b"plain"]
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush()
    assert values(read(committed)) == [b"kept", b"kept too", b"plain"]
    producer.abort_transaction(30)


def test_what_is_wrong_is_told_before_anything_is_read(
    client: Client, new_topic: Any, write: Any, source: Any
) -> None:
    topic = new_topic()
    write(topic, [b"a", b"b"])
    with pytest.raises(Unusable, match=f"topic '{topic}s' does not exist; did you mean"):
        read(source(f"{topic}s"))
    with pytest.raises(DataLost, match=r"offset 9 of .* is out of range: the log begins at 0"):
        read(source(topic, startingOffsets=f'{{"{topic}": {{"0": 9}}}}'))
    with pytest.raises(DataLost, match="ends before 2, not 9"):
        read(source(topic, endingOffsets=f'{{"{topic}": {{"0": 9}}}}'))
    with pytest.raises(WrongOption, match="names no offset for"):
        read(source(topic, startingOffsets='{"other": {"0": 9}}'))
    unreachable = source(topic) | {"kafka.bootstrap.servers": "127.0.0.1:1"}
    with pytest.raises(Unusable, match="is the cluster up"):
        read(unreachable)
    tolerant = source(topic, startingOffsets=f'{{"{topic}": {{"0": 9}}}}', failOnDataLoss="false")
    assert read(tolerant) == []


def test_records_deleted_before_they_are_read_are_told_with_their_range(
    cluster: Cluster, new_topic: Any, write: Any, source: Any
) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    topic = new_topic()
    write(topic, [b"%d" % at for at in range(10)])
    options = parse_source(source(topic), streaming=False)
    (planned,) = plan_batch(options)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for gone in admin.delete_records([TopicPartition(topic, 0, 4)]).values():
        gone.result(30)
    with pytest.raises(
        DataLost, match=r"offsets 0 to 3 of .* are lost: the log begins at offset 4"
    ):
        list(read_ranges(options, [planned], SCHEMA))
    (batch,) = read_ranges(options._replace(fail_on_data_loss=False), [planned], SCHEMA)
    assert batch.column("offset").to_pylist() == list(range(4, 10))


def test_a_topic_deleted_while_it_is_read_is_told(
    client: Client, new_topic: Any, write: Any, source: Any
) -> None:
    topic = new_topic()
    write(topic, [b"a"])
    options = parse_source(source(topic), streaming=False)
    (planned,) = plan_batch(options)
    delete_topics(client, [topic])
    with pytest.raises(DataLost, match=r"offsets 0 to 0 of .* the topic was deleted"):
        list(read_ranges(options, [planned], SCHEMA))


def test_records_that_replaced_what_was_planned_are_told(
    new_topic: Any, write: Any, source: Any
) -> None:
    """A range planned in an epoch before that of the records which are there now."""
    topic = new_topic()
    write(topic, [b"a", b"b"])
    options = parse_source(source(topic), streaming=False)
    (planned,) = plan_batch(options)
    assert planned.leader_epoch == 0
    with Client(options.bootstrap) as cluster:
        fetcher = RangeFetcher(cluster, options, planned)
        fetcher._check_epoch(Offset(1), LeaderEpoch(0))
        with pytest.raises(DataLost, match=r"offsets 1 to 1 .* not clean replaced them: epoch 0"):
            fetcher._check_epoch(Offset(1), LeaderEpoch(2))


def test_reading_goes_on_where_it_stood_when_a_leader_dies(
    write: Callable[..., None],
) -> None:
    from cotidal.client.admin import create_topic
    from cotidal.client.producer import Producer

    with Cluster() as cluster, Client(cluster.bootstrap) as client:
        create_topic(client, "orders", partitions=1, replication_factor=3, configs={})
        producer = Producer(client, "orders")
        for at in range(300):
            producer.add(b"%d" % at)
            producer.flush()
        given = {
            "kafka.bootstrap.servers": cluster.bootstrap,
            "subscribe": "orders",
            "kafka.max.partition.fetch.bytes": "300",
            "arrowbatchrows": "10",
        }
        options = parse_source(given, streaming=False)
        (planned,) = plan_batch(options)
        leader = client.topic("orders").partitions[0].leader
        batches = read_ranges(options, [planned], SCHEMA)
        read = next(batches).column("value").to_pylist()
        killing = threading.Thread(target=cluster.kill, args=(leader,))
        killing.start()
        for batch in batches:
            read += batch.column("value").to_pylist()
        killing.join()
        assert read == [b"%d" % at for at in range(300)]


def test_a_range_is_pickled_with_its_reader(new_topic: Any, source: Any) -> None:
    import pickle

    reader = CotidalSource(source(new_topic())).reader(full_schema(headers=False))
    assert pickle.loads(pickle.dumps(reader)).partitions() == []
    planned = OffsetRange("a", b"", 0, Offset(0), Offset(1), LeaderEpoch(0))  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(planned)) == planned
