"""What the compiled build is made for, for some seconds: the compiler looks on (hatch_build.py).

Three brokers in this process replicate records one by one, many at once and large ones; they are
read; and some simulated clusters go through faults. Needs nothing but what a broker needs.
"""

from __future__ import annotations

from typing import Final

from cotidal.client.admin import create_topic
from cotidal.client.cluster import Cluster as Client
from cotidal.client.consumer import Consumer
from cotidal.client.producer import Producer
from cotidal.sim.plans import PLANS
from cotidal.sim.run import run
from cotidal.testing.cluster import Cluster
from cotidal.values import Offset, TopicPartition

ALONE: Final = 8_000
TOGETHER: Final = 40
RUNS: Final = 8


def replicate(bootstrap: str) -> None:
    with Client(bootstrap) as client:
        create_topic(client, "exercise", partitions=1, replication_factor=3, configs={})
        for acks, records in ((-1, ALONE), (1, ALONE // 4)):
            producer = Producer(client, "exercise", acks=acks)
            for _ in range(records):
                producer.add(bytes(100))
                producer.flush()
        producer = Producer(client, "exercise")
        for size_bytes in (100, 1_000, 10_000):
            for _ in range(TOGETHER):
                for _ in range(100):
                    producer.add(bytes(size_bytes))
                producer.flush()
        records, read = ALONE + ALONE // 4 + 3 * TOGETHER * 100, 0
        with Consumer(client, {TopicPartition("exercise", 0): Offset(0)}) as consumer:
            while read < records:
                read += len(consumer.poll())


def main() -> None:
    with Cluster(3) as cluster:
        replicate(cluster.bootstrap)
    for seed in range(RUNS):
        outcome = run(seed, PLANS["brief"])
        assert outcome.broken is None, outcome


if __name__ == "__main__":
    main()
