"""A node's machine, and the file that its life is written to if somebody wants it (--trace).

What is in the file, and how it is lived again: node/recording.py. Each step is written as it is
taken, so the file of a node that is killed ends with its last one. A trace that cannot be written
any more (a full disk) ends, and the node goes on.
"""

from __future__ import annotations

import os

from cotidal.broker.driver import Machine
from cotidal.broker.journal import Journal
from cotidal.broker.storage import StorageError
from cotidal.core.machine import Entropy
from cotidal.node.coordinators import CoordinatorLog
from cotidal.node.node import Node
from cotidal.node.recording import RecordedNode, World
from cotidal.node.state import NodeConfig
from cotidal.wire.coordinator_batch import (
    encode_coordinator_batch,
    encode_marker,
    read_coordinator_log,
)
from cotidal.wire.inspection import inspected
from cotidal.wire.metadata_batch import read_metadata_batches
from cotidal.wire.records import values_batch


def make_node(config: NodeConfig, trace: str | None, journal: Journal) -> tuple[Node, Machine]:
    """The node, and what is to be stepped in its place. ``trace``: the file, which is made anew;
    None: nobody wants one."""
    seed = int.from_bytes(os.urandom(8), "big")
    world = World(
        read_metadata_batches,
        inspected,
        CoordinatorLog(encode_coordinator_batch, read_coordinator_log, encode_marker),
        values_batch,
    )
    if trace is None:
        node = Node(config, Entropy(seed), *world)
        return node, node
    recorded = RecordedNode(config, seed, world, TraceFile(trace, journal).write)
    return recorded.node, recorded


def trace_file(directory: str | None, node_id: int, life: int) -> str | None:
    """Where a local cluster's node is recorded, from one start to its end."""
    return None if directory is None else f"{directory}/node-{node_id}-{life}.trace"


class TraceFile:
    def __init__(self, path: str, journal: Journal) -> None:
        self._path = path
        self._journal = journal
        try:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            self._file = open(path, "w", encoding="ascii")  # noqa: SIM115 (as long as the node)
        except OSError as wrong:
            raise StorageError(f"cannot write the trace {path}: {wrong.strerror}") from None

    def write(self, line: str) -> None:
        if self._file.closed:
            return
        try:
            self._file.write(line + "\n")
            self._file.flush()
        except OSError as wrong:
            self._journal.warning(f"the trace {self._path} ends here: {wrong.strerror}")
            self._file.close()
