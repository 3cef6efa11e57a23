"""What a broker loads before it serves: nothing that its first requests do not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from cotidal.broker.storage import format_storage
from cotidal.log.files import OsFiles
from cotidal.values import NodeId

NOT_AT_START = (
    "importlib.metadata",  # crc32c's package, not its extension; click for --version
    "email",
    "argparse",
    "prometheus_client",
    "cramjam",
    "cotidal.client",
    "cotidal.sim",
    "cotidal.testing",
    "cotidal.api.refusing",
    "cotidal.messages.records.group",
    "cotidal.messages.rpc.create_partitions",
    "cotidal.messages.rpc.incremental_alter_configs",
    "cotidal.wire.codec.rpc",
)
"""Modules, each with all that is below it."""

PROGRAM = """
import os, signal, sys
from cotidal.broker.main import run_broker
from cotidal.broker.config import make_config
from cotidal.cli import broker, main

def on_serving(running):
    print(*sys.modules, sep="\\n")
    os.kill(os.getpid(), signal.SIGTERM)

config = make_config(
    {"node.id": "1", "listeners": "PLAINTEXT://localhost:0", "log.dirs": sys.argv[1]}
)
sys.exit(run_broker(config, on_serving=on_serving))
"""


def test_broker_serves_before_it_loads_what_only_later_requests_need(tmp_path: Path) -> None:
    format_storage(OsFiles(), str(tmp_path), node_id=NodeId(1))
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    loaded = ended.stdout.split()
    assert "cotidal.node.node" in loaded
    needless = [
        module
        for module in loaded
        for name in NOT_AT_START
        if module == name or module.startswith(name + ".")
    ]
    assert needless == []
