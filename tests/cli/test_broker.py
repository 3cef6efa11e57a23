"""``format`` and ``broker``: a node as server.properties describes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def properties(tmp_path: Path, data_dir: Path, port: int) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(
        "# one node\n"
        "process.roles=broker,controller\n"
        "node.id=5\n"
        f"listeners=PLAINTEXT://localhost:{port}\n"
        f"log.dirs={data_dir}\n"
    )
    return path


def test_a_formatted_directory_says_whose_it_is(offline: Any, data_dir: Path) -> None:
    cluster_id = "MkU3OEVBNTcwNTJENDM2Qg"
    outcome = offline("format", "--data", str(data_dir), "--cluster-id", cluster_id)
    assert outcome == (0, f"formatted {data_dir} for node 1 of cluster {cluster_id}\n", "")
    meta = (data_dir / "meta.properties").read_text()
    assert f"cluster.id={cluster_id}\n" in meta
    assert "node.id=1\n" in meta


def test_a_directory_is_formatted_once(offline: Any, data_dir: Path) -> None:
    assert offline("format", "--data", str(data_dir)).status == 0
    meta = (data_dir / "meta.properties").read_bytes()
    assert offline("format", "--data", str(data_dir)).status == 1
    assert offline("format", "--data", str(data_dir), "--ignore-formatted").status == 0
    assert (data_dir / "meta.properties").read_bytes() == meta


def test_all_directories_of_a_file_are_formatted_for_one_cluster(
    offline: Any, tmp_path: Path
) -> None:
    path = tmp_path / "server.properties"
    head = "node.id=5\nlisteners=PLAINTEXT://localhost:0\n"
    path.write_text(f"{head}log.dirs={tmp_path}/a,{tmp_path}/b\nmetadata.log.dir={tmp_path}/m\n")
    told = offline("format", "--config", str(path))
    assert told.out.count("formatted ") == 3
    assert offline("format", "--config", str(path)).status == 1
    path.write_text(f"{head}log.dirs={tmp_path}/a,{tmp_path}/c\nmetadata.log.dir={tmp_path}/m\n")
    more = offline("format", "--config", str(path), "--ignore-formatted")
    assert f"formatted {tmp_path}/c for node 5 of cluster" in more.out
    metas = [
        dict(line.split("=") for line in file.read_text().splitlines() if "=" in line)
        for file in tmp_path.glob("*/meta.properties")
    ]
    assert len(metas) == 4
    assert len({meta["cluster.id"] for meta in metas}) == 1
    assert len({meta["directory.id"] for meta in metas}) == 4


def test_a_wrong_cluster_id_is_refused(offline: Any, data_dir: Path) -> None:
    outcome = offline("format", "--data", str(data_dir), "--cluster-id", "mine")
    assert outcome.status == 1
    assert outcome.err.count("\n") == 1
    assert not (data_dir / "meta.properties").exists()


def test_a_broker_runs_as_its_file_says(
    offline: Any, cotidal: Any, start_process: Any, properties: Path, port: int
) -> None:
    assert "for node 5" in offline("format", "--config", str(properties)).out
    process = start_process("broker", "--config", str(properties), "--override", "num.partitions=2")
    line = process.stderr.readline()
    assert f"node 5 serving on localhost:{port}" in line
    created = cotidal("topic", "create", "t", bootstrap=f"localhost:{port}")
    assert created.out == "created topic 't': 2 partitions, 1 replica each\n"
    process.terminate()
    process.communicate(timeout=20)
    assert process.returncode == 0


@pytest.mark.parametrize("verb", ["broker", "format"])
def test_a_file_that_is_not_there_is_one_sentence_with_status_2(verb: str, offline: Any) -> None:
    outcome = offline(verb, "--config", "/nowhere/server.properties")
    assert outcome.status == 2
    assert outcome.err == "there is no file /nowhere/server.properties; name one with --config\n"


def test_a_wrong_value_is_one_sentence_with_status_2(offline: Any, properties: Path) -> None:
    outcome = offline("broker", "--config", str(properties), "--override", "node.id=five")
    assert outcome.status == 2
    assert "node.id" in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_directory_that_is_not_formatted_is_refused(cotidal: Any, properties: Path) -> None:
    outcome = cotidal("broker", "--config", str(properties), bootstrap="x")
    assert outcome.status == 1
    assert "is not formatted; run `cotidal format` for it first" in outcome.err
