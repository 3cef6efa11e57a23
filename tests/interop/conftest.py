"""Apache Kafka's own tools and classes against cotidal. Needs Java 17, and Maven the first time.

``COTIDAL_INTEROP_SERVER=kafka`` runs the same tests against an Apache Kafka node instead: the check
that a test asks for what Kafka does, and not for what we think it does.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # bench/ is not part of the package

from bench import apache_kafka, cotidal_cluster
from bench.server import Recipe, Server, serving

Tool = Callable[..., str]


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


@pytest.fixture
def topic() -> str:
    """A name that no other test uses."""
    return f"interop-{uuid.uuid4().hex[:8]}"
