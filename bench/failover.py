"""``python -m bench.failover``: kill -9 of leaders, and how long until writes go on.

Three brokers, three partitions on all of them, min.insync.replicas=2, a producer with acks=all.
Every other kill strikes a node that is also the active controller; with ``--controllers``, which
puts these beside the brokers, both are killed at once. For each kill the longest time between two
acknowledgements after it, with these clients:

  quick     librdkafka with short back-offs (those of a program that cares)
  default   librdkafka as it comes
  probe     no client: both survivors are asked without a pause, until one of them appends. This is
            the cluster's part of the time above

A killed node is started again and back in the ISR before the next kill. At the end everything that
was acknowledged is read back; a record that is missing is an error, not a number.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, ElectionType, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic, TopicPartition

from bench import cotidal_cluster
from bench.server import Server, ServerFailed, serving
from cotidal.client.admin import describe_quorum
from cotidal.client.cluster import Cluster
from cotidal.client.connection import Connection
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from cotidal.values import WallMillis
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, build_batch

TOPIC: Final = "failover"
BROKERS: Final = 3
"""Each leads one partition of the topic when a kill begins."""
BEFORE: Final = 100
"""Acknowledged records before a kill."""
AFTER: Final = 100
PATIENCE_S: Final = 60
QUICK: Final[dict[str, Any]] = {
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "request.timeout.ms": 5_000,
}
CLIENTS: Final[dict[str, dict[str, Any]]] = {"quick": QUICK, "default": {}}
PROBE: Final = "probe"
PROBE_PAUSE_S: Final = 0.001


class Failed(Exception):
    """The cluster did not keep a promise, or did not come back; one sentence."""


class Gap(NamedTuple):
    """The longest time without an acknowledgement after one kill."""

    seconds: float
    with_controller: bool


class Ledger:
    """What was acknowledged, and when."""

    __slots__ = ("refused", "times", "values")

    def __init__(self) -> None:
        self.times: list[float] = []
        self.values: list[bytes] = []
        self.refused = 0

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.refused += 1
            return
        value = message.value()
        assert isinstance(value, bytes)
        self.times.append(time.monotonic())
        self.values.append(value)


def strike(
    pids: Sequence[int],
    bootstrap: str,
    topic: str,
    number: int,
    ledger: Ledger,
    settings: Mapping[str, Any],
) -> float:
    """Kill the process that leads the partition (and others) while it is written to: the longest
    silence.

    The producer is a new one: its back-off from a kill before would be measured otherwise."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "linger.ms": 0,
            "enable.idempotence": True,
            "log_level": 0,
            **settings,
        }
    )
    _write(producer, topic, number, ledger, BEFORE)
    killed = time.monotonic()
    _kill(pids)
    _write(producer, topic, number, ledger, AFTER)
    producer.flush(PATIENCE_S)
    return max(after - before for before, after in pairwise(ledger.times) if after > killed)


