"""Writes to and reads from scratch topics, which come and go: nobody keeps what it says.

Its records are no fact of the history. What it is there for is that topics have data, requests
parked and disk jobs under way when they are deleted, and created again under their name.
"""

from __future__ import annotations

from typing import Final

from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.fetch import FetchPartition, FetchRequest, FetchTopic
from cotidal.messages.rpc.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from cotidal.sim.workloads.client import Client
from cotidal.sim.world import World
from cotidal.values import TopicPartition
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, build_batch

PRODUCE_VERSION: Final = 9
FETCH_VERSION: Final = 12
ACKS: Final = (-1, 1, 0)


class Scribbler(Client):
    def __init__(self, world: World, topics: tuple[str, ...], *, gap_us: int) -> None:
        super().__init__(world, "scribbler", topics)
        self._gap_us = gap_us
        self._written = 0

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
        batch = build_batch([Record(None, b"scribble %d" % self._written)])
        data = PartitionProduceData(place.partition, read_batches(batch))
        acks = ACKS[self.draw(len(ACKS))]
        request = ProduceRequest(
            acks=acks,
            timeout_ms=1_000,
            topic_data=(TopicProduceData(name=place.topic, partition_data=(data,)),),
        )
        then = None if acks == 0 else self._on_answer
        self.ask(self.leaders[place].address, ApiKey.PRODUCE, PRODUCE_VERSION, request, then)

    def _read(self, place: TopicPartition) -> None:
        asked = FetchPartition(partition=place.partition, partition_max_bytes=10_000)
        request = FetchRequest(
            max_wait_ms=self.draw(300),
            min_bytes=self.draw(500),
            max_bytes=10_000,
            session_epoch=-1,
            topics=(FetchTopic(topic=place.topic, partitions=(asked,)),),
        )
        address = self.leaders[place].address
        self.ask(address, ApiKey.FETCH, FETCH_VERSION, request, self._on_answer)

    def _on_answer(self, reply: object | None) -> None:
        if reply is None:
            self.leaders.clear()

    def refresh(self) -> None:
        """A topic that was created again begins at epoch 0: what is known of the old is void."""
        self.epochs.clear()
        super().refresh()
