"""What must hold when all is over: the last word on what clients were told, and on the files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path

from cotidal.invariants import ACKED_IS_KEPT, IDEMPOTENT_ONCE, REPLICAS_CONVERGE
from cotidal.log.checkpoint import PARTITION_METADATA, decode_partition_metadata
from cotidal.log.files import OsFiles
from cotidal.log.log import Log, LogConfig
from cotidal.node.recording import replay
from cotidal.sim.checkers.kept import look_at_kept, lost
from cotidal.sim.checkers.mirror import Mirror
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.history import History
from cotidal.testing.cluster import ProcessCluster
from cotidal.values import TopicPartition, WallMillis
from cotidal.wire.batch import read_batches
from tests.chaos.clients import Writer

SAID_OF_FAULTS = ("Traceback (most recent call last)", "AssertionError", "fault: ")
LIVED_AGAIN = "a node is what its events make of it"
FAULT = "no node breaks a promise of its own"


Raised = Mapping[TopicPartition, Mapping[int, tuple[int, int]]]
"""Partition -> offset at which a producer goes on in another epoch -> producer and epoch."""


def look_at_records(
    history: History, final: History, writers: Iterable[Writer], raised: Raised
) -> None:
    """Nothing that was acknowledged with acks=all is lost or moved, nothing that was read has
    changed, and what an idempotent writer wrote in one epoch is there in its order, once.

    In a new epoch librdkafka sends again what has no answer yet, written or not (its issue 4953).
    Of others nobody promises an order: librdkafka sends on to a new leader while what it sent to
    the old one has no answer.
    """
    look_at_kept(history, final, lambda partition: 0)
    for writer in writers:
        if writer.acks == -1 and (gone := lost(writer.unplaced, final)):
            raise Violation(ACKED_IS_KEPT, f"{writer.name}: {gone[0]} is nowhere")
        if writer.idempotent:
            for partition, consumed in final.consumed.items():
                held = [
                    (offset, consumed[offset].crc)
                    for offset in sorted(consumed)
                    if writer.owns(consumed[offset].crc)
                ]
                begins = raised.get(partition, {})
                for (_, before), (offset, after) in pairwise(held):
                    if after <= before and offset not in begins:
                        raise Violation(
                            IDEMPOTENT_ONCE,
                            f"{writer.name}: {partition} has {after} after {before}",
                        )


def raised_epochs(log: bytes) -> dict[int, tuple[int, int]]:
    """Where a producer goes on in another epoch than the first: which one, in which epoch."""
    known: dict[int, int] = {}
    found = {}
    for header in read_batches(log).headers:
        if header.producer_id >= 0 and header.producer_epoch > known.get(header.producer_id, 0):
            known[header.producer_id] = header.producer_epoch
            found[int(header.base_offset)] = (header.producer_id, header.producer_epoch)
    return found


def look_at_logs(cluster: ProcessCluster, partitions: Iterable[TopicPartition]) -> int:
    """Every replica's log is the same, byte for byte, and well formed; how many bytes they are.

    After all nodes have stopped.
    """
    total = 0
    for partition in partitions:
        logs = {node: cluster.log(node, str(partition)) for node in cluster.nodes}
        total += sum(map(len, logs.values()))
        first, *others = logs.items()
        for node, log in others:
            if log != first[1]:
                raise Violation(
                    REPLICAS_CONVERGE,
                    f"{partition} differs between nodes {first[0]} and {node}, from byte"
                    f" {_first_difference(first[1], log)} on, of {len(first[1])} and {len(log)}",
                )
        _look_inside(cluster.data / f"node-{first[0]}" / str(partition))
    return total


def look_at_journal(cluster: ProcessCluster) -> None:
    """No node found fault with itself."""
    said = cluster.journal.read_text()
    for sign in SAID_OF_FAULTS:
        at = said.find(sign)
        if at >= 0:
            raise Violation(FAULT, said[max(0, at - 500) : at + 3_000])


def look_at_traces(directory: Path) -> int:
    """Every recorded life, lived again, is the same; how many steps they were."""
    steps = 0
    for path in sorted(directory.glob("*.trace")):
        with path.open(encoding="ascii") as lines:
            found = replay(lines)
        steps += found.steps
        if found.difference is not None:
            raise Violation(LIVED_AGAIN, f"{path.name}: {found.difference}")
    return steps


def _look_inside(directory: Path) -> None:
    """Offsets follow each other, epochs ascend, no sequence is there twice (sim's mirror)."""
    log = Log.open(
        OsFiles(),
        str(directory),
        LogConfig(),
        topic_id=decode_partition_metadata((directory / PARTITION_METADATA).read_bytes()),
        clean=True,
        now_wall=WallMillis(0),
    )
    try:
        Mirror(log, str(directory)).read_on()
    finally:
        log.close()


def _first_difference(one: bytes, other: bytes) -> int:
    pairs = zip(one, other, strict=False)
    same = next((at for at, (left, right) in enumerate(pairs) if left != right), None)
    return min(len(one), len(other)) if same is None else same
