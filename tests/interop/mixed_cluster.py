"""One cluster of nodes of two makes: cotidal and Apache Kafka, each a process of its own.

Every node has a server.properties, which both read, and is formatted and started by its own make.
Controllers are nodes of their own, numbered from 101; brokers from 1. Several controllers vote for
ever (controller.quorum.voters); one alone begins a quorum that can be changed (kraft.version 1).
JVMs are kept small, because several of them run on one machine.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from bench import apache_kafka
from bench.server import brokers_known_to, free_ports
from real_cluster import QUICK, until

CLUSTER: Final = "bWl4ZWQtY2x1c3Rlci0wMQ"
START_SECONDS_MAX: Final = 120
STOP_SECONDS_MAX: Final = 40
FIRST_CONTROLLER: Final = 101

_JVM: Final = ("-Xmx384M", "-Xms96M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
               "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
               "-Dorg.slf4j.simpleLogger.showDateTime=true")  # fmt: skip
_PYTHON: Final = (sys.executable, "-W", "error", "-m", "cotidal")

_SHARED: Final = {
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    "log.segment.bytes": "1048576",
}
_NO_FEATURES: Final = ("--feature", "share.version=0", "--feature", "streams.version=0")
"""Those of Kafka's features that ours do not have."""


class Make(Enum):
    COTIDAL = "cotidal"
    KAFKA = "kafka"


