"""SIGTERM: a stop in order, and a start that need not check anything."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from cotidal.client.cluster import Cluster
from cotidal.errors import ErrorCode
from cotidal.log.checkpoint import CLEAN_SHUTDOWN
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, build_batch
from real_node import RealNode, real_node
from tests.clients.confluent import Confluent
from tests.clients.speaking import Acks, Sent
from tests.processes.ledger import TOPIC, Ledger


def test_a_stop_under_load_loses_nothing_and_is_clean(tmp_path: Path) -> None:
    with real_node(tmp_path) as node:
        ledger = Ledger(node, partitions=4)
        for _ in range(3):
            statuses: list[int] = []
            stopping = threading.Timer(0.3, lambda: statuses.append(node.stop()))  # noqa: B023
            stopping.start()
            ledger.write_for(0.6, padding=200)
            stopping.join()
            assert statuses == [0]
            assert (node.data / CLEAN_SHUTDOWN).exists()
            node.start()
            assert not (node.data / CLEAN_SHUTDOWN).exists()
        ledger.settle()
        ledger.verify()
        assert node.sentences("warning") == []
        assert node.sentences("error") == []


def test_a_start_after_a_stop_checks_nothing(tmp_path: Path) -> None:
    """A flipped bit that recovery would have cut is still there after a clean stop."""
    with real_node(tmp_path) as node:
        client = Confluent(node.bootstrap)
        client.create_topic(TOPIC)
        for number in range(3):
            client.write(TOPIC, 0, [Sent(None, b"%d" % number)], codec="none", acks=Acks(-1))
        assert node.stop() == 0
        flip_last_bit(node)
        node.start()
        assert client.watermarks(TOPIC, 0) == (0, 3)
        node.restart()
        assert client.watermarks(TOPIC, 0) == (0, 2)


def test_parked_requests_do_not_delay_a_stop(tmp_path: Path) -> None:
    with real_node(tmp_path) as node:
        client = Confluent(node.bootstrap)
        client.create_topic(TOPIC)
        consumer = client.consumer()
        from confluent_kafka import TopicPartition

        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        assert consumer.poll(0.5) is None  # its fetch waits at the end of the log
        begun = time.monotonic()
        assert node.stop() == 0
        assert time.monotonic() - begun < 2
        consumer.close()
        node.start()


def test_any_of_five_batches_in_flight_is_known_after_a_stop(tmp_path: Path) -> None:
    """The snapshot that a stop writes has the last batch of each producer alone."""
    with real_node(tmp_path) as node:
        Confluent(node.bootstrap).create_topic(TOPIC)
        assert [written(node, sequence) for sequence in range(7)] == [
            (ErrorCode.NONE, offset) for offset in range(7)
        ]
        assert node.stop() == 0
        node.start()
        for sequence in (3, 2, 6, 4, 5):
            assert written(node, sequence) == (ErrorCode.NONE, sequence)
        assert written(node, 1) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert written(node, 7) == (ErrorCode.NONE, 7)


def written(node: RealNode, sequence: int) -> tuple[ErrorCode, int]:
    """The answer to one batch of an idempotent producer, over a connection of its own."""
    record = Record(b"key", b"value", timestamp=time.time_ns() // 1_000_000)
    batch = build_batch([record], producer_id=7, producer_epoch=0, base_sequence=sequence)
    with Cluster(node.bootstrap) as cluster:
        topic = cluster.topic(TOPIC)
        partition = PartitionProduceData(0, read_batches(batch))
        data = TopicProduceData(TOPIC, topic.topic_id, (partition,))
        request = ProduceRequest(acks=-1, timeout_ms=20_000, topic_data=(data,))
        told = cluster.ask(ApiKey.PRODUCE, request, ProduceResponse)
    (answer,) = told.responses[0].partition_responses
    return ErrorCode(answer.error_code), answer.base_offset


def flip_last_bit(node: RealNode) -> None:
    segment = node.log_directory(TOPIC) / "00000000000000000000.log"
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)
