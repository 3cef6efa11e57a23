"""Spark's Python processes import the pyspark that is installed, not its copy in a zip."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark

from cotidal.spark.session import STARTUP
from cotidal.spark.startup.sitecustomize import without_copies

PACKAGE = Path(pyspark.__file__).parent
ZIP = str(PACKAGE / "python" / "lib" / "pyspark.zip")


def test_a_copy_of_what_is_installed_is_left_out_and_another_sparks_is_not() -> None:
    other = "/opt/spark/python/lib/pyspark.zip"
    elsewhere = "/elsewhere/pyspark/python/lib/pyspark.zip"
    path = ["", ZIP, other, elsewhere, "/x/py4j.zip", str(PACKAGE.parent)]
    assert without_copies(path) == ["", other, elsewhere, "/x/py4j.zip", str(PACKAGE.parent)]


def test_a_python_leaves_it_out_and_then_does_what_it_would_have_done(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.stdout.write('customized ')\n")
    path = os.pathsep.join([ZIP, str(STARTUP), str(tmp_path)])
    program = "import sitecustomize, sys; print(sitecustomize.__file__, *sys.path)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    said, file, *found = done.stdout.split()
    assert (said, file) == ("customized", str(tmp_path / "sitecustomize.py"))
    assert not {ZIP, str(STARTUP)} & set(found)
    assert str(tmp_path) in found


def test_without_another_nothing_is_said() -> None:
    # -I would ignore the path; -S the module.
    done = subprocess.run(
        [sys.executable, "-c", "import sys; print(sys.path)"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([ZIP, str(STARTUP)])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    assert ZIP not in done.stdout


def test_an_executor_has_imported_the_installed_one(spark: Any) -> None:
    def where(_: int) -> str:
        import pyspark

        return str(pyspark.__file__)

    (found,) = spark.sparkContext.parallelize([0], 1).map(where).collect()
    assert Path(found).parent == PACKAGE
