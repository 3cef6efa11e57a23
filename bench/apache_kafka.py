"""Apache Kafka, fetched through Maven and run as it is: its nodes and its command-line tools.

The one place that knows Kafka's jars. They lie in ``~/.cache/cotidal/kafka-<version>`` (or where
``COTIDAL_KAFKA_DIR`` says), fetched once, never committed. Needs Java 17 and, to fetch, Maven.

  python -m bench.apache_kafka fetch
  python -m bench.apache_kafka up [--nodes 3]          until Ctrl-C
  python -m bench.apache_kafka tool kafka-topics --bootstrap-server localhost:9092 --list
"""

from __future__ import annotations

import argparse
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from bench.server import Recipe, free_ports, serving

VERSION: Final = "4.3.0"
JAVA_MAJOR_MIN: Final = 17
CLUSTER_ID: Final = "Y290aWRhbC1iZW5jaC0wMQ"

FETCH_SECONDS_MAX: Final = 600
TOOL_SECONDS_MAX: Final = 60

_DEPENDENCIES: Final = (
    ("org.apache.kafka", "kafka_2.13", VERSION),
    ("org.apache.kafka", "kafka-tools", VERSION),
    ("org.slf4j", "slf4j-simple", "1.7.36"),  # the API version that Kafka is built with
)
_STREAMS: Final = (("org.apache.kafka", "kafka-streams", VERSION),)
"""Of applications, never of a node: its jars lie apart."""

_SERVER_FLAGS: Final = (  # those of kafka-server-start.sh and kafka-run-class.sh
    "-server",
    "-Xmx1G",
    "-Xms1G",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
_TOOL_FLAGS: Final = (  # a tool lives for a second: quick to start rather than quick to run
    "-Xmx256M",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)

TOOLS: Final = {
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
}


class KafkaMissing(Exception):
    """Apache Kafka cannot be run here; says in one sentence what is missing."""


class Ended(NamedTuple):
    """How a tool ended."""

    status: int
    out: str
    err: str


def home() -> Path:
    given = os.environ.get("COTIDAL_KAFKA_DIR")
    return Path(given) if given else Path.home() / ".cache" / "cotidal" / f"kafka-{VERSION}"


@functools.cache
def require_java() -> str:
    """Path of a Java that Kafka runs on."""
    java = shutil.which("java")
    if java is None:
        raise KafkaMissing(f"Java {JAVA_MAJOR_MIN} is not installed")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60).stderr
    try:
        major = int(said.split('"')[1].split(".")[0])
    except (IndexError, ValueError):
        raise KafkaMissing("`java -version` does not say which Java it is") from None
    if major < JAVA_MAJOR_MIN:
        raise KafkaMissing(f"Kafka needs Java {JAVA_MAJOR_MIN}, and this is Java {major}")
    return java


@functools.cache
def jars() -> Path:
    """The directory of Kafka's jars, fetched the first time."""
    libs = home() / "libs"
    if not (libs / f"kafka_2.13-{VERSION}.jar").exists():
        fetch(libs, _DEPENDENCIES)
    return libs


def classpath() -> str:
    return f"{jars()}/*"


@functools.cache
def streams_classpath() -> str:
    """Kafka Streams and what it needs, fetched the first time."""
    libs = home() / "streams"
    if not (libs / f"kafka-streams-{VERSION}.jar").exists():
        fetch(libs, _STREAMS)
    return f"{libs}/*:{classpath()}"


def fetch(libs: Path, wanted: Iterable[tuple[str, str, str]], *, alone: bool = False) -> None:
    """Have Maven put these and what they need there; ``alone``: without what they need."""
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaMissing(f"Maven is not installed, and the jars are not in {libs}")
    print(f"fetching jars into {libs}", file=sys.stderr)
    libs.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=libs.parent) as work:  # two test workers may fetch at once
        (Path(work) / "pom.xml").write_text(_pom(wanted, alone=alone))
        fetched = subprocess.run(
            [maven, "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs"],
            cwd=work,
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS_MAX,
        )
        if fetched.returncode:
            raise KafkaMissing(f"Maven could not fetch jars: {fetched.stdout[-1000:]}")
        if not libs.exists():
            (Path(work) / "libs").rename(libs)


