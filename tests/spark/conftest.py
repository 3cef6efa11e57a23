"""Clusters, topics and one Spark session for the tests of src/cotidal/spark.

Most tests call readers and writers as Spark would, without Spark. Those that need a session share
it: it takes seconds to start.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cotidal.client.admin import create_topic
from cotidal.client.backoff import Backoff
from cotidal.client.cluster import Cluster as Client
from cotidal.client.failures import Refused
from cotidal.client.producer import Producer
from cotidal.errors import ErrorCode
from cotidal.testing.cluster import Cluster
from cotidal.wire.compression import Compression

if importlib.util.find_spec("pyspark") is None or importlib.util.find_spec("pyarrow") is None:
    collect_ignore_glob = ["test_*.py"]  # `make test` installs the extra

_numbers = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A session takes a minute to warm up on a busy machine."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Three brokers in this process, shared: every test makes topics of its own."""
    with Cluster() as running:
        yield running


@pytest.fixture(scope="session")
def client(cluster: Cluster) -> Iterator[Client]:
    with Client(cluster.bootstrap) as connected:
        yield connected


@pytest.fixture
def new_topic(client: Client) -> Callable[..., str]:
    def create(partitions: int = 1, **configs: str) -> str:
        name = f"topic-{next(_numbers)}"
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        backoff = Backoff(timeout_s=30)
        while True:
            try:
                create_topic(client, name, partitions=partitions, configs=settings)
                return name
            except Refused as refused:  # on a busy machine controllers are elected anew
                if refused.error is not ErrorCode.NOT_CONTROLLER or not backoff.wait():
                    raise

    return create


@pytest.fixture
def write(client: Client) -> Callable[..., None]:
    """Write values, in one batch for each call, keyed unless a partition is named."""

    def values(
        topic: str,
        written: Sequence[bytes | None],
        *,
        partition: int | None = 0,
        compression: Compression = Compression.NONE,
        **fields: Any,
    ) -> None:
        producer = Producer(client, topic, partition=partition, compression=compression)
        for value in written:
            producer.add(value, **fields)
        producer.flush()

    return values


@pytest.fixture
def source(cluster: Cluster) -> Callable[..., dict[str, str]]:
    """Options as Spark hands them over, in lower case."""

    def options(topic: str | None = None, /, **more: str) -> dict[str, str]:
        given = {"kafka.bootstrap.servers": cluster.bootstrap, **more}
        if topic is not None:
            given["subscribe"] = topic
        return {name.lower(): value for name, value in given.items()}

    return options


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java 17 or newer: install one and put it on the PATH")
    from pyspark.sql import SparkSession

    from cotidal.spark.session import spare_compiling

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spare_compiling()
    home: Path = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.local.dir", str(home / "local"))
        # A test is over before the better compiler has paid for itself.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
