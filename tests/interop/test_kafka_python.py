"""kafka-python's own integration tests, from its source distribution, at RF 3.

Two support files of these tests are not in the distribution; they are needed for servers that the
tests start themselves, and stand here in their shortest form. The tests expect the settings below.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest

from tests.interop.suites import Missing, Ran, Suite, cache, fetch, run
from tests.interop.trios import Trio

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

VERSION: Final = version("kafka-python")
SETTINGS: Final = {"num.partitions": "4", "group.min.session.timeout.ms": "1000"}
SUITE_SECONDS_MAX: Final = 700
TEST_SECONDS_MAX: Final = 60

SERVICE: Final = """
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port
    def stop(self): pass
    def dump_logs(self): pass

class SpawnedService: pass
"""
THREE_REPLICAS: Final = """
def pytest_configure(config):
    from test.integration.fixtures import KafkaFixture
    make = KafkaFixture.instance
    KafkaFixture.instance = staticmethod(lambda id, **given: make(id, **{"replicas": 3} | given))
"""

NOT_HERE: Final = {
    "test_create_partitions": "places replicas on a broker 0; fails on Kafka too",
    "test_delete_records": "expects one poll to bring what three brokers lead; fails on Kafka too",
    "test_create_describe_delete_acls": "no authorizer is set; fails on Kafka too",
}  # fmt: skip


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return SETTINGS


@pytest.fixture(scope="module")
def suite_home() -> Path:
    home = cache(f"kafka-python-{VERSION}")
    try:
        if not home.exists():
            _fetch(home)
    except Missing as missing:
        pytest.skip(str(missing))
    return home


def _fetch(home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as work:
        download = ("-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:")
        fetch(
            (sys.executable, *download, f"kafka-python=={VERSION}"),
            300,
            where=Path(work),
            what="kafka-python's source",
        )
        (archive,) = Path(work).glob("*.tar.gz")
        with tarfile.open(archive) as tar:
            tar.extractall(work, filter="data")
        source = Path(work) / archive.name.removesuffix(".tar.gz")
        (source / "test" / "__init__.py").touch()
        (source / "test" / "service.py").write_text(SERVICE)
        (source / "three_replicas.py").write_text(THREE_REPLICAS)
        source.rename(home)


def run_suite(home: Path, cluster: Trio, report: Path) -> Ran:
    options = ("-p", "three_replicas", "--timeout", str(TEST_SECONDS_MAX))
    ended = run(
        (
            *(sys.executable, "-m", "pytest", "-q", "--timeout-method", "signal", *options),
            *("--junitxml", str(report), "--ignore", "test/integration/test_ssl_integration.py"),
            "test/integration",
        ),
        SUITE_SECONDS_MAX,
        where=home,
        KAFKA_URI=f"kafka://{cluster.bootstrap.split(',')[0]}",
        KAFKA_VERSION="4.3.0",
        KAFKA_ROOT=str(home),
    )
    assert report.exists(), ended.stdout[-4_000:]
    passed, skipped = [], []
    failed: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.get("name", "")
        outcomes = {child.tag: child.get("message", "") for child in case}
        if "skipped" in outcomes:
            skipped.append(name)
        elif told := outcomes.get("failure", outcomes.get("error")):
            failed[name] = told
        else:
            passed.append(name)
    return Ran(tuple(passed), failed, tuple(skipped))


def test_its_own_integration_suite(
    suite_home: Path, cluster: Trio, judge: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    ran = run_suite(suite_home, cluster, tmp_path / "report.xml")
    suite = Suite("kafka-python", VERSION, "its integration suite, without TLS and SASL, RF 3")
    assert ran.passed
    assert judge(suite, ran, NOT_HERE) == {}