def _kill(pids: Sequence[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def _write(producer: Producer, topic: str, number: int, ledger: Ledger, more: int) -> None:
    """On and on, until so many more have been acknowledged."""
    wanted = len(ledger.values) + more
    deadline = time.monotonic() + PATIENCE_S
    while len(ledger.values) < wanted:
        if time.monotonic() > deadline:
            raise Failed(f"no write was acknowledged for {PATIENCE_S} s")
        producer.produce(topic, os.urandom(16), partition=number, on_delivery=ledger)
        producer.poll(0.002)


def read_back(bootstrap: str, topic: str, partitions: int, wanted: set[bytes]) -> None:
    """Everything that was acknowledged is there, or Failed."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "failover",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    deadline = time.monotonic() + PATIENCE_S
    with contextlib.closing(consumer):
        while wanted and time.monotonic() < deadline:
            read = consumer.consume(5_000, 0.2)
            wanted -= {message.value() for message in read if message.error() is None}
    if wanted:
        raise Failed(f"{len(wanted)} acknowledged records are lost")


def strike_once(server: Server, topic: str) -> float:
    """Kill the leader of the topic's one partition, and miss nothing that was acknowledged."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0})
    leader = admin.list_topics(topic, timeout=10).topics[topic].partitions[0].leader
    others = [f"localhost:{port}" for n, port in enumerate(server.recipe.ports, 1) if n != leader]
    bootstrap, ledger = ",".join(others), Ledger()
    seconds = strike([server.pid_of(leader)], bootstrap, topic, 0, ledger, QUICK)
    read_back(bootstrap, topic, 1, set(ledger.values))
    return seconds


class Failover:
    __slots__ = ("_admin", "_server")

    def __init__(self, server: Server) -> None:
        self._server = server
        self._admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0, **QUICK})
        topic = NewTopic(TOPIC, BROKERS, BROKERS, config={"min.insync.replicas": "2"})
        self._admin.create_topics([topic])[TOPIC].result(30)

    def measure(self, client: str, kills: int) -> list[Gap]:
        """Kill so many leaders under the writes of this client."""
        ledger = Ledger()
        gaps = [self._kill_one(client, ledger, with_controller=bool(n % 2)) for n in range(kills)]
        if ledger.refused:
            raise Failed(f"{ledger.refused} records were refused")
        read_back(self._server.bootstrap, TOPIC, BROKERS, set(ledger.values))
        return gaps

    def _kill_one(self, client: str, ledger: Ledger, *, with_controller: bool) -> Gap:
        self._until(self._is_whole, "the killed node did not come back into the ISR")
        controller = self._controller()
        is_apart = controller > BROKERS
        number, leader = next(
            (number, partition.leader)
            for number, partition in self._partitions().items()
            if is_apart or (partition.leader == controller) is with_controller
        )
        pids = [self._server.pid_of(leader)]
        if is_apart and with_controller:
            home = cotidal_cluster.home(self._server.recipe.directory, controller)
            pids.append(int((home / "pid").read_text()))
        if client == PROBE:
            seconds = self._probe(pids, leader, number)
        else:
            seconds = strike(pids, self._server.bootstrap, TOPIC, number, ledger, CLIENTS[client])
        self._start_again()
        return Gap(seconds, with_controller)

    def _probe(self, pids: Sequence[int], leader: int, number: int) -> float:
        """From the kill until one of the others appends."""
        with Cluster(self._server.bootstrap) as cluster, contextlib.ExitStack() as stack:
            metadata = cluster.metadata((TOPIC,))
            topic = metadata.topics[0]
            others = [each.address for each in metadata.brokers if each.node_id != leader]
            connections = [stack.enter_context(Connection(address)) for address in others]
            now = WallMillis(int(time.time() * 1000))
            batch = read_batches(build_batch([Record(timestamp=now, key=None, value=b"probe")]))
            data = TopicProduceData(
                topic.name, topic.topic_id, (PartitionProduceData(number, batch),)
            )
            request = ProduceRequest(None, 1, PATIENCE_S * 1000, (data,))
            _kill(pids)
            killed = time.monotonic()
            while time.monotonic() < killed + PATIENCE_S:
                for connection in connections:
                    answer = connection.call(ApiKey.PRODUCE, request, ProduceResponse)
                    if answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE:
                        return time.monotonic() - killed
                time.sleep(PROBE_PAUSE_S)
        raise Failed(f"nobody appended for {PATIENCE_S} s")

    # The cluster

    def _partitions(self) -> dict[int, Any]:
        found: dict[int, Any] = self._admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions
        return found

    def _is_whole(self) -> bool:
        """Everybody is in sync, and each leads one partition: who leads none is given it back."""
        partitions = self._partitions().values()
        if any(len(partition.isrs) < BROKERS for partition in partitions):
            return False
        if len({partition.leader for partition in partitions} - {-1}) == BROKERS:
            return True
        with contextlib.suppress(KafkaException):
            self._admin.elect_leaders(ElectionType.PREFERRED, None).result(10)
        return False

    def _controller(self) -> int:
        with Cluster(self._server.bootstrap) as cluster:
            return describe_quorum(cluster).leader

    def _start_again(self) -> None:
        os.kill(self._server.pids()[0], signal.SIGUSR1)

    def _until(self, holds: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > deadline:
                raise Failed(otherwise)
            time.sleep(0.05)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.failover", description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="for each client (default 20)")
    parser.add_argument("--client", choices=(*CLIENTS, PROBE), help="only this one")
    parser.add_argument("--controllers", type=int, default=0, choices=(0, 3, 5), help="apart")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    clients = [asked.client] if asked.client else [*CLIENTS, PROBE]
    with tempfile.TemporaryDirectory(prefix="cotidal-failover-") as work:
        try:
            recipe = cotidal_cluster.recipe(BROKERS, Path(work), controllers=asked.controllers)
            with serving(recipe) as server:
                failover = Failover(server)
                measured = {client: failover.measure(client, asked.kills) for client in clients}
        except (Failed, ServerFailed) as failure:
            print(failure, file=sys.stderr)
            return 1
    if asked.json:
        print(
            json.dumps({name: [gap._asdict() for gap in gaps] for name, gaps in measured.items()})
        )
        return 0
    print(f"{'client':9} {'killed':18} {'kills':>5} {'median s':>9} {'worst s':>9}")
    for client, gaps in measured.items():
        for with_controller, words in ((False, "leader"), (True, "leader+controller")):
            seconds = [gap.seconds for gap in gaps if gap.with_controller is with_controller]
            if seconds:
                median, worst = statistics.median(seconds), max(seconds)
                print(f"{client:9} {words:18} {len(seconds):5} {median:9.3f} {worst:9.3f}")
    print("nothing acknowledged was lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
