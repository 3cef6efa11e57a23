"""examples/spark-pipelines, run by Spark's own `spark-pipelines`: a topic, a view, a topic."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cotidal.client.admin import create_topic
from cotidal.client.cluster import Cluster as Client
from cotidal.testing.cluster import ProcessCluster

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1500)]
pytest.importorskip("pyspark", reason="Spark is not here: make interop installs it")
pytest.importorskip("grpc", reason="the extra cotidal[pipelines] is not here: make interop has it")

PROJECT = Path(__file__).parents[2] / "examples" / "spark-pipelines"
ORDERS = 300
LARGE = 90


def run(project: Path, bootstrap: str) -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("spark-pipelines")), "run"],
        cwd=project,
        env={
            **os.environ,
            "COTIDAL_BOOTSTRAP": bootstrap,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_the_project_keeps_a_view_and_writes_large_orders_once(tmp_path: Path) -> None:
    import pyarrow.dataset as ds

    from tests.support.totals import read_committed, write_orders

    project = tmp_path / "project"
    shutil.copytree(PROJECT, project)
    spec = project / "spark-pipeline.yml"
    storage = "file:///tmp/cotidal-spark-pipelines"
    assert storage in spec.read_text()
    spec.write_text(spec.read_text().replace(storage, (tmp_path / "storage").as_uri()))
    with ProcessCluster() as cluster, Client(cluster.bootstrap) as client:
        model = write_orders(client, ORDERS, random.Random(1))
        create_topic(client, "large-orders", partitions=3, replication_factor=3, configs={})
        run(project, cluster.bootstrap)
        large = [
            (row["key"].decode(), int(row["value"]))
            for row in read_committed(cluster.bootstrap, "large-orders")
        ]
    files = [str(each) for each in project.glob("spark-warehouse/spent/*.parquet")]
    spent = {row["customer"]: row["spent"] for row in ds.dataset(files).to_table().to_pylist()}
    assert spent == {customer: sum(amounts) for customer, amounts in model.items()}
    assert sorted(large) == sorted(
        (customer, amount)
        for customer, amounts in model.items()
        for amount in amounts
        if amount >= LARGE
    )
