"""Three real nodes that sum their metadata up: one that was away loads what the others dropped."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")
from real_cluster import RealCluster, until

OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "1500"}


def checkpoints(cluster: RealCluster, node: int) -> list[str]:
    directory = cluster.data / f"node-{node}/__cluster_metadata-0"
    return sorted(path.name for path in directory.glob("*.checkpoint"))


def log_starts(cluster: RealCluster, node: int) -> list[str]:
    directory = cluster.data / f"node-{node}/__cluster_metadata-0"
    return sorted(path.name for path in directory.glob("*.log"))


def endings(cluster: RealCluster, node: int, topic: str) -> list[str]:
    """Of the directories in which its three logs are, or were."""
    names = (path.name for path in (cluster.data / f"node-{node}").glob(f"{topic}-*"))
    return sorted(name.rpartition("-")[2] for name in names)


def test_a_node_that_was_away_loads_the_snapshot_and_puts_aside_what_was_deleted_meanwhile(
    tmp_path: Path,
) -> None:
    with RealCluster(tmp_path, settings=OFTEN) as cluster:
        cluster.create("before")
        cluster.create("gone")
        away = next(node for node in cluster.nodes if node != cluster.controller())
        cluster.kill(away)
        until(lambda: not cluster.is_running(away))
        known = checkpoints(cluster, away)
        admin = cluster.admin()  # its answers end with it
        admin.delete_topics(["gone"])["gone"].result(45)
        for number in range(25):
            cluster.create(f"while-away-{number}")
        others = [node for node in cluster.nodes if node != away]
        until(lambda: all("00000000000000000000.log" not in log_starts(cluster, n) for n in others))
        assert all(len(checkpoints(cluster, node)) <= 3 for node in others)
        cluster.start_again()
        until(lambda: cluster.is_running(away))
        until(lambda: checkpoints(cluster, away) not in (known, []))
        until(lambda: f"node {away}" in _loaded(cluster))
        cluster.until_in_sync("while-away-7")
        assert endings(cluster, away, "gone") == ["stray"] * 3
        assert endings(cluster, away, "before") == ["0", "1", "2"]
        assert cluster.stop() == 0
        # All of them start from what they summed up.
        cluster.start()
        until(lambda: len(cluster.admin().list_topics(timeout=10).topics) >= 26)
        cluster.until_in_sync("before")
        assert cluster.stop() == 0


def _loaded(cluster: RealCluster) -> str:
    lines = cluster.journal.read_text().splitlines()
    return "\n".join(line for line in lines if "loaded the metadata" in line)
