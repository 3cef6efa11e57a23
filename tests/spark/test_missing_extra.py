"""What is told where Spark is there and what the format needs is not, or the other way round."""

from __future__ import annotations

import runpy
import sys

import pytest

import pyspark_cotidal
from cotidal.spark import session
from cotidal.spark.failures import Unusable


def test_a_pipeline_without_spark_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "java_fault", lambda: None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(Unusable, match=r"install 'cotidal\[spark\]'"):
        session.start("test")


def test_the_format_without_arrow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cotidal.spark.source", None)
    found = runpy.run_path(pyspark_cotidal.__file__ or "")["DefaultSource"]
    assert found.name() == "cotidal"
    with pytest.raises(ModuleNotFoundError, match=r"needs .*: install cotidal\[spark\] where"):
        found({})
