"""A producer: batches at one level of acknowledgement, with retries, idempotent or not.

A batch is sent, and sent again until it is answered or given up. An idempotent producer keeps the
order of its sequences: after a failure it waits for everything in flight and sends again from the
first unanswered one; it never gives up, unless it must begin anew under another producer id, which
leaves what is unanswered unknown. A connection that is lost leaves everything on it unknown; bytes
that were on their way may arrive later, on a connection that nobody reads any more.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Final

from cotidal.errors import ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from cotidal.messages.rpc.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from cotidal.sim import probes as seen
from cotidal.sim.probes import Probes
from cotidal.sim.workloads.client import Client, Talk
from cotidal.sim.workloads.history import Acked, Fired, History
from cotidal.sim.world import World
from cotidal.values import TopicPartition
from cotidal.wire.batch import read_batches, stored_crc
from cotidal.wire.records import Record, build_batch, read_records

VERSIONS: Final = (7, 9, 11, 13)
TOPIC_IDS_SINCE: Final = 13
ATTEMPTS_MAX: Final = 6
PRODUCE_TIMEOUT_MS: Final = 2_000
TOMBSTONE_ONE_IN: Final = 6
WAITING_MAX: Final = 8
"""Batches of one partition that are not answered: more are not made."""

_ANEW: Final = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    }
)


class _Batch:
    __slots__ = ("attempts", "count", "crc", "data", "made_us", "partition", "producer_id",
                 "sequence")  # fmt: skip

    def __init__(
        self,
        partition: TopicPartition,
        data: bytes,
        *,
        made_us: int,
        count: int,
        producer_id: int,
        sequence: int,
    ) -> None:
        self.partition = partition
        self.data = data
        self.crc = stored_crc(data)
        self.made_us = made_us
        self.count = count
        self.producer_id = producer_id
        self.sequence = sequence
        self.attempts = 0


class _Line:
    """One partition's batches, in the order in which they are to be written."""

    __slots__ = ("in_flight", "next_sequence", "pending", "recovering", "waiting")

    def __init__(self) -> None:
        self.pending: deque[_Batch] = deque()
        self.in_flight: list[_Batch] = []
        self.next_sequence = 0
        self.recovering = False
        """After a failure: nothing more is sent before all in flight is answered."""
        self.waiting = False
        """Backing off."""


