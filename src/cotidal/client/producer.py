"""Writing records to one topic: gathered per partition, sent as batches, one flush at a time.

A flush sends every partition's next batch, all leaders at once, and waits for the answers before it
sends the batch after it: the order of records within a partition survives any retry. What the
cluster may accept later (an election, too few in-sync replicas) is sent again until ``timeout_s``
has passed without progress. With acks=all its batches are numbered, so that none is written twice
when an answer is lost; with less they are not, for less is promised. Where an unclean election has
cost what was written before, it goes on all the same.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from cotidal.client.backoff import Backoff
from cotidal.client.cluster import Cluster
from cotidal.client.failures import Refused
from cotidal.client.partitioner import partition_for_key
from cotidal.client.rounds import ACKS_ALL, Rounds, Sequences
from cotidal.client.transactions import new_identity
from cotidal.errors import ErrorCode
from cotidal.messages.batch import Batches
from cotidal.values import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Offset,
    TopicPartition,
    WallMillis,
)
from cotidal.wire.batch import read_batches
from cotidal.wire.compression import Compression
from cotidal.wire.records import Record, build_batch

BATCH_BYTES: Final = 512 * 1024
"""Half of Kafka's default max.message.bytes; a larger record still travels, alone."""
RECORD_OVERHEAD_BYTES: Final = 24


class Acknowledged(NamedTuple):
    """A batch that was written; ``base_offset`` is -1 with acks=0, where nobody says."""

    partition: int
    base_offset: Offset
    values: tuple[bytes | None, ...]
    """Of its records, in their order."""

    @property
    def records(self) -> int:
        return len(self.values)


class Producer:
    """``add`` records, then ``flush``: what it returns is written as ``acks`` promises."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        *,
        acks: int = ACKS_ALL,
        compression: Compression = Compression.NONE,
        partition: int | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        self._cluster = cluster
        self._name = topic
        self._acks = acks
        self._compression = compression
        self._rounds = Rounds(cluster, acks=acks, bears_loss=True, timeout_s=timeout_s)
        self._sequences: Sequences | None = None
        """From the first flush with acks=all on."""
        self._fixed = partition
        self._sticky = int.from_bytes(os.urandom(4), "big")
        self._gathered: defaultdict[int, list[Record]] = defaultdict(list)
        self.gathered_bytes = 0
        partitions = len(self._rounds.topic(topic).partitions)
        if partition is not None and not 0 <= partition < partitions:
            raise Refused(
                f"partition {partition} of '{topic}'",
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"the topic has partitions 0 to {partitions - 1}",
            )

    def add(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp: WallMillis | None = None,
    ) -> None:
        """Gather one record for the next flush."""
        when = WallMillis(int(time.time() * 1000)) if timestamp is None else timestamp
        record = Record(timestamp=when, key=key, value=value, headers=tuple(headers))
        self._gathered[self._partition_of(key)].append(record)
        self.gathered_bytes += len(key or b"") + len(value or b"") + RECORD_OVERHEAD_BYTES

    def flush(self) -> list[Acknowledged]:
        """Write all that was gathered; raises when some of it cannot be written."""
        waiting = {
            TopicPartition(self._name, partition): deque(self._runs(records))
            for partition, records in self._gathered.items()
        }
        self._gathered.clear()
        self.gathered_bytes = 0
        self._sticky += 1
        try:
            return self._write(waiting)
        except BaseException:
            self._rounds.drop()
            self._sequences = None  # those that were given up leave a gap that no leader takes
            raise

    def _write(self, waiting: dict[TopicPartition, deque[list[Record]]]) -> list[Acknowledged]:
        rounds = self._rounds
        if waiting and self._acks == ACKS_ALL and self._sequences is None:
            self._sequences = Sequences(new_identity(self._cluster))
        done: list[Acknowledged] = []
        backoff = Backoff(timeout_s=rounds.timeout_s)
        while waiting:
            for at, runs in waiting.items():
                if at not in rounds.under_way:
                    rounds.put(at, self._batch(at, runs[0]))
            rounds.send()
            written = rounds.receive()
            for at, base_offset in written.items():
                values = tuple(record.value for record in waiting[at].popleft())
                done.append(Acknowledged(at.partition, base_offset, values))
            waiting = {at: runs for at, runs in waiting.items() if runs}
            if rounds.misplaced:  # it is somebody new from now on, and the same batches follow
                rounds.misplaced.clear()
                self._sequences = Sequences(new_identity(self._cluster))
            if written:
                backoff = Backoff(timeout_s=rounds.timeout_s)
            if rounds.failure is not None:
                if not backoff.wait():
                    raise rounds.failure
                rounds.refresh()
        return done

    def _partition_of(self, key: bytes | None) -> int:
        if self._fixed is not None:
            return self._fixed
        count = len(self._rounds.topic(self._name).partitions)
        return self._sticky % count if key is None else partition_for_key(key, partitions=count)

    def _runs(self, records: list[Record]) -> list[list[Record]]:
        """Cut to the size of a batch."""
        runs: list[list[Record]] = [[]]
        size = 0
        for record in records:
            weight = len(record.key or b"") + len(record.value or b"") + RECORD_OVERHEAD_BYTES
            if runs[-1] and size + weight > BATCH_BYTES:
                runs.append([])
                size = 0
            runs[-1].append(record)
            size += weight
        return runs

    def _batch(self, at: TopicPartition, records: list[Record]) -> Batches:
        numbers = self._sequences
        return read_batches(
            build_batch(
                records,
                compression=self._compression,
                producer_id=NO_PRODUCER_ID if numbers is None else numbers.identity.producer_id,
                producer_epoch=NO_PRODUCER_EPOCH if numbers is None else numbers.identity.epoch,
                base_sequence=NO_SEQUENCE if numbers is None else numbers.take(at, len(records)),
            )
        )
