"""A consumer: reads partitions from their leaders, from the beginning, again and again.

Everything read goes into the history by offset. The consumer itself sees to it that what it is
given begins where it asked, ascends without gaps, and that a leader that has served it does not
claim later that the offset never was (CONSUMED_NEVER_CHANGES). It claims the leader epoch that it
knows, so that it is told of old leaders (KIP-320), and now and then begins again at the start.
"""

from __future__ import annotations

from typing import Final

from cotidal.errors import ErrorCode
from cotidal.invariants import CONSUMED_NEVER_CHANGES, OFFSETS_CONTIGUOUS
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from cotidal.sim.agenda import MS
from cotidal.sim.network import Address
from cotidal.sim.probes import Probes
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.client import Client
from cotidal.sim.workloads.history import History
from cotidal.sim.world import World
from cotidal.values import TopicPartition
from cotidal.wire.batch import stored_crc

VERSIONS: Final = (11, 12, 13, 16)
TOPIC_IDS_SINCE: Final = 13
BEGIN_AGAIN_ONE_IN: Final = 300


class _Place:
    """How far one partition has been read."""

    __slots__ = ("epoch", "offset")

    def __init__(self) -> None:
        self.offset = 0
        self.epoch = -1
        """Of the last batch that was read."""


class Consumer(Client):
    def __init__(
        self,
        world: World,
        name: str,
        partitions: tuple[TopicPartition, ...],
        history: History,
        probes: Probes,
        *,
        may_lose: bool,
    ) -> None:
        super().__init__(world, name, tuple(dict.fromkeys(each.topic for each in partitions)))
        self._history = history
        self._probes = probes
        self._may_lose = may_lose
        self._places = {partition: _Place() for partition in partitions}
        self._version = VERSIONS[self.draw(len(VERSIONS))]
        self._max_bytes = 200 + self.draw(20_000)
        self._wait_ms = 20 + self.draw(480)
        self._asked: dict[Address, None] = {}
        self.restless = True
        """Begins again now and then."""

    def begin(self) -> None:
        self.refresh()

    def stop(self) -> None:
        self.stopped = True

    def position(self, partition: TopicPartition) -> int:
        return self._places[partition].offset

    def on_metadata(self) -> None:
        if self.stopped:
            return
        for address in dict.fromkeys(leader.address for leader in self.leaders.values()):
            self._fetch(address)
        if len(self.leaders) < len(self._places):
            self.refresh()

    def _fetch(self, address: Address) -> None:
        """Ask one leader for all that it leads; one question to a leader at a time."""
        if address in self._asked or self.stopped:
            return
        wanted = [
            partition
            for partition in self._places
            if (leader := self.leaders.get(partition)) is not None and leader.address == address
        ]
        if not wanted:
            return
        self._asked[address] = None
        request = FetchRequest(
            max_wait_ms=self._wait_ms,
            min_bytes=1,
            max_bytes=self._max_bytes,
            session_epoch=-1,
            topics=self._topics(wanted),
        )
        offsets = {partition: self._places[partition].offset for partition in wanted}
        self.ask(
            address,
            ApiKey.FETCH,
            self._version,
            request,
            lambda reply: self._on_reply(address, offsets, reply),
        )

    def _topics(self, wanted: list[TopicPartition]) -> tuple[FetchTopic, ...]:
        by_id = self._version >= TOPIC_IDS_SINCE
        by_topic: dict[str, list[FetchPartition]] = {}
        for partition in wanted:
            place = self._places[partition]
            by_topic.setdefault(partition.topic, []).append(
                FetchPartition(
                    partition=partition.partition,
                    current_leader_epoch=self.leaders[partition].epoch,
                    fetch_offset=place.offset,
                    last_fetched_epoch=place.epoch if self._version >= 12 else -1,
                    partition_max_bytes=self._max_bytes,
                )
            )
        return tuple(
            FetchTopic(
                topic="" if by_id else name,
                topic_id=self.topic_ids[name],
                partitions=tuple(partitions),
            )
            for name, partitions in by_topic.items()
        )

    def _on_reply(
        self,
        address: Address,
        offsets: dict[TopicPartition, int],
        reply: FetchResponse | None,
    ) -> None:
        self._asked.pop(address, None)
        if reply is None:
            for partition, leader in list(self.leaders.items()):
                if leader.address == address:
                    del self.leaders[partition]
            self.refresh()
            return
        names = {topic_id: name for name, topic_id in self.topic_ids.items()}
        for topic in reply.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for told in topic.partitions:
                partition = TopicPartition(name, told.partition_index)
                if partition in offsets:
                    self._take(partition, told, offsets[partition])
        if self.restless and self.draw(BEGIN_AGAIN_ONE_IN) == 0:
            self._begin_again()
        self.after(1 + self.draw(5 * MS), self._fetch, address)

    def _begin_again(self) -> None:
        partitions = list(self._places)
        place = self._places[partitions[self.draw(len(partitions))]]
        place.offset = 0
        place.epoch = -1

    def _take(self, partition: TopicPartition, told: PartitionData, asked_offset: int) -> None:
        place = self._places[partition]
        if told.error_code:
            self._on_error(partition, place, ErrorCode(told.error_code))
            return
        if told.diverging_epoch.end_offset >= 0:
            self._on_truncated(partition, place, told.diverging_epoch.end_offset)
            return
        if told.records is None or not told.records.headers:
            return
        if told.records.fault is not None:
            raise Violation(OFFSETS_CONTIGUOUS, f"{partition}: {told.records.fault}")
        position = 0
        offset = asked_offset
        for header in told.records.headers:
            if header.base_offset > offset or header.next_offset <= offset:
                raise Violation(
                    OFFSETS_CONTIGUOUS,
                    f"{self.name} asked {partition} for {offset} and got the batch"
                    f" {header.base_offset}..{header.last_offset}",
                )
            if header.next_offset > told.high_watermark:
                raise Violation(
                    CONSUMED_NEVER_CHANGES,
                    f"{self.name} was given {header.last_offset} of {partition}, whose high"
                    f" watermark is {told.high_watermark}",
                )
            self._history.on_consumed(
                partition,
                offset=header.base_offset,
                next_offset=header.next_offset,
                crc=stored_crc(told.records.data, position),
            )
            position += header.size_bytes
            offset = header.next_offset
            place.epoch = header.leader_epoch
        place.offset = offset
        self.epochs[partition] = max(self.epochs.get(partition, -1), place.epoch)

    def _on_error(self, partition: TopicPartition, place: _Place, error: ErrorCode) -> None:
        self._probes.see(f"a fetch refused with {error.name}")
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._on_truncated(partition, place, 0)
            return
        self.leaders.pop(partition, None)
        self.refresh()

    def _on_truncated(self, partition: TopicPartition, place: _Place, end: int) -> None:
        """What was read is said not to be there: only faults that lose data may cause it."""
        if not self._may_lose and partition in self._history.consumed and place.offset > end:
            raise Violation(
                CONSUMED_NEVER_CHANGES,
                f"{self.name} has read {partition} up to {place.offset}, and is told that it ends"
                f" at {end}",
            )
        place.offset = 0
        place.epoch = -1