def _pom(wanted: Iterable[tuple[str, str, str]], *, alone: bool) -> str:
    nothing = "<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
    without = f"<exclusions>{nothing}</exclusions>" if alone else ""
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version>{without}</dependency>"
        for group, artifact, version in wanted
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>cotidal</groupId><artifactId>kafka-jars</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


def tool_command(name: str, *arguments: str) -> tuple[str, ...]:
    return (require_java(), *_TOOL_FLAGS, "-cp", classpath(), TOOLS[name], *arguments)


def run_tool(
    name: str, *arguments: str, typed: str = "", seconds: float = TOOL_SECONDS_MAX
) -> Ended:
    """Run one of Kafka's tools; ``typed`` is its standard input."""
    ended = subprocess.run(
        tool_command(name, *arguments), input=typed, capture_output=True, text=True, timeout=seconds
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def recipe(nodes: int, directory: Path, settings: dict[str, str] | None = None) -> Recipe:
    """A new cluster of combined nodes (broker and controller), formatted, not started.

    Brokers are numbered from 1. ``settings`` are added to every node's configuration.
    """
    ports = free_ports(2 * nodes)
    clients, controllers = ports[:nodes], ports[nodes:]
    files = []
    for index in range(nodes):
        file = directory / f"node-{index + 1}.properties"
        file.write_text(_properties(index, clients, controllers, directory, settings or {}))
        formatted = run_tool("kafka-storage", "format", "-t", CLUSTER_ID, "-c", str(file))
        if formatted.status:
            raise KafkaMissing(f"kafka-storage format failed: {formatted.out}{formatted.err}")
        files.append(file)
    return Recipe("Kafka " + VERSION, tuple(map(_node_command, files)), clients, directory)


def data_directory(directory: Path, node: int) -> Path:
    return directory / f"data-{node}"


def _node_command(file: Path) -> tuple[str, ...]:
    return (require_java(), *_SERVER_FLAGS, "-cp", classpath(), "kafka.Kafka", str(file))


def _properties(
    index: int,
    clients: tuple[int, ...],
    controllers: tuple[int, ...],
    directory: Path,
    settings: dict[str, str],
) -> str:
    nodes = len(clients)
    replicas = min(3, nodes)
    min_isr = 2 if nodes >= 3 else 1
    voters = ",".join(f"{n + 1}@localhost:{port}" for n, port in enumerate(controllers))
    values = {
        "process.roles": "broker,controller",
        "node.id": str(index + 1),
        "controller.quorum.voters": voters,
        "listeners": f"PLAINTEXT://localhost:{clients[index]},"
        f"CONTROLLER://localhost:{controllers[index]}",
        "advertised.listeners": f"PLAINTEXT://localhost:{clients[index]}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(data_directory(directory, index + 1)),
        "broker.rack": f"rack-{index + 1}",
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(min_isr),
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(min_isr),
        "group.initial.rebalance.delay.ms": "0",
    }
    return "".join(f"{key}={value}\n" for key, value in (values | settings).items())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.apache_kafka", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("fetch", help="fetch the jars")
    up = verbs.add_parser("up", help="run a cluster until Ctrl-C")
    up.add_argument("--nodes", type=int, default=1)
    tool = verbs.add_parser("tool", help="run one of Kafka's tools")
    tool.add_argument("name", choices=sorted(TOOLS))
    tool.add_argument("arguments", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    try:
        match asked.verb:
            case "fetch":
                print(jars())
            case "up":
                _up(asked.nodes)
            case _:
                command = tool_command(asked.name, *asked.arguments)
                os.execv(command[0], command)
    except KafkaMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


def _up(nodes: int) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="kafka-") as work,
        serving(recipe(nodes, Path(work))) as server,
    ):
        print(f"serving at {server.bootstrap} after {server.start_seconds:.1f} s", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    sys.exit(main())
