"""``python -m bench.partitions``: what a thousand partitions cost a cluster of three.

created      from CreateTopics to Metadata in which every partition has all its replicas in sync
idle CPU     of all processes, nobody reading or writing
failover     kill -9 of a broker that leads a third of them, until no surviving broker's Metadata
             names a partition without a living leader
back         the killed broker started again, until it is in every ISR
replay       the metadata log of so many partitions: bytes to image, in one process
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from bench import cotidal_cluster, usage
from bench.server import Server, ServerFailed, serving
from cotidal.broker.metadata_log import decode_batch, encode_batch
from cotidal.client.admin import create_topic
from cotidal.client.cluster import Cluster
from cotidal.client.failures import ClientError
from cotidal.client.metadata import Metadata, Partition
from cotidal.core.cluster.image import Image
from cotidal.messages.records.metadata import PartitionRecord, TopicRecord
from cotidal.node.effects import MetadataBatch
from cotidal.values import LeaderEpoch, NodeId, Offset, Uuid, WallMillis

TOPIC: Final = "wide"
BROKERS: Final = 3
PATIENCE_S: Final = 120
IDLE_SECONDS: Final = 10
RECORDS_PER_BATCH: Final = 1_000
TOPIC_ID: Final = Uuid(bytes(range(16)))


class Row(NamedTuple):
    what: str
    value: float
    unit: str
    at_most: float


class Failed(Exception):
    """The cluster did not do in time what is measured; one sentence."""


def measure(server: Server, partitions: int) -> Iterator[Row]:
    with Cluster(server.bootstrap, timeout_s=PATIENCE_S) as cluster:
        begun = time.monotonic()
        create_topic(cluster, TOPIC, partitions=partitions, replication_factor=BROKERS, configs={})
        _await(lambda: _all(cluster, partitions, _is_whole), "the topic never was whole")
        yield Row(f"{partitions:,} partitions created", time.monotonic() - begun, "s", 5)
    time.sleep(2)
    used = usage.cpu_seconds(server.pids())
    time.sleep(IDLE_SECONDS)
    used = (usage.cpu_seconds(server.pids()) - used) / IDLE_SECONDS
    yield Row("idle CPU, all brokers", used, "cores", 0.25)
    victim = NodeId(1)
    survivors = ",".join(f"localhost:{port}" for port in server.recipe.ports[1:])
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(Cluster(each)) for each in survivors.split(",")]
        for other in others:
            other.metadata((TOPIC,))  # connected before the clock starts

        def has_living_leader(partition: Partition) -> bool:
            return partition.has_leader and partition.leader != victim

        os.kill(server.pid_of(victim), signal.SIGKILL)
        begun = time.monotonic()
        for other in others:
            _await(lambda: _all(other, partitions, has_living_leader), "some have no leader")  # noqa: B023 - called at once
        yield Row("failover of a third of them", time.monotonic() - begun, "s", 2)
        os.kill(server.pids()[0], signal.SIGUSR1)
        begun = time.monotonic()
        _await(lambda: _all(others[0], partitions, _is_whole), "the killed one did not come back")
        yield Row("the killed broker back in every ISR", time.monotonic() - begun, "s", 10)


def replayed(partitions: int) -> Row:
    """Read a metadata log as a starting node does."""
    written = list(_metadata_log(partitions))
    begun = time.monotonic()
    image = Image()
    for data in written:
        for record in decode_batch(data).records:
            image.replay(record)  # type: ignore[arg-type]  # those below
    seconds = time.monotonic() - begun
    assert len(image.topics[TOPIC].partitions) == partitions
    return Row(f"metadata of {partitions:,} partitions replayed", seconds, "s", 3)


def _metadata_log(partitions: int) -> Iterator[bytes]:
    replicas = (1, 2, 3)
    records = [
        TopicRecord(name=TOPIC, topic_id=TOPIC_ID),
        *(
            PartitionRecord(
                partition_id=number,
                topic_id=TOPIC_ID,
                replicas=replicas,
                isr=replicas,
                leader=1 + number % BROKERS,
                directories=(TOPIC_ID,) * BROKERS,
            )
            for number in range(partitions)
        ),
    ]
    for first in range(0, len(records), RECORDS_PER_BATCH):
        some = tuple(records[first : first + RECORDS_PER_BATCH])
        yield encode_batch(
            MetadataBatch(Offset(first), LeaderEpoch(1), some, control=False, wall=WallMillis(0))
        )


def _all(cluster: Cluster, partitions: int, holds: Callable[[Partition], bool]) -> bool:
    try:
        found: Metadata = cluster.metadata((TOPIC,))
    except ClientError:
        return False
    topic = found.topic(TOPIC)
    return (
        topic is not None
        and len(topic.partitions) == partitions
        and all(map(holds, topic.partitions))
    )


def _is_whole(partition: Partition) -> bool:
    return partition.has_leader and len(partition.isr) == BROKERS


def _await(holds: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            raise Failed(otherwise)
        time.sleep(0.02)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.partitions", description=__doc__)
    parser.add_argument("--partitions", type=int, default=1_000, help="(default 1,000)")
    parser.add_argument("--replayed", type=int, default=10_000, help="(default 10,000)")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows = [replayed(asked.replayed)]
    with tempfile.TemporaryDirectory(prefix="cotidal-partitions-") as work:
        try:
            with serving(cotidal_cluster.recipe(BROKERS, Path(work))) as server:
                rows += measure(server, asked.partitions)
        except (Failed, ServerFailed, ClientError) as failure:
            print(failure, file=sys.stderr)
            return 1
    if asked.json:
        print(json.dumps([row._asdict() for row in rows]))
        return 0
    for row in rows:
        verdict = "met" if row.value <= row.at_most else "missed"
        print(f"{row.what:44} {row.value:8.2f} {row.unit:5} <= {row.at_most:<5g} {verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
