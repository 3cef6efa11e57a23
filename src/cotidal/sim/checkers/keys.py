"""What must hold of compacted logs, which may differ in bytes from one replica to the next.

  LOG_PREFIXES_MATCH       a record at one (offset, epoch) is the same wherever it is found
  ELIGIBLE_HOLD_COMMITTED  an eligible replica holds, of every key, the newest committed record, if
                           that has a value; if it is a tombstone, itself or nothing older
  LEADER_HOLDS_ACKED       an acknowledged record is found at its offset, or a later one of its key

So a key never loses its newest value, and none returns after its tombstone has gone.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.invariants import ELIGIBLE_HOLD_COMMITTED, LEADER_HOLDS_ACKED, LOG_PREFIXES_MATCH
from cotidal.log.log import Log
from cotidal.sim import probes as seen
from cotidal.sim.checkers.ghost import Ghost, PartitionKey
from cotidal.sim.checkers.steps import StepChecker
from cotidal.sim.checkers.window import hosted_by
from cotidal.sim.probes import Probes
from cotidal.sim.process import Process
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.history import History
from cotidal.sim.world import World
from cotidal.values import Offset, TopicPartition
from cotidal.wire.batch import read_batches
from cotidal.wire.records import read_records

READ_BYTES = 1 << 20


class KeyedRecord(NamedTuple):
    offset: int
    epoch: int
    key: bytes
    value: bytes | None


Records = dict[int, KeyedRecord]


class _Truth:
    """One compacted partition, for ever."""

    __slots__ = ("checked", "committed", "newest", "written")

    def __init__(self) -> None:
        self.written: dict[tuple[int, int], KeyedRecord] = {}
        """Every record that was ever found, by offset and epoch."""
        self.committed: Records = {}
        self.newest: dict[bytes, KeyedRecord] = {}
        """Of each key, among the committed ones."""
        self.checked = 0
        """How many acknowledged records have been looked for."""


class KeyChecker:
    def __init__(
        self, world: World, ghost: Ghost, steps: StepChecker, history: History, probes: Probes
    ) -> None:
        self._world = world
        self._ghost = ghost
        self._steps = steps
        self._history = history
        self._probes = probes
        self._truths: dict[PartitionKey, _Truth] = {}
        self._read: dict[Log, tuple[tuple[object, ...], Records]] = {}
        """What each log held when it was last read, and by what it is known that it has changed."""

    def sweep(self) -> None:
        held: list[tuple[Process, TopicPartition, Records]] = []
        """Of eligible replicas."""
        logs: dict[Log, None] = {}
        for process in self._world.running:
            for partition, log in process.disk.logs():
                hosted = hosted_by(process).get(partition)
                if hosted is None or not hosted.replica.opened or not log.config.compacted:
                    continue
                logs[log] = None
                records = self._records(process, log)
                self._compare(process, partition, records)
                if self._is_eligible(process, partition):
                    held.append((process, partition, records))
        self._read = {log: read for log, read in self._read.items() if log in logs}
        for process, partition, records in held:
            self._take_committed(process, partition, records)
        for process, partition, records in held:
            self._look_at_newest(process, partition, records)
        self._look_at_acknowledged({partition: None for _, partition, _ in held})

    def _truth(self, process: Process, partition: TopicPartition) -> tuple[_Truth, int]:
        """What is known of a partition, and how far it is committed."""
        topic_id = hosted_by(process)[partition].replica.topic_id
        key = (topic_id, partition.partition)
        committed = self._ghost.partition(*key).true_high_watermark
        return self._truths.setdefault(key, _Truth()), committed

    def _records(self, process: Process, log: Log) -> Records:
        # The last epoch too: what was cut may have come again, as long as before.
        mark = (log.start_offset, log.end_offset, log.cleaned_to, log.size_bytes, *log.epochs[-1:])
        known = self._read.get(log)
        if known is not None and known[0] == mark:
            return known[1]
        with process.machine.files.unharmed():
            found = read_log(log)
        self._read[log] = (mark, found)
        return found

    def _compare(self, process: Process, partition: TopicPartition, records: Records) -> None:
        written = self._truth(process, partition)[0].written
        for record in records.values():
            known = written.setdefault((record.offset, record.epoch), record)
            if known != record:
                raise Violation(
                    LOG_PREFIXES_MATCH,
                    f"{partition} of node {process.node_id} has {record}; elsewhere it is {known}",
                )

    def _is_eligible(self, process: Process, partition: TopicPartition) -> bool:
        """In ISR or ELR in its registered incarnation, with a log that can be looked at."""
        replica = hosted_by(process)[partition].replica
        told = self._ghost.told_of(partition, replica.topic_id)
        node_id = process.node_id
        if told is None or (node_id not in told.isr and node_id not in told.elr):
            return False
        return self._steps.end_of(process.node_id, partition) is not None

    def _take_committed(
        self, process: Process, partition: TopicPartition, records: Records
    ) -> None:
        truth, committed = self._truth(process, partition)
        for record in records.values():
            if record.offset >= committed:
                break
            known = truth.committed.setdefault(record.offset, record)
            if known != record:
                raise Violation(
                    ELIGIBLE_HOLD_COMMITTED,
                    f"{partition} of node {process.node_id} has {record}; committed is {known}",
                )
            newest = truth.newest.get(record.key)
            if newest is None or newest.offset < record.offset:
                truth.newest[record.key] = record

    def _look_at_newest(
        self, process: Process, partition: TopicPartition, records: Records
    ) -> None:
        truth, _ = self._truth(process, partition)
        oldest: dict[bytes, KeyedRecord] = {}
        for record in records.values():
            oldest.setdefault(record.key, record)
        for key, newest in truth.newest.items():
            if newest.offset in records:
                continue
            if newest.value is not None:
                raise Violation(
                    ELIGIBLE_HOLD_COMMITTED,
                    f"{partition} of node {process.node_id} lacks {newest}, the newest committed"
                    " record of its key",
                )
            self._probes.see(seen.TOMBSTONE_GONE)
            if key in oldest and oldest[key].offset < newest.offset:
                raise Violation(
                    ELIGIBLE_HOLD_COMMITTED,
                    f"{partition} of node {process.node_id} has {oldest[key]}, which {newest}"
                    " deleted, and the tombstone is gone",
                )

    def _look_at_acknowledged(self, held: dict[TopicPartition, None]) -> None:
        """``held``: some node has just been found with it, and what it has is taken in."""
        for partition, acked in self._history.keyed.items():
            if partition not in held:
                continue
            topic = self._ghost.image.topics.get(partition.topic)
            key = None if topic is None else (topic.topic_id, partition.partition)
            truth = None if key is None else self._truths.get(key)
            if truth is None or key is None:
                continue
            committed = self._ghost.partition(*key).true_high_watermark
            for number in range(truth.checked, len(acked)):
                offset, (name, value) = acked[number]
                if offset >= committed:
                    break  # its commit has not been seen yet
                newest = truth.newest.get(name)
                found = truth.committed.get(offset)
                lost = newest is None or newest.offset < offset
                other = found is not None and (found.key, found.value) != (name, value)
                if (lost and value is not None) or other:
                    raise Violation(
                        LEADER_HOLDS_ACKED,
                        f"{partition} has {found} at {offset}, where {name!r}={value!r} was"
                        f" acknowledged; the newest of this key is {newest}",
                    )
                truth.checked = number + 1


def read_log(log: Log) -> Records:
    """Every record, ascending."""
    found: Records = {}
    offset = log.start_offset
    while offset < log.end_offset:
        data = log.read(offset, max_bytes=READ_BYTES, below=log.end_offset)
        position = 0
        for header in read_batches(data).headers:
            for record in read_records(data, position):
                assert record.key is not None, "a compacted topic takes none without a key"
                found[record.offset] = KeyedRecord(
                    record.offset, header.leader_epoch, record.key, record.value
                )
            position += header.size_bytes
            offset = Offset(header.next_offset)
    return found
