"""Real nodes, recorded while one of them is killed: each life is lived again, step by step."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from cotidal.node.recording import replay
from cotidal.testing.cluster import ProcessCluster
from real_cluster import Writing

RECORDS = 100


def test_what_real_nodes_did_is_done_again(tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    with ProcessCluster(3, trace=traces) as cluster:
        writing = Writing(cluster.bootstrap, "orders", 0)
        writing.until_acknowledged(RECORDS)
        cluster.kill(2)
        writing.until_acknowledged(RECORDS)
        cluster.restart(2)
        writing.until_acknowledged(RECORDS)
        writing.finish()
        assert cluster.stop() == 0
    lives = sorted(path.name for path in traces.iterdir())
    assert lives == ["node-1-1.trace", "node-2-1.trace", "node-2-2.trace", "node-3-1.trace"]
    for name in lives:
        with (traces / name).open() as lines:
            found = replay(lines)
        assert found.difference is None, (name, found.difference)
        assert min(found.steps, found.effects) > 30


def test_the_command_line_lives_it_again_and_tells_the_first_difference(tmp_path: Path) -> None:
    with ProcessCluster(1, trace=tmp_path) as cluster:
        assert cluster.stop() == 0
    trace = tmp_path / "node-1-1.trace"
    told = replayed(trace)
    assert told.returncode == 0
    assert told.stdout.startswith("node 1: ")
    assert told.stdout.endswith(" effects: identical\n")
    head, _, *rest = trace.read_text().splitlines()
    trace.write_text("\n".join([head, *rest]) + "\n")  # it never started
    told = replayed(trace)
    assert told.returncode == 1
    assert "the replayed node differs from event" in told.stderr


def replayed(trace: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "cotidal", "sim", "replay", str(trace)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
