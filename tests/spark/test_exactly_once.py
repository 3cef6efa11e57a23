"""The job of examples/exactly_once.py, whose driver is killed with -9 again and again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cotidal.client.cluster import Cluster as Client
from cotidal.testing.cluster import ProcessCluster
from tests.support.totals import JOB, check_totals, committed, write_orders

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

KILLS = 3
ORDERS = 6_000
START_SECONDS_MAX = 400


def start(bootstrap: str, checkpoint: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(JOB), f"--bootstrap={bootstrap}", f"--checkpoint={checkpoint}"]
    with (checkpoint.parent / "job.log").open("ab") as log:
        return subprocess.Popen(
            [*command, "--per-batch=150", *more],
            stdout=log,
            stderr=log,
            env={
                **os.environ,
                "PYSPARK_PYTHON": sys.executable,
                "PYSPARK_SUBMIT_ARGS": "--conf spark.ui.enabled=false pyspark-shell",
            },
            start_new_session=True,  # so that its Java and its workers can be killed with it
        )


def test_totals_equal_the_model_though_the_driver_is_killed(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    chance = random.Random(7)
    with ProcessCluster() as cluster, Client(cluster.bootstrap) as client:
        model = write_orders(client, ORDERS, chance)
        for _ in range(KILLS):
            before = committed(checkpoint)
            job = start(cluster.bootstrap, checkpoint)
            try:
                deadline = time.monotonic() + START_SECONDS_MAX
                while committed(checkpoint) < before + 2:
                    assert job.poll() is None, (tmp_path / "job.log").read_text()[-3000:]
                    assert time.monotonic() < deadline, (tmp_path / "job.log").read_text()[-3000:]
                    time.sleep(0.02)
                time.sleep(chance.random() * 0.5)  # anywhere within a micro-batch
            finally:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()
        assert committed(checkpoint) < ORDERS // 150, "it was done before it was killed"
        last = start(cluster.bootstrap, checkpoint, "--once")
        assert last.wait(600) == 0, (tmp_path / "job.log").read_text()[-3000:]
        check_totals(cluster.bootstrap, model, committed(checkpoint))
