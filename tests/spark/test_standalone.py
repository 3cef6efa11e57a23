"""Jobs on a standalone Spark cluster of two workers, one of which dies in the middle: the result
is the same. What docs/spark-cluster.md says is done here."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cotidal.client.cluster import Cluster as Client
from cotidal.testing.cluster import ProcessCluster
from tests.support.standalone_spark import Standalone
from tests.support.totals import JOB, Model, check_totals, committed, write_orders

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
pq = pytest.importorskip("pyarrow.dataset")

ORDERS = 6_000
SEEDS = 10
JOB_SECONDS_MAX = 900


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with Standalone(tmp_path_factory.mktemp("standalone")) as running:
        yield running


@pytest.fixture
def workers(standalone: Standalone) -> Standalone:
    """Both of them, whatever the test before has killed."""
    standalone.start_workers()
    return standalone


@pytest.fixture(scope="module")
def brokers() -> Iterator[ProcessCluster]:
    with ProcessCluster() as running:
        yield running


@pytest.fixture(scope="module")
def orders(brokers: ProcessCluster) -> Model:
    with Client(brokers.bootstrap) as client:
        return write_orders(client, ORDERS, random.Random(7))


def ended(workers: Standalone, driver: subprocess.Popen[bytes]) -> str:
    """What a job has said that ended well."""
    told, _ = driver.communicate(timeout=JOB_SECONDS_MAX)
    assert driver.returncode == 0, workers.said()
    return told.decode()


def pipeline(workers: Standalone, brokers: ProcessCluster, *arguments: str) -> Any:
    where = (f"--master={workers.master}", f"--bootstrap={brokers.bootstrap}")
    return workers.submit("-m", "cotidal", "pipeline", "run", *arguments, *where)


def test_an_archive_has_every_record_once(
    workers: Standalone, brokers: ProcessCluster, orders: Model, tmp_path: Path
) -> None:
    job = pipeline(workers, brokers, "archive", "orders", f"--out={tmp_path}", "--per-batch=1500")
    workers.kill_a_busy_worker(job, tasks_done=3)
    assert f"orders: {ORDERS:,} records" in ended(workers, job)
    files = [str(each) for each in (tmp_path / "batches").rglob("*.parquet")]
    kept = pq.dataset(files).to_table(columns=["partition", "offset", "key", "value"]).to_pylist()
    assert len({(row["partition"], row["offset"]) for row in kept}) == len(kept) == ORDERS
    by_customer: dict[str, list[int]] = {}
    for row in sorted(kept, key=lambda each: each["offset"]):
        by_customer.setdefault(row["key"].decode(), []).append(int(row["value"]))
    assert by_customer == orders


def test_an_audit_finds_all_replicas_alike(
    workers: Standalone, brokers: ProcessCluster, orders: Model
) -> None:
    job = pipeline(workers, brokers, "audit", "--topic=orders", "--json")
    workers.kill_a_busy_worker(job)
    told = json.loads(ended(workers, job))
    assert (told["agreed"], told["findings"]) == (True, [])
    assert [each["replicas"] for each in told["partitions"]] == [3, 3, 3]
    assert sum(each["records"] for each in told["partitions"]) == ORDERS


def test_totals_are_written_once(
    workers: Standalone, brokers: ProcessCluster, orders: Model, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    job = workers.submit(
        str(JOB),
        f"--master={workers.master}",
        f"--bootstrap={brokers.bootstrap}",
        f"--checkpoint={checkpoint}",
        "--per-batch=1500",
        "--once",
    )
    workers.kill_a_busy_worker(job, tasks_done=2)
    ended(workers, job)
    check_totals(brokers.bootstrap, orders, committed(checkpoint))


def test_a_campaign_says_what_it_says_here(workers: Standalone) -> None:
    campaign = ("-m", "cotidal", "sim", "run", "--plan=mild", f"--seeds={SEEDS}", "--json")
    job = workers.submit(*campaign, "--engine=spark", f"--master={workers.master}")
    workers.kill_a_busy_worker(job)
    there = json.loads(ended(workers, job))
    here = json.loads(ended(workers, workers.submit(*campaign)))
    assert there | {"cpu_seconds": 0} == here | {"cpu_seconds": 0}
    assert here["runs"] == SEEDS
