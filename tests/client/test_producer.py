from __future__ import annotations

from typing import Any

import pytest

from cotidal.client.cluster import Cluster
from cotidal.client.failures import Refused, UnknownTopic
from cotidal.client.partitioner import partition_for_key
from cotidal.client.producer import BATCH_BYTES, Producer
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.init_producer_id import InitProducerIdResponse
from cotidal.messages.rpc.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from cotidal.values import NO_PRODUCER_ID, NO_SEQUENCE
from cotidal.wire.compression import Compression
from cotidal.wire.records import Record, read_records


def accepted(request: Any, _version: int, error: int = 0) -> ProduceResponse:
    return ProduceResponse(
        tuple(
            TopicProduceResponse(
                topic.name,
                topic.topic_id,
                tuple(
                    PartitionProduceResponse(of.partition_index, error, 0 if not error else -1)
                    for of in topic.partition_data
                ),
            )
            for topic in request.topic_data
        )
    )


def refusing(error: ErrorCode) -> Any:
    return lambda request, version: accepted(request, version, error)


def written(broker: Any) -> list[tuple[int, list[Record]]]:
    """Partition and records of each batch that the broker was sent, in order."""
    return [
        (of.partition_index, read_records(of.records.data))
        for request in broker.asked(ApiKey.PRODUCE)
        for topic in request.topic_data
        for of in topic.partition_data
    ]


def values(records: list[Record]) -> list[bytes | None]:
    return [record.value for record in records]


def introduced(_request: Any, _version: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=7, producer_epoch=0)


def numbers(broker: Any) -> list[tuple[int, int]]:
    """Producer and sequence of each batch, in order."""
    headers = [
        of.records.headers[0]
        for request in broker.asked(ApiKey.PRODUCE)
        for topic in request.topic_data
        for of in topic.partition_data
    ]
    return [(header.producer_id, header.base_sequence) for header in headers]


@pytest.fixture
def leader(scripted_broker: Any, metadata_of: Any) -> Any:
    broker = scripted_broker({ApiKey.PRODUCE: accepted, ApiKey.INIT_PRODUCER_ID: introduced})
    broker.script(ApiKey.METADATA, metadata_of({1: broker}, ("orders", (1, 1, 1))))
    return broker


def test_a_keyed_record_goes_where_java_would_put_it(leader: Any) -> None:
    with Cluster(leader.bootstrap) as cluster:
        producer = Producer(cluster, "orders")
        for number in range(20):
            producer.add(b"v", key=b"key%d" % number)
        producer.flush()
    for partition, records in written(leader):
        for record in records:
            assert record.key is not None
            assert partition_for_key(record.key, partitions=3) == partition


def test_records_without_a_key_stay_together_for_one_flush_and_move_on_for_the_next(
    leader: Any,
) -> None:
    with Cluster(leader.bootstrap) as cluster:
        producer = Producer(cluster, "orders")
        for _ in range(3):
            producer.add(b"a")
            producer.add(b"b")
            producer.flush()
    batches = written(leader)
    assert [values(records) for _, records in batches] == [[b"a", b"b"]] * 3
    assert sorted(partition for partition, _ in batches) == [0, 1, 2]


@pytest.mark.parametrize("compression", list(Compression))
def test_a_record_arrives_as_it_was_given(leader: Any, compression: Compression) -> None:
    with Cluster(leader.bootstrap) as cluster:
        producer = Producer(cluster, "orders", partition=1, compression=compression)
        producer.add(None, key=b"k", headers=[("h", b"x"), ("n", None)], timestamp=7)  # type: ignore[arg-type]
        [acknowledged] = producer.flush()
    assert (acknowledged.partition, acknowledged.base_offset, acknowledged.records) == (1, 0, 1)
    [(partition, [record])] = written(leader)
    assert partition == 1
    assert record == Record(b"k", None, (("h", b"x"), ("n", None)), timestamp=7, offset=0)
    [request] = leader.asked(ApiKey.PRODUCE)
    header = request.topic_data[0].partition_data[0].records.headers[0]
    assert header.compression == compression
    assert request.acks == -1


