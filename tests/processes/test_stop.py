"""SIGTERM: a stop in order, and a start that need not check anything."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from cotidal.log.checkpoint import CLEAN_SHUTDOWN
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


def flip_last_bit(node: RealNode) -> None:
    segment = node.log_directory(TOPIC) / "00000000000000000000.log"
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)
