"""Load on a cluster: runs a client program, makes topics for it.

Two programs put the same loads on a cluster and speak alike: the generator in ``loadgen/``, built
once, and ``bench.librdkafka``.

The generator is a small Go program on franz-go; the binary lies in the cache directory under a
name made of its source's hash, so that a changed source is built again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple, assert_never

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench import usage
from bench.row import Client, Load, Row, Sample
from bench.server import Server

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = Path(__file__).parent / "loadgen"
BUILD_SECONDS_MAX: Final = 600
RUN_SECONDS_MAX: Final = 150
TOPIC_SECONDS_MAX: Final = 30

DELETION_MS: Final = 500
"""After which the files of a deleted topic go."""

NO_SETTINGS: Final[Mapping[str, str]] = {}
WIRE_ACKS: Final = {"1": "1", "all": "-1"}


class LoadFailed(Exception):
    """A load did not run to its end; one sentence."""


class Volume(NamedTuple):
    """How much of each load."""

    seconds: float
    bytes_max: int
    """Per produce load, so that a fast machine does not fill its disk."""
    latency_records: int


FULL: Final = Volume(seconds=4, bytes_max=600_000_000, latency_records=5000)
QUICK: Final = Volume(seconds=1.5, bytes_max=200_000_000, latency_records=1000)
WARMUP: Final = Volume(seconds=3, bytes_max=400_000_000, latency_records=3000)
"""Enough for the JVM to compile its hot paths: later runs do not get faster."""


def has_generator() -> bool:
    return shutil.which("go") is not None


@functools.cache
def generator() -> Path:
    """The built load generator."""
    sources = [*sorted(SOURCE.glob("*.go")), SOURCE / "go.mod", SOURCE / "go.sum"]
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cotidal"
    binary = cache / f"loadgen-{digest[:16]}"
    if not binary.exists():
        go = shutil.which("go")
        if go is None:
            raise LoadFailed("Go is not installed: the load generator cannot be built")
        print("building the load generator", file=sys.stderr)
        cache.mkdir(parents=True, exist_ok=True)
        unfinished = binary.with_suffix(f".{os.getpid()}")
        built = subprocess.run(
            [go, "build", "-trimpath", "-o", str(unfinished), "."],
            cwd=SOURCE,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS_MAX,
        )
        if built.returncode:
            raise LoadFailed(f"go build failed: {built.stderr.strip()}")
        unfinished.rename(binary)
    return binary


def client(name: Client) -> tuple[str, ...]:
    """The program that speaks for this client."""
    match name:
        case Client.FRANZ_GO:
            return (str(generator()),)
        case Client.LIBRDKAFKA:
            return (sys.executable, "-m", "bench.librdkafka")
    assert_never(name)


class Target:
    """One cluster under load: its topics, and the one that was written last."""

    __slots__ = ("_admin", "_topics", "_written", "server")

    def __init__(self, server: Server) -> None:
        self.server = server
        self._admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0})
        self._topics: list[str] = []
        self._written: tuple[str, int] = ("", 0)

    def run(self, load: Load, volume: Volume) -> dict[Row, Sample]:
        if load.reads:
            topic, records = self._written
        else:
            topic, records = self.new_topic(load.partitions), volume.latency_records
        cpu_before, begun = usage.cpu_seconds(self.server.pids()), time.monotonic()
        answer = self._generate(load, volume, topic, records)
        server_cpu = usage.cpu_seconds(self.server.pids()) - cpu_before
        server_cores = server_cpu / (time.monotonic() - begun)
        client_cores = float(answer["cpu_seconds"]) / float(answer["seconds"])
        if load.verb == "produce":
            self._written = (topic, int(answer["written"]))
        return {
            row: Sample(float(answer[field]), client_cores, server_cores)
            for row, field in load.rows
        }

    def _generate(self, load: Load, volume: Volume, topic: str, records: int) -> dict[str, float]:
        seconds = RUN_SECONDS_MAX - 30 if load.reads else volume.seconds
        command = [
            *(*client(load.client), load.verb),
            *("-bootstrap", self.server.bootstrap, "-topic", topic),
            *("-acks", WIRE_ACKS[load.acks], "-size", str(load.size_bytes)),
            *("-seconds", str(seconds), "-max-bytes", str(volume.bytes_max)),
            *("-records", str(records)),
        ]
        ended = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=RUN_SECONDS_MAX
        )
        if ended.returncode:
            raise LoadFailed(f"{self.server.name}: {load.verb}: {ended.stderr.strip()}")
        answer: dict[str, float] = json.loads(ended.stdout)
        if answer.get("failed"):
            raise LoadFailed(f"{self.server.name}: {answer['failed']:.0f} records were refused")
        return answer

    def new_topic(self, partitions: int, settings: Mapping[str, str] = NO_SETTINGS) -> str:
        """One with all its replicas in sync."""
        name = f"bench-{uuid.uuid4().hex[:8]}"
        replicas = min(3, self.server.recipe.brokers)
        config = {"file.delete.delay.ms": str(DELETION_MS), **settings}
        topic = NewTopic(name, partitions, replicas, config=config)
        self._admin.create_topics([topic])[name].result(TOPIC_SECONDS_MAX)
        self._topics.append(name)
        deadline = time.monotonic() + TOPIC_SECONDS_MAX
        while not self._is_healthy(name, partitions, replicas):
            if time.monotonic() > deadline:
                raise LoadFailed(f"{self.server.name}: topic {name} never had all its replicas")
            time.sleep(0.05)
        return name

    def _is_healthy(self, name: str, partitions: int, replicas: int) -> bool:
        found = self._admin.list_topics(name, timeout=5).topics[name].partitions.values()
        return len(found) == partitions and all(
            partition.leader >= 0 and len(partition.isrs) == replicas for partition in found
        )

    def drop_topics(self) -> None:
        """And wait until their files are gone: space and memory come back."""
        if self._topics:
            for done in self._admin.delete_topics(self._topics).values():
                done.result(TOPIC_SECONDS_MAX)
            self._topics.clear()
            time.sleep(2 * DELETION_MS / 1000)
