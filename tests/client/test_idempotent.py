from __future__ import annotations

from typing import Any

import pytest

from cotidal.client.cluster import Cluster
from cotidal.client.failures import Refused
from cotidal.client.idempotent import Encoded, IdempotentWriter
from cotidal.client.transactions import (
    Committed,
    Identity,
    begin,
    commit_within,
    end,
    new_identity,
    settled_offsets,
)
from cotidal.errors import ErrorCode
from cotidal.messages.batch import HEADER_BYTES
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from cotidal.testing.cluster import Cluster as Brokers
from cotidal.values import Offset, ProducerEpoch, ProducerId, TopicPartition
from cotidal.wire.records import Record, build_batch

P0 = TopicPartition("orders", 0)
WHO = Identity(ProducerId(7), ProducerEpoch(2))


def inside(*values: bytes) -> Encoded:
    data = build_batch([Record(None, value) for value in values])[HEADER_BYTES:]
    return Encoded(data, len(values), 0, 0)


def answering(error: ErrorCode = ErrorCode.NONE) -> Any:
    def answer(request: Any, _version: int) -> ProduceResponse:
        (topic,) = request.topic_data
        told = tuple(PartitionProduceResponse(of[0], int(error), 0) for of in topic.partition_data)
        return ProduceResponse(responses=(TopicProduceResponse(topic.name, topic.topic_id, told),))

    return answer


@pytest.fixture
def leader(scripted_broker: Any, metadata_of: Any) -> Any:
    broker = scripted_broker({ApiKey.PRODUCE: answering()})
    broker.script(ApiKey.METADATA, metadata_of({1: broker}, ("orders", (1,))))
    return broker


def sent(broker: Any) -> list[tuple[int, int, int, bool]]:
    """Producer, epoch, sequence, in a transaction?"""
    headers = [
        request.topic_data[0].partition_data[0].records.headers[0]
        for request in broker.asked(ApiKey.PRODUCE)
    ]
    return [
        (each.producer_id, each.producer_epoch, each.base_sequence, each.is_transactional)
        for each in headers
    ]


def test_batches_are_numbered_in_the_order_of_their_partition(leader: Any) -> None:
    with Cluster(leader.bootstrap) as cluster:
        writer = IdempotentWriter(cluster, WHO, transactional_id="t")
        writer.send({P0: inside(b"a", b"b")})
        writer.send({P0: inside(b"c")})
        writer.finish()
    assert sent(leader) == [(7, 2, 0, True), (7, 2, 2, True)]
    assert [request.transactional_id for request in leader.asked(ApiKey.PRODUCE)] == ["t", "t"]


@pytest.mark.parametrize(
    "then", [ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER], ids=lambda each: each.name
)
def test_a_batch_that_may_have_been_written_is_sent_again_as_it_was(
    leader: Any, then: ErrorCode
) -> None:
    retried = answering(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    leader.script(ApiKey.PRODUCE, retried, answering(then), answering())
    with Cluster(leader.bootstrap) as cluster:
        writer = IdempotentWriter(cluster, WHO)
        writer.send({P0: inside(b"a")})
        writer.send({P0: inside(b"b")})
        writer.finish()
    assert sent(leader) == [(7, 2, 0, False), (7, 2, 0, False), (7, 2, 1, False)]


def test_a_refusal_that_does_not_pass_is_raised(leader: Any) -> None:
    leader.script(ApiKey.PRODUCE, answering(ErrorCode.INVALID_PRODUCER_EPOCH))
    with Cluster(leader.bootstrap) as cluster:
        writer = IdempotentWriter(cluster, WHO)
        writer.send({P0: inside(b"a")})
        with pytest.raises(Refused) as caught:
            writer.finish()
    assert caught.value.error is ErrorCode.INVALID_PRODUCER_EPOCH
    assert len(leader.asked(ApiKey.PRODUCE)) == 1


def test_offsets_count_with_the_transaction_that_they_are_committed_in() -> None:
    from cotidal.client.admin import create_topic

    with Brokers() as brokers, Cluster(brokers.bootstrap) as cluster:
        create_topic(cluster, "orders", partitions=1, replication_factor=3, configs={})
        for offset, committed in ((5, True), (9, False)):
            who = begin(cluster, "t", timeout_ms=60_000)
            writer = IdempotentWriter(cluster, who, transactional_id="t")
            writer.send({P0: inside(b"a")})
            writer.finish()
            noted = {P0: Committed(Offset(offset), f"note {offset}")}
            commit_within(cluster, "t", who, group="g", offsets=noted)
            after = end(cluster, "t", who, committed=committed)
            assert after.epoch == who.epoch + 1
        assert settled_offsets(cluster, "g") == [Committed(Offset(5), "note 5")]
        assert settled_offsets(cluster, "nobody") == []
        again = begin(cluster, "t", timeout_ms=60_000)
        with pytest.raises(Refused):
            end(cluster, "t", after, committed=True)
        assert new_identity(cluster).producer_id != again.producer_id


def test_others_may_ask_the_leader_while_a_round_is_under_way() -> None:
    from cotidal.client.admin import create_topic

    with Brokers(1) as brokers, Cluster(brokers.bootstrap) as cluster:
        create_topic(cluster, "orders", partitions=1, replication_factor=1, configs={})
        writer = IdempotentWriter(cluster, new_identity(cluster))
        for at in range(3):
            writer.send({P0: inside(b"%d" % at)})
            assert cluster.topic("orders").partitions[0].leader == 1
        writer.finish()


def test_a_leader_that_dies_costs_no_record_and_doubles_none() -> None:
    from cotidal.client.admin import create_topic
    from cotidal.client.consumer import Consumer

    with Brokers() as brokers, Cluster(brokers.bootstrap) as cluster:
        create_topic(cluster, "orders", partitions=1, replication_factor=3, configs={})
        writer = IdempotentWriter(cluster, new_identity(cluster))
        for at in range(30):
            writer.send({P0: inside(b"%d" % at)})
            if at == 10:
                brokers.kill(cluster.topic("orders").partitions[0].leader)
        writer.finish()
        found: list[bytes | None] = []
        with Consumer(cluster, {P0: Offset(0)}) as consumer:
            while len(found) < 30:
                found += [record.value for record in consumer.poll()]
        assert found == [b"%d" % at for at in range(30)]