class Producer(Client):
    def __init__(
        self,
        world: World,
        name: str,
        partitions: tuple[TopicPartition, ...],
        history: History,
        probes: Probes,
        *,
        acks: int,
        idempotent: bool,
        gap_us: int,
        keys: int = 0,
    ) -> None:
        """``keys``: the topics are compacted, and records have one of so many keys."""
        super().__init__(world, name, tuple(dict.fromkeys(each.topic for each in partitions)))
        assert not idempotent or acks == -1
        self.acks = acks
        self.idempotent = idempotent
        self.in_flight_max = 1 + self.draw(5)
        self._version = VERSIONS[self.draw(len(VERSIONS))]
        self._history = history
        self._probes = probes
        self._gap_us = gap_us
        self._keys = keys
        self._lines = {partition: _Line() for partition in partitions}
        self._partitions = partitions
        self._numbered = 0
        self._producer_id = -1
        self._producer_epoch = -1
        self._asking_for_id = False

    # Its life

    def begin(self) -> None:
        self.refresh()
        self.after(self.draw(self._gap_us) + 1, self._produce)

    def stop(self) -> None:
        """No new batches; what is unanswered is still sent."""
        self.stopped = True

    @property
    def unanswered(self) -> int:
        return sum(len(line.pending) + len(line.in_flight) for line in self._lines.values())

    def _produce(self) -> None:
        if self.stopped:
            return
        self.after(self._gap_us // 2 + self.draw(self._gap_us) + 1, self._produce)
        if self.idempotent and self._producer_id < 0:
            self._ask_for_id()
            return
        partition = self._partitions[self.draw(len(self._partitions))]
        line = self._lines[partition]
        if len(line.pending) + len(line.in_flight) >= WAITING_MAX:
            return
        line.pending.append(self._make(partition, line))
        self._pump(partition, line)

    def _records(self) -> list[Record]:
        """Of the next batch."""
        wall = 1_700_000_000_000 + self.world.now // 1000
        records = []
        for _ in range(1 + self.draw(3)):
            self._numbered += 1
            value = b"%s.%d" % (self.name.encode(), self._numbered)
            if self.draw(16) == 0:
                value = value.ljust(500 + self.draw(1500), b".")
            records.append(self._record(value, wall))
        return records

    def _make(self, partition: TopicPartition, line: _Line) -> _Batch:
        records = self._records()
        count = len(records)
        sequence = line.next_sequence if self.idempotent else -1
        data = build_batch(
            records,
            producer_id=self._producer_id if self.idempotent else -1,
            producer_epoch=self._producer_epoch if self.idempotent else -1,
            base_sequence=sequence,
        )
        line.next_sequence += count
        self._history.sent += 1
        return _Batch(
            partition,
            data,
            made_us=self.world.now,
            count=count,
            producer_id=self._producer_id,
            sequence=sequence,
        )

    def _record(self, value: bytes, wall: int) -> Record:
        if not self._keys:
            return Record(None, value, timestamp=wall)
        key = b"%d" % self.draw(self._keys)
        return Record(key, None if self.draw(TOMBSTONE_ONE_IN) == 0 else value, timestamp=wall)

    # Sending

    def on_metadata(self) -> None:
        for partition, line in self._lines.items():
            self._pump(partition, line)

    def _pump(self, partition: TopicPartition, line: _Line) -> None:
        """Send what may be sent."""
        if line.waiting or not line.pending:
            return
        leader = self.leaders.get(partition)
        if leader is None or partition.topic not in self.topic_ids:
            self.refresh()
            return
        if line.recovering:
            if line.in_flight:
                return
            line.recovering = False
        while line.pending and len(line.in_flight) < self.in_flight_max:
            batch = line.pending.popleft()
            batch.attempts += 1
            request = self._request(batch)
            if self.acks == 0:
                self.ask(leader.address, ApiKey.PRODUCE, self._version, request, None)
                self._history.unknown += 1
                self._history.fired.append(Fired(partition, batch.crc, batch.count))
                continue
            line.in_flight.append(batch)
            self.ask(
                leader.address,
                ApiKey.PRODUCE,
                self._version,
                request,
                partial(self._on_reply, batch),
            )

    def _request(self, batch: _Batch) -> ProduceRequest:
        by_id = self._version >= TOPIC_IDS_SINCE
        topic = batch.partition.topic
        data = PartitionProduceData(batch.partition.partition, read_batches(batch.data))
        return ProduceRequest(
            acks=self.acks,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=(
                TopicProduceData(
                    name="" if by_id else topic,
                    topic_id=self.topic_ids[topic],
                    partition_data=(data,),
                ),
            ),
        )

    # Answers

    def on_talk_ended(self, talk: Talk) -> None:
        """With acks=0 this is all that a producer is ever told."""
        super().on_talk_ended(talk)
        if self.acks == 0 and not self.stopped:
            for partition, leader in list(self.leaders.items()):
                if leader.address == talk.address:
                    del self.leaders[partition]
            self.refresh()

    def _on_reply(self, batch: _Batch, reply: ProduceResponse | None) -> None:
        line = self._lines[batch.partition]
        if batch not in line.in_flight:
            return  # this producer has begun anew since
        line.in_flight.remove(batch)
        if reply is None:
            self._probes.see(seen.UNANSWERED)
            self._again(batch, line)
            return
        told = reply.responses[0].partition_responses[0]
        error = ErrorCode(told.error_code)
        if error is ErrorCode.NONE:
            if batch.attempts > 1 and self.idempotent:
                self._probes.see(seen.RETRIED)
            self._note_acked(batch, told.base_offset)
            self._pump(batch.partition, line)
        elif error in _ANEW and self.idempotent:
            # A batch behind one that failed is refused for the gap: it goes again after it.
            if not line.recovering and not any(
                each.sequence < batch.sequence for each in (*line.in_flight, *line.pending)
            ):
                self._probes.see(seen.BEGUN_ANEW)
                self._begin_anew()
            else:
                self._again(batch, line)
        else:
            self._probes.see(f"a produce refused with {error.name}")
            self._again(batch, line)

    def _note_acked(self, batch: _Batch, offset: int) -> None:
        if self._keys:
            if self.acks == -1:
                records = [(each.key or b"", each.value) for each in read_records(batch.data)]
                self._history.on_acked_keys(batch.partition, offset, tuple(records))
            return
        self._history.on_acked(
            Acked(
                batch.partition,
                offset,
                batch.crc,
                self.acks,
                self.world.now,
                batch.made_us,
                batch.count,
                len(batch.data),
            )
        )

    def _again(self, batch: _Batch, line: _Line) -> None:
        if self.idempotent:
            line.recovering = True
            after = [each for each in line.pending if each.sequence > batch.sequence]
            before = [each for each in line.pending if each.sequence < batch.sequence]
            line.pending = deque((*before, batch, *after))
        elif batch.attempts >= ATTEMPTS_MAX:
            self._history.unknown += 1
        else:
            line.pending.append(batch)
        self.leaders.pop(batch.partition, None)
        if not line.waiting:
            line.waiting = True
            self.after(self.back_off(), self._go_on, batch.partition, line)

    def _go_on(self, partition: TopicPartition, line: _Line) -> None:
        line.waiting = False
        self._pump(partition, line)

    # Producer ids

    def _begin_anew(self) -> None:
        """Another producer id: nothing that is unanswered can be sent under it without a doubt."""
        self._producer_id = -1
        for line in self._lines.values():
            self._history.unknown += len(line.pending) + len(line.in_flight)
            line.pending.clear()
            line.in_flight.clear()
            line.next_sequence = 0
            line.recovering = False

    def _ask_for_id(self) -> None:
        if not self._asking_for_id:
            self._asking_for_id = True
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            self.ask(self.anyone(), ApiKey.INIT_PRODUCER_ID, 4, request, self._on_id)

    def _on_id(self, reply: InitProducerIdResponse | None) -> None:
        self._asking_for_id = False
        if reply is not None and reply.error_code == 0:
            self._producer_id = reply.producer_id
            self._producer_epoch = reply.producer_epoch
            self._history.on_producer_id(reply.producer_id, reply.producer_epoch, self.name)
