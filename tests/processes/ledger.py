"""A producer that writes down what was acknowledged, and a reader that holds the log against it.

every record that was acknowledged is at its offset       nothing lost, nothing moved
numbers of a partition only grow                           order kept, nothing twice
"""

from __future__ import annotations

import random
import time
from typing import Final

from confluent_kafka import KafkaError, Message

from real_node import RealNode
from tests.clients.confluent import Confluent

TOPIC: Final = "ledger"
IN_FLIGHT: Final = 2_000


class Ledger:
    """Numbers, one after the other, over all partitions of a topic; acks=all, idempotent."""

    def __init__(self, node: RealNode, *, partitions: int) -> None:
        self._node = node
        self._client = Confluent(node.bootstrap)
        self._client.create_topic(TOPIC, partitions=partitions)
        self._partitions = partitions
        self._number = 0
        self.acknowledged: dict[tuple[int, int], int] = {}
        """(partition, offset) -> number."""
        self._errors: list[str] = []
        self._producer = self._client.producer(
            enable_idempotence=True,
            linger_ms=1,
            batch_num_messages=100,
            retry_backoff_ms=20,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=100,
        )

    def write_for(self, seconds: float, *, padding: int = 0) -> None:
        """Write until so much time has gone by, whatever the node does meanwhile."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            while len(self._producer) > IN_FLIGHT:
                self._producer.poll(0.005)
                if time.monotonic() > until:
                    return
            value = b"%d %s" % (self._number, b"x" * padding)
            partition = self._number % self._partitions
            self._producer.produce(TOPIC, value, partition=partition, on_delivery=self._on_delivery)
            self._number += 1

    def settle(self) -> None:
        """Wait until everything that was written is acknowledged."""
        left = self._producer.flush(30)
        assert not self._errors, self._errors[:3]
        assert left == 0
        assert len(self.acknowledged) == self._number

    def verify(self) -> None:
        """Read everything and compare."""
        got = self._client.read(TOPIC, range(self._partitions), len(self.acknowledged))
        found = {(each.partition, each.offset): number_of(each.value) for each in got}
        assert found == self.acknowledged
        for partition in range(self._partitions):
            numbers = [number_of(each.value) for each in got if each.partition == partition]
            assert numbers == sorted(set(numbers))
            assert self._client.watermarks(TOPIC, partition) == (0, len(numbers))

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._errors.append(error.str())
            return
        place = (message.partition() or 0, message.offset() or 0)
        assert place not in self.acknowledged
        self.acknowledged[place] = number_of(message.value())


def number_of(value: bytes | str | None) -> int:
    assert isinstance(value, bytes)
    return int(value.split()[0])


def moments(seed: int, count: int) -> list[float]:
    """Seconds between one fault and the next."""
    chance = random.Random(seed)
    return [chance.uniform(0.05, 0.7) for _ in range(count)]