def test_many_records_are_cut_into_batches_that_keep_their_order(leader: Any) -> None:
    with Cluster(leader.bootstrap) as cluster:
        producer = Producer(cluster, "orders", partition=0)
        for number in range(30):
            producer.add(b"%02d" % number + bytes(BATCH_BYTES // 10))
        assert sum(batch.records for batch in producer.flush()) == 30
    batches = [records for _, records in written(leader)]
    assert len(batches) > 3
    numbers = [record.value[:2] for records in batches for record in records if record.value]
    assert numbers == [b"%02d" % number for number in range(30)]


def test_what_an_election_refuses_is_sent_again(leader: Any) -> None:
    leader.script(ApiKey.PRODUCE, refusing(ErrorCode.NOT_LEADER_OR_FOLLOWER), accepted)
    with Cluster(leader.bootstrap) as cluster:
        producer = Producer(cluster, "orders", partition=0)
        producer.add(b"v")
        assert len(producer.flush()) == 1
    assert [values(records) for _, records in written(leader)] == [[b"v"], [b"v"]]


def test_the_new_leader_is_found_when_the_old_one_hangs_up(
    scripted_broker: Any, metadata_of: Any, hang_up: Any
) -> None:
    old = scripted_broker({ApiKey.PRODUCE: hang_up, ApiKey.INIT_PRODUCER_ID: introduced})
    new = scripted_broker({ApiKey.PRODUCE: accepted})
    brokers = {1: old, 2: new}
    old.script(
        ApiKey.METADATA,
        metadata_of(brokers, ("orders", (1,))),
        metadata_of(brokers, ("orders", (2,))),
    )
    new.script(ApiKey.METADATA, metadata_of(brokers, ("orders", (2,))))
    with Cluster(old.bootstrap) as cluster:
        producer = Producer(cluster, "orders")
        producer.add(b"v")
        assert len(producer.flush()) == 1
    assert [values(records) for _, records in written(new)] == [[b"v"]]
    assert numbers(old) == numbers(new) == [(7, 0)]  # the new one would know it if the old had


def test_with_acks_all_every_batch_of_a_partition_has_its_number(leader: Any) -> None:
    with Cluster(leader.bootstrap) as cluster:
        producer = Producer(cluster, "orders", partition=0)
        for count in (2, 3, 1):
            for _ in range(count):
                producer.add(b"v")
            producer.flush()
    assert numbers(leader) == [(7, 0), (7, 2), (7, 5)]
    assert len(leader.asked(ApiKey.INIT_PRODUCER_ID)) == 1


def test_a_leader_that_lacks_what_was_written_before_gets_the_rest_from_somebody_new(
    leader: Any,
) -> None:
    lost = refusing(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    leader.script(ApiKey.PRODUCE, accepted, lost, accepted)
    with Cluster(leader.bootstrap) as cluster:
        producer = Producer(cluster, "orders", partition=0)
        for value in (b"a", b"b"):
            producer.add(value)
            assert len(producer.flush()) == 1
    assert [values(records) for _, records in written(leader)] == [[b"a"], [b"b"], [b"b"]]
    assert numbers(leader) == [(7, 0), (7, 1), (7, 0)]
    assert len(leader.asked(ApiKey.INIT_PRODUCER_ID)) == 2


def test_with_less_than_all_nothing_is_numbered(leader: Any) -> None:
    with Cluster(leader.bootstrap) as cluster:
        producer = Producer(cluster, "orders", partition=0, acks=1)
        producer.add(b"v")
        producer.flush()
    assert numbers(leader) == [(NO_PRODUCER_ID, NO_SEQUENCE)]
    assert not leader.asked(ApiKey.INIT_PRODUCER_ID)


def test_after_a_batch_was_given_up_it_writes_as_somebody_new(leader: Any) -> None:
    leader.script(ApiKey.PRODUCE, refusing(ErrorCode.MESSAGE_TOO_LARGE), accepted)
    with Cluster(leader.bootstrap) as cluster:
        producer = Producer(cluster, "orders", partition=0)
        producer.add(b"v")
        with pytest.raises(Refused):
            producer.flush()
        producer.add(b"w")
        producer.flush()
    assert numbers(leader) == [(7, 0), (7, 0)]
    assert len(leader.asked(ApiKey.INIT_PRODUCER_ID)) == 2


def test_what_the_cluster_never_takes_ends_with_its_reason(leader: Any) -> None:
    leader.script(ApiKey.PRODUCE, refusing(ErrorCode.NOT_ENOUGH_REPLICAS))
    with Cluster(leader.bootstrap) as cluster:
        producer = Producer(cluster, "orders", partition=0, timeout_s=0.2)
        producer.add(b"v")
        with pytest.raises(Refused, match=r"orders-0: Fewer replicas are in sync"):
            producer.flush()
    assert len(leader.asked(ApiKey.PRODUCE)) > 1


def test_what_no_retry_mends_is_raised_at_once(leader: Any) -> None:
    leader.script(ApiKey.PRODUCE, refusing(ErrorCode.MESSAGE_TOO_LARGE))
    with Cluster(leader.bootstrap) as cluster:
        producer = Producer(cluster, "orders", partition=0)
        producer.add(b"v")
        with pytest.raises(Refused, match="larger than this topic accepts"):
            producer.flush()
    assert len(leader.asked(ApiKey.PRODUCE)) == 1


def test_without_acks_nothing_is_waited_for(leader: Any, silence: Any) -> None:
    leader.script(ApiKey.PRODUCE, silence, silence, silence, accepted)
    with Cluster(leader.bootstrap) as cluster:
        producer = Producer(cluster, "orders", acks=0, partition=2)
        for _ in range(3):
            producer.add(b"v")
            [acknowledged] = producer.flush()
            assert acknowledged.base_offset == -1
        last = Producer(cluster, "orders", acks=1, partition=2)
        last.add(b"v")
        assert len(last.flush()) == 1  # the connection is in step: its next answer is to this
    assert [request.acks for request in leader.asked(ApiKey.PRODUCE)] == [0, 0, 0, 1]


def test_a_partition_that_does_not_exist_is_told_before_anything_is_sent(leader: Any) -> None:
    with Cluster(leader.bootstrap) as cluster, pytest.raises(Refused, match="partitions 0 to 2"):
        Producer(cluster, "orders", partition=3)


def test_a_topic_that_does_not_exist_is_told_before_anything_is_sent(leader: Any) -> None:
    with Cluster(leader.bootstrap) as cluster, pytest.raises(UnknownTopic):
        Producer(cluster, "nothing")
