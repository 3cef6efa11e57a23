"""The floor that a broker's latency is held against."""

from __future__ import annotations

import subprocess
import sys

from bench.load import ROOT


def test_a_record_passes_through_bare_processes() -> None:
    command = [sys.executable, "-m", "bench.bare", "--records", "50"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    latency, cpu = ended.stdout.splitlines()
    assert 5 < int(latency.split()[1]) < 1_000_000
    assert cpu.startswith("CPU of the leader ")
