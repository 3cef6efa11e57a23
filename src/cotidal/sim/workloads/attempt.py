"""One transaction of a processor, step by step, until it is ended or given up.

    version 0   AddPartitionsToTxn, AddOffsetsToTxn, Produce to each output, TxnOffsetCommit, EndTxn
    version 2   Produce to each output, TxnOffsetCommit, EndTxn, which raises the epoch (KIP-890)

Every step is asked again until it is answered, as clients do: batches with their old sequences, the
end with its old epoch. The attempt keeps what it knew when it began, producer, member and
generation: whoever is no longer what it says there goes on as a zombie, and must come to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cotidal.errors import ErrorCode
from cotidal.messages.rpc.add_offsets_to_txn import AddOffsetsToTxnRequest
from cotidal.messages.rpc.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.end_txn import EndTxnRequest
from cotidal.messages.rpc.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from cotidal.messages.rpc.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from cotidal.sim import probes as seen
from cotidal.sim.agenda import MS, SECOND
from cotidal.sim.network import Address
from cotidal.sim.workloads.transaction_ledger import COPIES, COPIES_PARTITIONS, Fact
from cotidal.values import TopicPartition
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, build_batch

if TYPE_CHECKING:
    from cotidal.sim.workloads.processor import Processor

TRIES_MAX: Final = 60
"""Of all steps together. Then it is given up, and the coordinator's time-out ends it."""
STALL_ONE_IN: Final = 30
"""Steps before one of which everything stands still."""
STALL_US: Final = 8 * SECOND
PRODUCE_TIMEOUT_MS: Final = 2_000
WALL_MS: Final = 1_700_000_000_000

AGAIN: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)
"""What clients ask again after."""
OUTPUTS: Final = tuple(TopicPartition(COPIES, number) for number in range(COPIES_PARTITIONS))


class Holder(NamedTuple):
    """Who a transactional id belongs to, and the sequence that its next batches have."""

    producer_id: int
    epoch: int
    sequence: int = 0


class Membership(NamedTuple):
    group: str
    member_id: str
    instance: str | None
    generation: int


class Step(NamedTuple):
    """A question: whom, what, and where its error stands in the answer."""

    whom: Callable[[], Address | None]
    key: ApiKey
    version: int
    request: Any
    error: Callable[[Any], int]