class Member:
    """One node: its files, and its process while it runs."""

    def __init__(self, directory: Path, number: int, make: Make, port: int) -> None:
        self.number = number
        self.make = make
        self.port = port
        self.directory = directory / f"node-{number}"
        self.data = self.directory / "data"
        self.config = self.directory / "server.properties"
        self.journal = self.directory / "journal"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_controller(self) -> bool:
        return self.number >= FIRST_CONTROLLER

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def prepare(self, settings: Mapping[str, str], *, stands_alone: bool) -> None:
        how = ("--standalone",) if stands_alone and self.is_controller else ()
        self.directory.mkdir()
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        self.config.write_text(text)
        if self.make is Make.COTIDAL:
            command = (*_PYTHON, "format", "--config", str(self.config), "--cluster-id", CLUSTER)
            done = subprocess.run((*command, *how), capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
            return
        features = _NO_FEATURES if self.is_controller else ()
        ended = apache_kafka.run_tool(
            "kafka-storage", "format", "-t", CLUSTER, "-c", str(self.config), *features, *how
        )
        assert ended.status == 0, ended.out + ended.err

    def start(self) -> None:
        assert not self.is_running
        command: tuple[str, ...] = (*_PYTHON, "broker", "--config", str(self.config))
        if self.make is Make.KAFKA:
            java = apache_kafka.require_java()
            command = (java, *_JVM, "-cp", apache_kafka.classpath(), "kafka.Kafka")
            command += (str(self.config),)
        with self.journal.open("ab") as sink:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,  # Ctrl-C reaches the tests alone
            )

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """SIGTERM, and the exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"node {self.number} is there after SIGTERM") from None

    def said(self, last_bytes: int = 6_000) -> str:
        return self.journal.read_bytes()[-last_bytes:].decode(errors="replace")

    def log_bytes(self, topic: str, partition: int) -> bytes:
        """The content of a partition, whatever the segments it is cut into."""
        segments = sorted((self.data / f"{topic}-{partition}").glob("*.log"))
        return b"".join(segment.read_bytes() for segment in segments)


class MixedCluster:
    """Nodes 1, 2, ... are brokers of these makes, 101, 102, ... controllers."""

    def __init__(
        self, directory: Path, *, brokers: tuple[Make, ...], controllers: tuple[Make, ...]
    ) -> None:
        ports = free_ports(len(brokers) + len(controllers))
        self.brokers = {
            number: Member(directory, number, make, ports[number - 1])
            for number, make in enumerate(brokers, 1)
        }
        self.controllers = {
            number: Member(directory, number, make, ports[len(brokers) + place])
            for place, (number, make) in enumerate(enumerate(controllers, FIRST_CONTROLLER))
        }
        alone = len(controllers) == 1
        quorum = self._addresses() if alone else self._voters()
        for member in self._members():
            member.prepare(_SHARED | quorum | _own(member), stands_alone=alone)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{each.port}" for each in self.brokers.values())

    def start(self) -> None:
        for member in self._members():
            member.start()
        self.until_serving(*self.brokers)

    def until_serving(self, *numbers: int) -> None:
        """Each of them names every broker that runs."""
        deadline = time.monotonic() + START_SECONDS_MAX
        for number in numbers:
            broker = self.brokers[number]
            while brokers_known_to(broker.port) < sum(
                each.is_running for each in self.brokers.values()
            ):
                for member in self._members():
                    if member._process is not None and not member.is_running:
                        assert member._process.returncode == -signal.SIGKILL, (
                            f"node {member.number} ended:\n{member.said()}"
                        )
                assert time.monotonic() < deadline, (
                    f"broker {number} does not serve:\n{broker.said()}"
                )
                time.sleep(0.1)

    def kill_all(self) -> None:
        for member in self._members():
            if member.is_running:
                member.kill()

    # As a client sees it

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, **QUICK})

    def create(self, topic: str, partitions: int = 3) -> None:
        """Asked again while a broker does not know yet who decides."""
        admin = self.admin()  # its answers end with it

        def is_created() -> bool:
            try:
                admin.create_topics([NewTopic(topic, partitions, 3)])[topic].result(30)
            except KafkaException as wrong:
                if wrong.args[0].code() != KafkaError.NOT_CONTROLLER:
                    raise
                return False
            return True

        until(is_created)

    def partitions(self, topic: str) -> dict[int, Any]:
        """Leader, replicas and ISR of each. A broker that has not heard of the topic is asked
        again."""
        found: dict[int, Any] = {}

        def is_known() -> bool:
            found.update(self.admin().list_topics(topic, timeout=20).topics[topic].partitions)
            return bool(found)

        until(is_known)
        return found

    def until_in_sync(self, topic: str) -> None:
        until(
            lambda: all(len(each.isrs) == 3 for each in self.partitions(topic).values()), seconds=60
        )

    def elect_preferred(self, topic: str) -> None:
        """Each partition is led by the first of its replicas again."""
        ended = apache_kafka.run_tool(
            "kafka-leader-election",
            *("--bootstrap-server", self.bootstrap),
            *("--election-type", "preferred", "--all-topic-partitions"),
        )
        assert ended.status == 0, ended.out + ended.err
        until(
            lambda: all(
                each.leader == each.replicas[0] for each in self.partitions(topic).values()
            ),
            seconds=60,
        )

    def topics_known_to(self, broker: Member) -> set[str]:
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{broker.port}", **QUICK})
        return set(admin.list_topics(timeout=20).topics)

    # The quorum

    def _voters(self) -> dict[str, str]:
        each = (f"{number}@127.0.0.1:{it.port}" for number, it in self.controllers.items())
        return {"controller.quorum.voters": ",".join(each)}

    def _addresses(self) -> dict[str, str]:
        each = (f"127.0.0.1:{it.port}" for it in self.controllers.values())
        return {"controller.quorum.bootstrap.servers": ",".join(each)}

    def quorum_leader(self, *, other_than: int = -1) -> int:
        """Who leads it, once somebody else does."""
        leader = -1

        def is_another() -> bool:
            nonlocal leader
            leader = int(self._quorum().get("leader", -1))
            return leader not in (-1, other_than)

        until(is_another, seconds=60)
        return leader

    def until_follows(self, number: int) -> None:
        """A controller has come back and has all that the leader has."""
        begun_ms = time.time() * 1000

        def follows() -> bool:
            return any(
                each["node"] == number and each["lag"] == 0 and each["last_fetch_ms"] > begun_ms
                for each in self._quorum().get("voters", ())
            )

        until(follows, seconds=60)

    def _quorum(self) -> dict[str, Any]:
        """As one of our brokers tells it; empty while nobody leads."""
        done = subprocess.run(
            (*_PYTHON, "quorum", "--json", "--bootstrap", self.bootstrap),
            capture_output=True,
            text=True,
            timeout=60,
        )
        return dict(json.loads(done.stdout)) if done.returncode == 0 else {}

    def _members(self) -> Iterator[Member]:
        yield from self.controllers.values()
        yield from self.brokers.values()


@contextmanager
def running(
    directory: Path, *, brokers: tuple[Make, ...], controllers: tuple[Make, ...]
) -> Iterator[MixedCluster]:
    cluster = MixedCluster(directory, brokers=brokers, controllers=controllers)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill_all()


def _own(member: Member) -> dict[str, str]:
    own = {"node.id": str(member.number), "log.dirs": str(member.data)}
    if member.is_controller:
        return own | {
            "process.roles": "controller",
            "listeners": f"CONTROLLER://127.0.0.1:{member.port}",
        }
    return own | {
        "process.roles": "broker",
        "listeners": f"PLAINTEXT://127.0.0.1:{member.port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{member.port}",
        "broker.rack": f"rack-{member.number}",
    }
