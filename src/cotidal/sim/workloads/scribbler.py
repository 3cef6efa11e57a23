"""Writes to and reads from scratch topics, which come and go: nobody keeps what it says.

Its records are no fact of the history. What it is there for is that topics have data, requests
parked and disk jobs under way when they are deleted, and created again under their name. Each
record names the id of the topic that it is meant for: it must not turn up in a namesake.
"""

from __future__ import annotations

from typing import Final

from cotidal.invariants import TOPICS_STAY_APART
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from cotidal.messages.rpc.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from cotidal.sim import probes as seen
from cotidal.sim.probes import Probes
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.client import Client
from cotidal.sim.world import World
from cotidal.values import TopicPartition, Uuid
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, build_batch, read_records

PRODUCE_VERSION: Final = 13
FETCH_VERSION: Final = 13
"""By id, not by name."""
ACKS: Final = (-1, 1, 0)


class Scribbler(Client):
    def __init__(
        self, world: World, probes: Probes, topics: tuple[str, ...], *, gap_us: int
    ) -> None:
        super().__init__(world, "scribbler", topics)
        self._probes = probes
        self._gap_us = gap_us
        self._written = 0
        self._first_ids: dict[str, Uuid] = {}

    def begin(self) -> None:
        self._scribble()

    def stop(self) -> None:
        self.stopped = True

    def _scribble(self) -> None:
        if self.stopped:
            return
        self.after(self._gap_us // 2 + self.draw(self._gap_us), self._scribble)
        places = list(self.leaders)
        if not places or self.draw(8) == 0:
            self.refresh()
            return
        place = places[self.draw(len(places))]
        if self.draw(3):
            self._write(place)
        else:
            self._read(place)

    def _write(self, place: TopicPartition) -> None:
        self._written += 1
        topic_id = self.topic_ids[place.topic]
        batch = build_batch([Record(None, b"%s %d" % (topic_id.hex().encode(), self._written))])
        data = PartitionProduceData(place.partition, read_batches(batch))
        acks = ACKS[self.draw(len(ACKS))]
        request = ProduceRequest(
            acks=acks,
            timeout_ms=1_000,
            topic_data=(TopicProduceData(topic_id=topic_id, partition_data=(data,)),),
        )
        then = None if acks == 0 else self._on_answer
        self.ask(self.leaders[place].address, ApiKey.PRODUCE, PRODUCE_VERSION, request, then)

    def _read(self, place: TopicPartition) -> None:
        topic_id = self.topic_ids[place.topic]
        asked = FetchPartition(partition=place.partition, partition_max_bytes=10_000)
        request = FetchRequest(
            max_wait_ms=self.draw(300),
            min_bytes=self.draw(500),
            max_bytes=10_000,
            session_epoch=-1,
            topics=(FetchTopic(topic_id=topic_id, partitions=(asked,)),),
        )
        address = self.leaders[place].address
        self.ask(
            address,
            ApiKey.FETCH,
            FETCH_VERSION,
            request,
            lambda reply: self._on_read(place.topic, topic_id, reply),
        )

    def _on_read(self, topic: str, topic_id: Uuid, reply: FetchResponse | None) -> None:
        self._on_answer(reply)
        if reply is None:
            return
        for partition in (told for each in reply.responses for told in each.partitions):
            if partition.records is None or not partition.records.headers:
                continue
            self._look_at(topic, topic_id, bytes(partition.records.data))

    def _look_at(self, topic: str, topic_id: Uuid, data: bytes) -> None:
        if self._first_ids.setdefault(topic, topic_id) != topic_id:
            self._probes.see(seen.RECREATED)
        wanted = topic_id.hex().encode()
        for header in read_batches(data).headers:
            for record in read_records(data):
                if record.value is None or not record.value.startswith(wanted):
                    raise Violation(
                        TOPICS_STAY_APART,
                        f"'{bytes(record.value or b'').decode()}' was read from {topic}, whose id"
                        f" is {topic_id.hex()}",
                    )
            data = data[header.size_bytes :]

    def _on_answer(self, reply: object | None) -> None:
        if reply is None:
            self.leaders.clear()

    def refresh(self) -> None:
        """A topic that was created again begins at epoch 0: what is known of the old is void."""
        self.epochs.clear()
        super().refresh()
