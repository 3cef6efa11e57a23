"""A Spark session for a pipeline, or one sentence about what it lacks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cotidal.spark.failures import Unusable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_MIN: Final = 17
LOCAL: Final = "local[*]"
QUIET: Final = Path(__file__).with_name("log4j2.properties")
STARTUP: Final = Path(__file__).with_name("startup")
"""For the path of Spark's Python processes (startup/sitecustomize.py)."""
BRIEF: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
GET_JAVA: Final = "`apt install openjdk-17-jre-headless`, or point JAVA_HOME at one"


def start(name: str, *, master: str = LOCAL, brief: bool = False) -> SparkSession:
    """``name``: what Spark's pages call it. ``brief``: for a job of seconds, which is over before
    the better compiler has paid for itself. Unusable where Spark cannot run."""
    fault = java_fault()
    if fault is not None:
        raise Unusable(fault)
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        raise Unusable("pipelines run on Spark: install 'cotidal[spark]'") from None
    # The executors must have what we have: same Python, same packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spare_compiling()
    quiet = f"-Dlog4j2.configurationFile={QUIET.as_uri()}"
    builder = (
        SparkSession.builder.appName(name)
        .master(master)
        .config("spark.driver.extraJavaOptions", f"{quiet} {BRIEF if brief else ''}")
        .config("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
    )
    if master.startswith("local"):
        # No other machine takes part, and a laptop's name need not lead to it.
        for setting in ("spark.driver.host", "spark.driver.bindAddress"):
            builder = builder.config(setting, "127.0.0.1")
        builder = builder.config("spark.ui.enabled", "false").config(
            "spark.sql.shuffle.partitions", str(os.cpu_count() or 1)
        )
    return builder.getOrCreate()


def spare_compiling() -> None:
    """Have the Python processes of a Spark that starts from here import pyspark quickly."""
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(STARTUP) not in path:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(STARTUP), *filter(None, path)])


def java_fault() -> str | None:
    """Why Spark would not start for want of Java; None if it will."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.path.exists(java):
        where = f"there is none in JAVA_HOME ({home})" if home else "there is none"
        return f"Spark needs Java {JAVA_MIN} or newer, and {where}: {GET_JAVA}"
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    if found is None or int(found[1]) < JAVA_MIN:
        what = f"Java {found[1]}" if found else "of unknown version"
        return f"Spark needs Java {JAVA_MIN} or newer, and {java} is {what}: {GET_JAVA}"
    return None
