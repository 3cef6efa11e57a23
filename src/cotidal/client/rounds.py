"""Batches on their way to the leaders of their partitions, one of each partition at a time.

    put      a batch of a partition that has none on its way
    send     all of them, to all leaders at once; does not wait
    receive  the answers; what was written is off the way, and so is nothing else
    refresh  ask who leads now, before what is left is sent again

A batch stays as it was put until it is written. One that carries a sequence is known to the leader
that has it already (KIP-98): sent again after a lost answer, it is not written twice. One at a time
keeps the order of each partition over any retry.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import KeysView
from typing import Final

from cotidal.client.cluster import Cluster
from cotidal.client.connection import Connection
from cotidal.client.failures import (
    ClientError,
    Refused,
    TimedOut,
    UnknownTopic,
    Unreachable,
    known_code,
)
from cotidal.client.metadata import Topic
from cotidal.client.transactions import Identity
from cotidal.errors import RETRIABLE, ErrorCode
from cotidal.messages.batch import Batches
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from cotidal.values import NO_NODE, NodeId, Offset, TopicPartition

ACKS_ALL: Final = -1
LANE: Final = "produce"
ANSWER_LATE_S: Final = 5
"""A leader may take the whole time-out to gather its acknowledgements; its answer then travels."""

_MISPLACED: Final = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
)

SEQUENCE_MASK: Final = 0x7FFFFFFF
"""Sequences wrap at 2**31."""


class Sequences:
    """Numbers for the batches of one identity, partition by partition."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self._next: defaultdict[TopicPartition, int] = defaultdict(int)

    def take(self, at: TopicPartition, records: int) -> int:
        """The first of so many."""
        first = self._next[at]
        self._next[at] = (first + records) & SEQUENCE_MASK
        return first


class Rounds:
    def __init__(
        self,
        cluster: Cluster,
        *,
        acks: int = ACKS_ALL,
        transactional_id: str | None = None,
        bears_loss: bool = False,
        timeout_s: float | None = None,
    ) -> None:
        """``transactional_id``: of the transaction that they are written in; None for none.
        ``bears_loss``: a leader may lack what was written before (see ``misplaced``).
        ``timeout_s``: of each answer; the cluster's unless it is told."""
        self.timeout_s = cluster.timeout_s if timeout_s is None else timeout_s
        self.failure: ClientError | None = None
        """What kept the last round from being written whole, and may pass."""
        self.misplaced: set[TopicPartition] = set()
        """Whose batch is off the way, not written: its number does not follow on what the leader
        has, for an unclean election has cost what was acknowledged before it."""
        self._cluster = cluster
        self._acks = acks
        self._bears_loss = bears_loss
        self._transactional_id = transactional_id
        self._topics: dict[str, Topic] = {}
        self._under_way: dict[TopicPartition, Batches] = {}
        """Sent, or to be sent (again)."""
        self._asked: list[Connection] = []
        self._unasked: dict[TopicPartition, Offset] = {}
        """Sent with acks=0: nobody says more of them."""

    @property
    def under_way(self) -> KeysView[TopicPartition]:
        return self._under_way.keys()

    def topic(self, name: str) -> Topic:
        """As last heard; UnknownTopic if there is none."""
        if name not in self._topics:
            self._topics[name] = self._cluster.topic(name)
        return self._topics[name]

    def put(self, at: TopicPartition, batch: Batches) -> None:
        assert at not in self._under_way, at
        self._under_way[at] = batch

    def send(self) -> None:
        self.failure = None
        for leader, partitions in self._by_leader().items():
            if leader == NO_NODE:
                self.failure = Refused(str(partitions[0]), ErrorCode.LEADER_NOT_AVAILABLE)
                continue
            try:
                connection = self._cluster.lane(leader, LANE)
                connection.send(
                    ApiKey.PRODUCE,
                    self._request(partitions),
                    timeout_s=self.timeout_s,
                    answered=self._acks != 0,
                )
            except (Unreachable, TimedOut) as error:
                self.failure = error
                continue
            if self._acks == 0:
                for at in partitions:
                    del self._under_way[at]
                    self._unasked[at] = Offset(-1)
            else:
                self._asked.append(connection)

    def receive(self) -> dict[TopicPartition, Offset]:
        """The base offset of each batch that was written; -1 where nobody says. Raises what does
        not pass."""
        written, self._unasked = self._unasked, {}
        asked, self._asked = self._asked, []
        names = {topic.topic_id: name for name, topic in self._topics.items()}
        refused: Refused | None = None
        for connection in asked:
            try:
                response = connection.receive(
                    ProduceResponse, timeout_s=self.timeout_s + ANSWER_LATE_S
                )
            except (Unreachable, TimedOut) as error:
                self.failure = error
                continue
            for topic in response.responses:
                for answer in topic.partition_responses:
                    name = topic.name or names[topic.topic_id]
                    at = TopicPartition(name, answer.partition_index)
                    refused = self._settle(at, answer, written) or refused
        if refused is not None:
            raise refused
        return written

    def refresh(self) -> None:
        for name in {at.topic for at in self._under_way}:
            try:
                self._topics[name] = self._cluster.topic(name)
            except UnknownTopic:
                raise  # deleted under our hands: no retry brings it back
            except ClientError as error:
                self.failure = error  # the next round fails again, until it is enough

    def drop(self) -> None:
        """Give up what is under way: whether it was written is not known."""
        self._under_way.clear()
        for connection in self._asked:
            connection.close()
        self._asked.clear()

    def _settle(
        self,
        at: TopicPartition,
        answer: PartitionProduceResponse,
        written: dict[TopicPartition, Offset],
    ) -> Refused | None:
        error = known_code(answer.error_code)
        if error in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            if self._under_way.pop(at, None) is not None:
                written[at] = Offset(answer.base_offset)
            return None
        refused = Refused(str(at), error, answer.error_message)
        if error in _MISPLACED and self._bears_loss:
            del self._under_way[at]
            self.misplaced.add(at)
        elif error not in RETRIABLE:
            return refused
        self.failure = refused
        return None

    def _by_leader(self) -> dict[NodeId, list[TopicPartition]]:
        grouped: defaultdict[NodeId, list[TopicPartition]] = defaultdict(list)
        for at in self._under_way:
            partitions = self.topic(at.topic).partitions
            known = at.partition < len(partitions)
            grouped[partitions[at.partition].leader if known else NO_NODE].append(at)
        return grouped

    def _request(self, partitions: list[TopicPartition]) -> ProduceRequest:
        topics: defaultdict[str, list[PartitionProduceData]] = defaultdict(list)
        for at in partitions:
            topics[at.topic].append(PartitionProduceData(at.partition, self._under_way[at]))
        data = tuple(
            TopicProduceData(name, self.topic(name).topic_id, tuple(of))
            for name, of in topics.items()
        )
        timeout_ms = int(self.timeout_s * 1000)
        return ProduceRequest(self._transactional_id, self._acks, timeout_ms, data)