class Attempt:
    def __init__(
        self,
        processor: Processor,
        fact: Fact,
        holder: Holder,
        member: Membership,
        *,
        raises: bool,
        commits: bool,
    ) -> None:
        self.fact = fact
        self.holder = holder
        self._processor = processor
        self._member = member
        self._raises = raises
        self._commits = commits
        self._steps = self._all_steps()
        self._tries = 0
        self._cancelled = False

    def begin(self) -> None:
        self._next()

    def cancel(self) -> None:
        """Nothing more is asked; what is under way is."""
        self._cancelled = True

    # What is asked

    def _all_steps(self) -> Iterator[Step]:
        processor = self._processor
        producer_id, epoch, _ = self.holder
        id_ = processor.transactional_id
        if not self._raises:
            numbers = tuple(each.partition for each in OUTPUTS)
            added = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=id_,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=(AddPartitionsToTxnTopic(COPIES, numbers),),
            )
            yield self._to_coordinator(ApiKey.ADD_PARTITIONS_TO_TXN, 3, added, _added)
            offsets = AddOffsetsToTxnRequest(id_, producer_id, epoch, self._member.group)
            yield self._to_coordinator(ApiKey.ADD_OFFSETS_TO_TXN, 3, offsets, _plain)
        for output in OUTPUTS:
            yield self._produce(output)
        yield self._commit_offsets()
        end = EndTxnRequest(id_, producer_id, epoch, self._commits)
        yield self._to_coordinator(ApiKey.END_TXN, 5 if self._raises else 3, end, _plain)

    def _to_coordinator(
        self, key: ApiKey, version: int, request: Any, error: Callable[[Any], int]
    ) -> Step:
        return Step(lambda: self._processor.transactions_at, key, version, request, error)

    def _produce(self, output: TopicPartition) -> Step:
        processor = self._processor
        producer_id, epoch, sequence = self.holder
        wall = WALL_MS + processor.world.now // MS
        data = build_batch(
            [Record(None, self.fact.value(one), timestamp=wall) for one in self.fact.inputs],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=True,
        )
        written = PartitionProduceData(output.partition, read_batches(data))
        request = ProduceRequest(
            processor.transactional_id,
            -1,
            PRODUCE_TIMEOUT_MS,
            (TopicProduceData(COPIES, partition_data=(written,)),),
        )

        def whom() -> Address | None:
            leader = processor.leaders.get(output)
            return None if leader is None else leader.address

        version = 12 if self._raises else 11
        return Step(whom, ApiKey.PRODUCE, version, request, _produced)

    def _commit_offsets(self) -> Step:
        group, member_id, instance, generation = self._member
        last = self.fact.inputs[-1]
        one = TxnOffsetCommitRequestPartition(last.partition.partition, last.offset + 1)
        request = TxnOffsetCommitRequest(
            self._processor.transactional_id,
            group,
            self.holder.producer_id,
            self.holder.epoch,
            generation,
            member_id,
            instance,
            (TxnOffsetCommitRequestTopic(last.partition.topic, (one,)),),
        )
        version = 5 if self._raises else 3
        whom = self._processor.group_coordinator
        return Step(whom, ApiKey.TXN_OFFSET_COMMIT, version, request, _committed)

    # How it goes

    def _next(self) -> None:
        step = next(self._steps, None)
        if step is None:
            return
        processor = self._processor
        if processor.restless and processor.draw(STALL_ONE_IN) == 0:
            stall = processor.draw(STALL_US)
            processor.stall(self, stall)
            processor.after(stall, self._ask, step)
        else:
            self._ask(step)

    def _ask(self, step: Step) -> None:
        if self._cancelled:
            return
        self._tries += 1
        if self._tries > TRIES_MAX:
            self._processor.on_given_up(self, ErrorCode.REQUEST_TIMED_OUT)
            return
        address = step.whom()
        if address is None:
            self._processor.look_again(step.key)
            self._processor.after(self._processor.back_off(), self._ask, step)
            return
        if step.key is ApiKey.END_TXN:
            self.fact.commit_sent = self._commits
        self._processor.ask(
            address, step.key, step.version, step.request, lambda reply: self._told(step, reply)
        )

    def _told(self, step: Step, reply: Any) -> None:
        processor = self._processor
        error = ErrorCode.REQUEST_TIMED_OUT if reply is None else ErrorCode(step.error(reply))
        if error is ErrorCode.NONE:
            if step.key is ApiKey.END_TXN:
                self._end(reply)
            else:
                self._next()
            return
        processor.probes.see(f"a step of a transaction refused with {error.name}")
        if error in AGAIN:
            processor.look_again(step.key)
            processor.after(processor.back_off(), self._ask, step)
        else:
            processor.on_given_up(self, error)

    def _end(self, reply: Any) -> None:
        processor = self._processor
        processor.probes.see(seen.TXN_COMMITTED if self._commits else seen.TXN_ABORTED)
        processor.ledger.on_told(self.fact, committed=self._commits)
        producer_id, epoch, sequence = self.holder
        if self._raises:
            after = Holder(reply.producer_id, reply.producer_epoch)
        else:
            after = Holder(producer_id, epoch, sequence + len(self.fact.inputs))
        processor.on_ended(self, after, committed=self._commits)


def _plain(reply: Any) -> int:
    return int(reply.error_code)


def _added(reply: Any) -> int:
    results = reply.results_by_topic_v3_and_below[0].results_by_partition
    return next((each.partition_error_code for each in results if each.partition_error_code), 0)


def _produced(reply: Any) -> int:
    return int(reply.responses[0].partition_responses[0].error_code)


def _committed(reply: Any) -> int:
    return int(reply.topics[0].partitions[0].error_code)
