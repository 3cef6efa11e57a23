"""A consumer: reads partitions from the beginning, again and again, from leaders or from followers.

Everything read goes into the history by offset. The consumer itself sees to it that what it is
given begins where it asked, ascends without gaps, and that a leader that has served it does not
claim later that the offset never was (CONSUMED_NEVER_CHANGES). It claims the leader epoch that it
knows, so that it is told of old leaders (KIP-320), and now and then begins again at the start.

With a rack it goes where leaders send it (KIP-392) and comes back when it is refused there. With
sessions it tells each node only what changed (KIP-227), and now and then gets an epoch wrong.
"""

from __future__ import annotations

from typing import ClassVar, Final

from cotidal.errors import ErrorCode
from cotidal.invariants import (
    CONSUMED_NEVER_CHANGES,
    OFFSETS_CONTIGUOUS,
    SESSIONS_SERVE_WHAT_IS_WANTED,
)
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from cotidal.messages.rpc.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from cotidal.sim import probes as seen
from cotidal.sim.agenda import MS
from cotidal.sim.network import Address
from cotidal.sim.probes import Probes
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.client import Client
from cotidal.sim.workloads.fetch_session import NO_SESSION, FetchSession, Told, forgotten_topics
from cotidal.sim.workloads.history import History
from cotidal.sim.world import World
from cotidal.values import TopicPartition
from cotidal.wire.batch import crc32c, stored_crc
from cotidal.wire.records import read_records

VERSIONS: Final = (11, 12, 13, 16)
TOPIC_IDS_SINCE: Final = 13
LIST_OFFSETS_VERSION: Final = 7
EARLIEST: Final = -2
BEGIN_AGAIN_ONE_IN: Final = 300
SESSION_BREAKS_ONE_IN: Final = 40


class Place:
    """How far one partition has been read."""

    __slots__ = ("beginning", "epoch", "high_watermark", "looking", "nearer", "offset")

    def __init__(self) -> None:
        self.offset = 0
        self.beginning = 0
        """Where reading began: what is below was deleted."""
        self.epoch = -1
        """Of the last batch that was read."""
        self.high_watermark = -1
        """As a leader last told it."""
        self.nearer: Address | None = None
        """The follower to which a leader has sent us."""
        self.looking = False
        """Its beginning is being asked for."""

    def restart(self, offset: int = 0) -> None:
        self.offset = self.beginning = offset
        self.epoch = -1


