"""Our bytes against Kafka's generated classes, for every message and every version, both ways.

``tools/wire_vectors.py`` prints a sample of each in our encoding, ``java/WireVectors.java`` builds
the same value with Kafka's own classes. This also covers the versions that the Python oracle of
``tests/wire`` does not have.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench import apache_kafka

pytestmark = pytest.mark.interop

ROOT = Path(__file__).parents[2]
SOURCE = Path(__file__).parent / "java" / "WireVectors.java"

Judge = Callable[..., list[dict[str, Any]]]

API_VERSIONS_V3: dict[
    str, Any
] = {  # written by hand from the protocol: two compact strings, an empty tag section
    "name": "ApiVersionsRequest",
    "version": 3,
    "hex": "03" + b"ab".hex() + "02" + b"1".hex() + "00",
    "value": {"clientSoftwareName": "ab", "clientSoftwareVersion": "1"},
}


@pytest.fixture(scope="module")
def judge(kafka: None, tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """Give the harness its lines, get back one answer each."""
    compiler = shutil.which("javac")
    if compiler is None:
        pytest.skip("javac is not installed: a JDK is needed, not only a Java runtime")
    classes = tmp_path_factory.mktemp("classes")
    paths = ("-cp", apache_kafka.classpath(), "-d", str(classes))
    subprocess.run([compiler, "-Xlint:all,-processing", *paths, str(SOURCE)], check=True)

    def ask(lines: str, *arguments: str) -> list[dict[str, Any]]:
        ended = subprocess.run(
            [
                *(apache_kafka.require_java(), "-cp", f"{apache_kafka.classpath()}:{classes}"),
                *("WireVectors", *arguments),
            ],
            input=lines,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert ended.returncode == 0, ended.stderr
        return [json.loads(line) for line in ended.stdout.splitlines()]

    return ask


@pytest.fixture(scope="module")
def vectors() -> str:
    command = [sys.executable, str(ROOT / "tools" / "wire_vectors.py")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_judge_accepts_bytes_written_by_hand(judge: Judge) -> None:
    (answer,) = judge(json.dumps(API_VERSIONS_V3))
    assert answer == {"name": "ApiVersionsRequest", "version": 3, "fault": None}


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"hex": API_VERSIONS_V3["hex"][:-2] + "01"}, "bytes differ from byte 5"),
        ({"hex": API_VERSIONS_V3["hex"] + "00"}, "bytes differ from byte 6"),
        ({"version": 99}, "Kafka has versions 0 to 4"),
        ({"name": "NoSuchRequest"}, "Kafka has no message NoSuchRequest"),
        ({"value": {}}, "Kafka refuses the value"),
    ],
    ids=["byte", "length", "version", "name", "field"],
)
def test_judge_finds_what_is_wrong(judge: Judge, wrong: dict[str, Any], complaint: str) -> None:
    (answer,) = judge(json.dumps(API_VERSIONS_V3 | wrong))
    assert complaint in answer["fault"]


def test_every_message_and_version_has_kafkas_bytes(judge: Judge, vectors: str) -> None:
    answers = judge(vectors)
    assert len(answers) == len(vectors.splitlines()) > 0
    faults = [f"{a['name']} v{a['version']}: {a['fault']}" for a in answers if a["fault"]]
    assert not faults, f"{len(faults)} of {len(answers)} differ:\n" + "\n".join(faults)


def test_vectors_leave_no_version_out(judge: Judge, vectors: str) -> None:
    ours: dict[str, set[int]] = {}
    for line in vectors.splitlines():
        vector = json.loads(line)
        ours.setdefault(vector["name"], set()).add(vector["version"])
    missing = {
        kafkas["name"]: sorted(left_out)
        for kafkas in judge("\n".join(ours), "list")
        if (left_out := set(range(kafkas["lowest"], kafkas["highest"] + 1)) - ours[kafkas["name"]])
    }
    assert not missing
