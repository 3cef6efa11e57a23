"""The blocks of docs/spark-tutorial.md, run one after another, print what the page says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cotidal.testing.cluster import ProcessCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
pytest.importorskip("pyspark", reason="Spark is not here: make test installs it")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spark-tutorial.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```$)?", re.S | re.M)
MARK = "---- the next block"


@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")
def test_every_block_prints_what_stands_below_it() -> None:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) > 5
    assert sum(bool(printed) for _, printed in blocks) > 3
    program = f"print({MARK!r})\n".join(code for code, _ in blocks)
    with ProcessCluster() as cluster:
        done = subprocess.run(
            [sys.executable, "-c", program.replace("localhost:9092", cluster.bootstrap)],
            capture_output=True,
            text=True,
            timeout=850,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split(f"{MARK}\n") == [printed for _, printed in blocks]