class Consumer(Client):
    ISOLATION: ClassVar[int] = 0
    """1: it reads what is committed only."""

    def __init__(
        self,
        world: World,
        name: str,
        partitions: tuple[TopicPartition, ...],
        history: History,
        probes: Probes,
        *,
        may_lose: bool,
        rack: str = "",
        sessions: bool = False,
        gaps: bool = False,
    ) -> None:
        """``gaps``: the topics are compacted, and offsets may be missing."""
        super().__init__(world, name, tuple(dict.fromkeys(each.topic for each in partitions)))
        self._history = history
        self._probes = probes
        self._may_lose = may_lose
        self._rack = rack
        self._gaps = gaps
        self._sessions: dict[Address, FetchSession] | None = {} if sessions else None
        self._places = {partition: Place() for partition in partitions}
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

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(self._places)

    def position(self, partition: TopicPartition) -> int:
        return self._places[partition].offset

    def beginning(self, partition: TopicPartition) -> int:
        return self._places[partition].beginning

    def on_metadata(self) -> None:
        if self.stopped:
            return
        for partition in self._places:
            address = self._source(partition)
            if address is not None:
                self._fetch(address)
        if len(self.leaders) < len(self._places):
            self.refresh()

    def _source(self, partition: TopicPartition) -> Address | None:
        leader = self.leaders.get(partition)
        if leader is None:
            return None
        return self._places[partition].nearer or leader.address

    def _fetch(self, address: Address) -> None:
        """Ask one node for all that is to be read there; one question to a node at a time."""
        if address in self._asked or self.stopped:
            return
        wanted = {
            partition: self._question(partition, address)
            for partition, place in self._places.items()
            if not place.looking and self._source(partition) == address
        }
        if not wanted:
            return
        self._asked[address] = None
        told = self._tell(address, wanted)
        by_id = self._version >= TOPIC_IDS_SINCE
        request = FetchRequest(
            max_wait_ms=self._wait_ms,
            min_bytes=1,
            max_bytes=self._max_bytes,
            isolation_level=self.ISOLATION,
            session_id=told.session_id,
            session_epoch=told.session_epoch,
            topics=self._topics(told.asked),
            forgotten_topics_data=forgotten_topics(told.forgotten, self.topic_ids, by_id=by_id),
            rack_id=self._rack,
        )
        offsets = {partition: self._places[partition].offset for partition in wanted}
        self.ask(
            address,
            ApiKey.FETCH,
            self._version,
            request,
            lambda reply: self._on_reply(address, offsets, reply),
        )

    def _tell(self, address: Address, wanted: dict[TopicPartition, FetchPartition]) -> Told:
        if self._sessions is None:
            return Told(0, NO_SESSION, wanted, ())
        session = self._sessions.setdefault(address, FetchSession())
        if self.draw(SESSION_BREAKS_ONE_IN) == 0:
            session.skip()
        return session.tell(wanted)

    def _question(self, partition: TopicPartition, address: Address) -> FetchPartition:
        place = self._places[partition]
        leader = self.leaders[partition]
        # A follower may be behind what was read elsewhere: it is not asked where its log parts.
        checks = self._version >= 12 and address == leader.address
        return FetchPartition(
            partition=partition.partition,
            current_leader_epoch=leader.epoch,
            fetch_offset=place.offset,
            last_fetched_epoch=place.epoch if checks else -1,
            partition_max_bytes=self._max_bytes,
        )

    def _topics(self, asked: dict[TopicPartition, FetchPartition]) -> tuple[FetchTopic, ...]:
        by_id = self._version >= TOPIC_IDS_SINCE
        by_topic: dict[str, list[FetchPartition]] = {}
        for partition, question in asked.items():
            by_topic.setdefault(partition.topic, []).append(question)
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
            self._on_silence(address)
            return
        if not self._on_session(address, reply):
            self.after(1 + self.draw(5 * MS), self._fetch, address)
            return
        sure = self._sessions is None or self._sessions[address].is_sure
        names = {topic_id: name for name, topic_id in self.topic_ids.items()}
        for topic in reply.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for told in topic.partitions:
                partition = TopicPartition(name, told.partition_index)
                if sure and partition not in offsets:
                    raise Violation(
                        SESSIONS_SERVE_WHAT_IS_WANTED,
                        f"{self.name} is told of {partition} and asked {address[0]} for"
                        f" {', '.join(map(str, offsets))}",
                    )
                if partition in offsets and offsets[partition] == self._places[partition].offset:
                    self._take(partition, told, address)
        if self.restless and self.draw(BEGIN_AGAIN_ONE_IN) == 0:
            self._begin_again()
        self.after(1 + self.draw(5 * MS), self._fetch, address)

    def _on_silence(self, address: Address) -> None:
        """The node may have answered: half of the time its session is believed to go on."""
        if self._sessions is not None:
            session = self._sessions[address]
            session.forget() if self.draw(2) else session.repeat()
        for partition, place in self._places.items():
            if self._source(partition) == address:
                place.nearer = None
                self.leaders.pop(partition, None)
        self.refresh()

    def _on_session(self, address: Address, reply: FetchResponse) -> bool:
        """False if the node did not take the fetch as part of its session."""
        if self._sessions is None:
            return True
        session = self._sessions[address]
        if reply.error_code:
            self._probes.see(seen.SESSION_REFUSED)
            session.forget()
            return False
        if session.is_out_of_turn:
            raise Violation(
                SESSIONS_SERVE_WHAT_IS_WANTED,
                f"{self.name} skipped an epoch of its session with {address[0]}, and is served",
            )
        session.on_answer(reply.session_id)
        return True

    def _begin_again(self) -> None:
        partitions = list(self._places)
        self._places[partitions[self.draw(len(partitions))]].restart()

    def _take(self, partition: TopicPartition, told: PartitionData, address: Address) -> None:
        place = self._places[partition]
        leader = self.leaders.get(partition)
        from_leader = leader is not None and leader.address == address
        if told.error_code:
            self._on_error(partition, place, ErrorCode(told.error_code), from_leader=from_leader)
            return
        if told.preferred_read_replica >= 0:
            place.nearer = self.addresses.get(told.preferred_read_replica)
            self.after(1, self.on_metadata)
            return
        if told.diverging_epoch.end_offset >= 0:
            self._on_truncated(partition, place, told.diverging_epoch.end_offset)
            return
        if from_leader:
            if told.high_watermark < place.high_watermark:
                self._probes.see(seen.HIGH_WATERMARK_BACK)
            place.high_watermark = told.high_watermark
        if told.records is not None and told.records.headers:
            self._read(partition, place, told)
            if not from_leader:
                self._probes.see(seen.FOLLOWER_READ)

    def _read(self, partition: TopicPartition, place: Place, told: PartitionData) -> None:
        assert told.records is not None
        if told.records.fault is not None:
            raise Violation(OFFSETS_CONTIGUOUS, f"{partition}: {told.records.fault}")
        position = 0
        offset = place.offset
        for header in told.records.headers:
            missing = header.base_offset > offset and not self._gaps
            next_offset = header.next_offset
            if missing or next_offset <= offset:
                raise Violation(
                    OFFSETS_CONTIGUOUS,
                    f"{self.name} asked {partition} for {offset} and got the batch"
                    f" {header.base_offset}..{header.last_offset}",
                )
            if next_offset > told.high_watermark:
                raise Violation(
                    CONSUMED_NEVER_CHANGES,
                    f"{self.name} was given {header.last_offset} of {partition}, whose high"
                    f" watermark is {told.high_watermark}",
                )
            if self._gaps:
                self._note_records(partition, told.records.data, position)
            else:
                self._history.on_consumed(
                    partition,
                    offset=header.base_offset,
                    next_offset=next_offset,
                    crc=stored_crc(told.records.data, position),
                )
            position += header.size_bytes
            offset = next_offset
            place.epoch = header.leader_epoch
        place.offset = offset
        self.epochs[partition] = max(self.epochs.get(partition, -1), place.epoch)

    def _note_records(
        self, partition: TopicPartition, data: bytes | memoryview, position: int
    ) -> None:
        """Of a compacted topic each record for itself: the batch around it may change."""
        for record in read_records(data, position):
            told = crc32c(b"%r=%r" % (record.key, record.value))
            next_offset = record.offset + 1
            self._history.on_consumed(
                partition, offset=record.offset, next_offset=next_offset, crc=told
            )

    def _on_error(
        self, partition: TopicPartition, place: Place, error: ErrorCode, *, from_leader: bool
    ) -> None:
        self._probes.see(f"a fetch refused with {error.name}")
        if place.nearer is not None and not from_leader:
            place.nearer = None  # back to the leader, who knows better
            self.after(1, self.on_metadata)
            return
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._look_for_beginning(partition, place)
            return
        self.leaders.pop(partition, None)
        self.refresh()

    # Where it begins, if not at 0

    def _look_for_beginning(self, partition: TopicPartition, place: Place) -> None:
        leader = self.leaders.get(partition)
        if leader is None:
            self.refresh()
            return
        place.looking = True
        asked = ListOffsetsPartition(partition.partition, leader.epoch, EARLIEST)
        topic = ListOffsetsTopic(partition.topic, (asked,))
        request = ListOffsetsRequest(replica_id=-1, topics=(topic,))
        self.ask(
            leader.address,
            ApiKey.LIST_OFFSETS,
            LIST_OFFSETS_VERSION,
            request,
            lambda reply: self._on_beginning(partition, place, reply),
        )

    def _on_beginning(
        self, partition: TopicPartition, place: Place, reply: ListOffsetsResponse | None
    ) -> None:
        place.looking = False
        told = None if reply is None else reply.topics[0].partitions[0]
        if told is None or told.error_code:
            self.leaders.pop(partition, None)
        elif place.offset < told.offset:
            place.restart(told.offset)  # what is below was deleted
        else:
            self._on_truncated(partition, place, told.offset)
        self.refresh()

    def _on_truncated(self, partition: TopicPartition, place: Place, end: int) -> None:
        """What was read is said not to be there: only faults that lose data may cause it."""
        if not self._may_lose and partition in self._history.consumed and place.offset > end:
            raise Violation(
                CONSUMED_NEVER_CHANGES,
                f"{self.name} has read {partition} up to {place.offset}, and is told that it ends"
                f" at {end}",
            )
        place.restart()
