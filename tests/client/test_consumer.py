from __future__ import annotations

from typing import Any

import pytest

from cotidal.client.cluster import Cluster
from cotidal.client.consumer import Consumer
from cotidal.client.failures import BadRecord, Refused
from cotidal.errors import ErrorCode
from cotidal.messages.batch import Batches
from cotidal.messages.records.transaction import EndTxnMarker
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from cotidal.values import Offset, TopicPartition
from cotidal.wire.batch import read_batches
from cotidal.wire.records import ControlType, Record, build_batch, control_record

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def batch(*values: bytes, base_offset: int = 0) -> bytes:
    records = [Record(None, value, timestamp=1) for value in values]
    return build_batch(records, base_offset=base_offset)


def log_of(*batches: bytes, error: int = 0) -> Any:
    """A partition's leader that holds these batches, and gives those at or after the offset."""
    held = [(data, read_batches(data).headers[0]) for data in batches]

    def answer(request: Any, _version: int) -> FetchResponse:
        return FetchResponse(
            responses=tuple(
                FetchableTopicResponse(
                    topic.topic,
                    topic.topic_id,
                    tuple(
                        PartitionData(
                            asked.partition,
                            error,
                            records=read_batches(
                                b"".join(
                                    data
                                    for data, header in held
                                    if header.next_offset > asked.fetch_offset
                                )
                            ),
                        )
                        for asked in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    return answer


@pytest.fixture
def leader(scripted_broker: Any, metadata_of: Any) -> Any:
    broker = scripted_broker()
    broker.script(ApiKey.METADATA, metadata_of({1: broker}, ("orders", (1,))))
    return broker


def read(cluster: Cluster, offset: int = 0) -> tuple[list[bytes | None], dict[Any, Offset]]:
    with Consumer(cluster, {P0: Offset(offset)}) as consumer:
        return [record.value for record in consumer.poll(timeout_s=5)], consumer.positions


def test_records_come_with_their_offsets_in_order(leader: Any) -> None:
    leader.script(ApiKey.FETCH, log_of(batch(b"a", b"b"), batch(b"c", base_offset=2)))
    with Cluster(leader.bootstrap) as cluster, Consumer(cluster, {P0: Offset(0)}) as consumer:
        records = consumer.poll(timeout_s=5)
        assert [(record.offset, record.value) for record in records] == [
            (0, b"a"),
            (1, b"b"),
            (2, b"c"),
        ]
        assert consumer.positions == {P0: 3}


def test_a_batch_that_begins_before_the_position_is_cut_to_it(leader: Any) -> None:
    leader.script(ApiKey.FETCH, log_of(batch(b"a", b"b", b"c")))
    with Cluster(leader.bootstrap) as cluster:
        assert read(cluster, offset=2) == ([b"c"], {P0: 3})


def test_control_batches_are_passed_over(leader: Any) -> None:
    marker = control_record(ControlType.COMMIT, EndTxnMarker(coordinator_epoch=1))
    control = build_batch([marker], base_offset=1, control=True, transactional=True, producer_id=9)
    leader.script(ApiKey.FETCH, log_of(batch(b"a"), control))
    with Cluster(leader.bootstrap) as cluster:
        assert read(cluster) == ([b"a"], {P0: 2})


def test_every_leader_is_read(scripted_broker: Any, metadata_of: Any) -> None:
    one = scripted_broker({ApiKey.FETCH: log_of(batch(b"one"))})
    two = scripted_broker({ApiKey.FETCH: log_of(batch(b"two"))})
    for broker in (one, two):
        broker.script(ApiKey.METADATA, metadata_of({1: one, 2: two}, ("orders", (1, 2))))
    seen: set[bytes | None] = set()
    start = {P0: Offset(0), P1: Offset(0)}
    with Cluster(one.bootstrap) as cluster, Consumer(cluster, start) as consumer:
        while len(seen) < 2:
            seen |= {record.value for record in consumer.poll(timeout_s=5)}
    assert seen == {b"one", b"two"}


def test_a_fetch_that_waits_holds_up_nobody_else(leader: Any, silence: Any) -> None:
    leader.script(ApiKey.FETCH, silence)
    with Cluster(leader.bootstrap) as cluster, Consumer(cluster, {P0: Offset(0)}) as consumer:
        assert consumer.poll(timeout_s=0.01) == []
        assert cluster.metadata().cluster_id == "scripted"
        assert consumer.poll(timeout_s=0.01) == []
    assert len(leader.asked(ApiKey.FETCH)) == 1


def test_an_election_is_waited_for(leader: Any) -> None:
    moved = log_of(batch(b"a"), error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    leader.script(ApiKey.FETCH, moved, log_of(batch(b"a")))
    with Cluster(leader.bootstrap) as cluster:
        assert read(cluster) == ([b"a"], {P0: 1})
    assert len(leader.asked(ApiKey.METADATA)) == 2


def test_a_lost_connection_is_made_again(leader: Any, hang_up: Any) -> None:
    leader.script(ApiKey.FETCH, hang_up, log_of(batch(b"a")))
    with Cluster(leader.bootstrap) as cluster:
        assert read(cluster) == ([b"a"], {P0: 1})


def test_an_offset_that_is_gone_is_told(leader: Any) -> None:
    leader.script(ApiKey.FETCH, log_of(batch(b"a"), error=ErrorCode.OFFSET_OUT_OF_RANGE))
    with Cluster(leader.bootstrap) as cluster, pytest.raises(Refused) as caught:
        read(cluster)
    assert caught.value.error is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_failure_that_does_not_pass_ends_the_reading_in_time(leader: Any) -> None:
    leader.script(ApiKey.FETCH, log_of(batch(b"a"), error=ErrorCode.KAFKA_STORAGE_ERROR))
    with (
        Cluster(leader.bootstrap) as cluster,
        Consumer(cluster, {P0: Offset(0)}, timeout_s=0.2) as consumer,
        pytest.raises(Refused, match="log directory"),
    ):
        consumer.poll(timeout_s=5)


def test_damaged_bytes_are_told_with_their_place(leader: Any) -> None:
    damaged = bytearray(batch(b"abcdef"))
    damaged[-2] ^= 1

    def answer(request: Any, _version: int) -> FetchResponse:
        topic = request.topics[0]
        data = PartitionData(0, records=Batches((), bytes(damaged)))
        return FetchResponse(
            responses=(FetchableTopicResponse(topic.topic, topic.topic_id, (data,)),)
        )

    leader.script(ApiKey.FETCH, answer)
    with Cluster(leader.bootstrap) as cluster, pytest.raises(BadRecord, match="orders-0 at offset"):
        read(cluster)


def test_a_partition_that_was_dropped_is_not_asked_for(leader: Any) -> None:
    leader.script(ApiKey.FETCH, log_of(batch(b"a")))
    with Cluster(leader.bootstrap) as cluster, Consumer(cluster, {P0: Offset(0)}) as consumer:
        consumer.drop(P0)
        assert consumer.poll(timeout_s=5) == []
    assert leader.asked(ApiKey.FETCH) == []
