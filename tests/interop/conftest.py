"""Apache Kafka's own tools and classes against cotidal. Needs Java 17, and Maven the first time.

``COTIDAL_INTEROP_SERVER=kafka`` runs the same tests against an Apache Kafka node instead: the check
that a test asks for what Kafka does, and not for what we think it does.

Suites of clients run against both, one after the other, and the counts are printed at the end;
``COTIDAL_CLIENT_RESULTS=1`` keeps them for the table in docs/compatibility.md.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

sys.path.insert(0, str(Path(__file__).parents[2]))  # bench/ and tools/: not part of the package
sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import client_results
from bench import apache_kafka, cotidal_cluster
from bench.server import Recipe, Server, serving
from tests.interop.mixed_cluster import Make
from tests.interop.suites import Ran, Suite, judged
from tests.interop.trios import Trio, trio

Tool = Callable[..., str]

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
SEGMENT_BYTES: Final = 1 << 20
"""The smallest that Kafka allows."""
RECORDS: Final = 4000
FIRST_TIMESTAMP: Final = 1_700_000_000_000


class Written(NamedTuple):
    """A record as a client sent it, and as it must be found again."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp: int


Writer = Callable[[str, str], tuple[Written, ...]]


def recipe(directory: Path, brokers: int = 1) -> Recipe:
    """The server under test."""
    if os.environ.get("COTIDAL_INTEROP_SERVER", "cotidal") == "kafka":
        return apache_kafka.recipe(brokers, directory)
    return cotidal_cluster.recipe(brokers, directory)


@pytest.fixture(scope="session")
def kafka() -> None:
    """Kafka's jars are here; otherwise the test is skipped and says why."""
    try:
        apache_kafka.require_java()
        apache_kafka.jars()
    except apache_kafka.KafkaMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def recipe_under_test() -> Callable[[Path], Recipe]:
    return recipe


@pytest.fixture(scope="session")
def server(kafka: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One broker of the server under test, shared by all tests of a worker."""
    with serving(recipe(tmp_path_factory.mktemp("server"))) as running:
        yield running


@pytest.fixture(scope="session")
def tool(server: Server) -> Tool:
    """Run a tool against the server; it must succeed; answers what it printed."""

    def run(name: str, *arguments: str, typed: str = "") -> str:
        where = ("--bootstrap-server", server.bootstrap)
        ended = apache_kafka.run_tool(name, *where, *arguments, typed=typed)
        assert ended.status == 0, f"{name} {arguments}:\n{ended.out}\n{ended.err}"
        return ended.out

    return run


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    """Of every broker of ``cluster``; a module that needs some has its own."""
    return {}


@pytest.fixture(scope="module", params=list(Make), ids=lambda make: make.value)
def cluster(
    kafka: None,
    request: pytest.FixtureRequest,
    settings: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Trio]:
    """Three brokers, of either make: what a suite of a client runs against."""
    with trio(request.param, tmp_path_factory.mktemp("trio"), settings) as running:
        yield running


MEASURED: Final = pytest.StashKey[list[client_results.Result]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[MEASURED] = []


@pytest.fixture
def judge(
    cluster: Trio, request: pytest.FixtureRequest
) -> Callable[[Suite, Ran, Mapping[str, str]], dict[str, str]]:
    """Keep what a suite gave; answers what failed on cotidal for a reason that is not known."""

    def keep(suite: Suite, ran: Ran, known: Mapping[str, str]) -> dict[str, str]:
        row, unknown = judged(suite, cluster.name, ran, known)
        request.config.stash[MEASURED].append(row)
        return unknown

    return keep


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    measured = config.stash[MEASURED]
    if not measured:
        return
    terminalreporter.section("clients")
    terminalreporter.write_line(client_results.told(client_results.merged((), measured)))
    if os.environ.get("COTIDAL_CLIENT_RESULTS"):
        client_results.save(client_results.merged(client_results.load(), measured))


@pytest.fixture
def topic() -> str:
    """A name that no other test uses."""
    return f"interop-{uuid.uuid4().hex[:8]}"


def _records(seed: str) -> tuple[Written, ...]:
    """Some without key, without value, with headers; text that compresses, but not to nothing."""
    draw = random.Random(seed)
    return tuple(
        Written(
            None if number % 10 == 3 else f"key-{number}".encode(),
            None if number % 100 == 7 else draw.randbytes(500).hex().encode(),
            (("trace", draw.randbytes(4)), ("empty", b"")) if number % 10 == 5 else (),
            FIRST_TIMESTAMP + number,
        )
        for number in range(RECORDS)
    )


@pytest.fixture(scope="session")
def write() -> Writer:
    """Fill a new topic of one partition and several segments, named after its codec."""

    def fill(bootstrap: str, codec: str) -> tuple[Written, ...]:
        topic = f"written-{codec}"
        settings = {"segment.bytes": str(SEGMENT_BYTES)}
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(topic, 1, 1, config=settings)])[topic].result(30)
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "compression.type": codec,
                "linger.ms": 20,
                "batch.num.messages": 50,  # many batches, many index entries
            }
        )
        failures: list[object] = []
        records = _records(codec)
        for record in records:
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                timestamp=record.timestamp,
                on_delivery=lambda error, _message: failures.append(error) if error else None,
            )
            producer.poll(0)
        assert producer.flush(60) == 0
        assert not failures
        return records

    return fill


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    """Sockets that a client has lost while brokers were killed go unnoticed: pytest would look for
    them next, and end with status 1 though every test has passed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
