"""What is told where Spark cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotidal.spark import session
from cotidal.spark.failures import Unusable


def java(directory: Path, version: str) -> None:
    """A Java that only tells its version."""
    program = directory / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    program.chmod(0o755)


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_java_17_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert session.java_fault() is None


@pytest.mark.parametrize(("version", "told"), [("11.0.2", "Java 11"), ("1.8.0_302", "Java 8")])
def test_an_older_java_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, told: str
) -> None:
    java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Unusable, match=rf"needs Java 17 or newer, and .* is {told}: "):
        session.start("test")


def test_no_java_is_told_with_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unusable, match=r"there is none: `apt install openjdk-17-jre-headless`"):
        session.start("test")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Unusable, match="there is none in JAVA_HOME"):
        session.start("test")
