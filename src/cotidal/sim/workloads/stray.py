"""Somebody with transactional ids who does not always know who he is.

Strays share a few transactional ids, and a topic of their own that nobody reads from. Each asks one
thing after another: takes an id over, or takes himself for who had it before; opens transactions,
writes, and walks away; ends what another one began, and once more; ends it at the partitions
themselves, as operators do with what hangs. Whatever they leave open must come to an end
(TXN_ENDS, STABLE_OFFSET_FOLLOWS); what else is looked at is in visitor.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from cotidal.messages.rpc.add_offsets_to_txn import AddOffsetsToTxnRequest
from cotidal.messages.rpc.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.describe_producers import DescribeProducersRequest
from cotidal.messages.rpc.describe_producers import TopicRequest as ProducersOf
from cotidal.messages.rpc.describe_transactions import DescribeTransactionsRequest
from cotidal.messages.rpc.end_txn import EndTxnRequest
from cotidal.messages.rpc.init_producer_id import InitProducerIdRequest
from cotidal.messages.rpc.list_transactions import ListTransactionsRequest
from cotidal.messages.rpc.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from cotidal.messages.rpc.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from cotidal.sim.agenda import MS
from cotidal.sim.probes import Probes
from cotidal.sim.workloads.find import TRANSACTIONAL_KEY
from cotidal.sim.workloads.visitor import Question, Visitor
from cotidal.sim.world import World
from cotidal.values import TopicPartition
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, build_batch

STRAYS: Final = "strays"
"""Their topic."""
STRAYS_PARTITIONS: Final = 2
GROUP: Final = "group-of-strays"
PARTITIONS: Final = tuple(TopicPartition(STRAYS, each) for each in range(STRAYS_PARTITIONS))
PRODUCE_TIMEOUT_MS: Final = 2_000
WALL_MS: Final = 1_700_000_000_000
STATES: Final = ("Ongoing", "CompleteAbort", "Nowhere")


class Identity:
    """A transactional id, and who was last told to be its holder."""

    __slots__ = ("epoch", "id", "producer_id", "sequences")

    def __init__(self, id_: str) -> None:
        self.id = id_
        self.became(-1, -1)

    def became(self, producer_id: int, epoch: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.sequences = dict.fromkeys(PARTITIONS, 0)


class Stray(Visitor):
    KIND: ClassVar[int] = TRANSACTIONAL_KEY

    def __init__(
        self, world: World, name: str, identities: tuple[Identity, ...], probes: Probes
    ) -> None:
        super().__init__(world, name, (STRAYS,), probes)
        self._identities = identities
        self._questions: tuple[Callable[[Identity], Question], ...] = (
            self._init, self._init, self._add, self._add, self._add_offsets, self._write,
            self._write, self._write, self._end, self._end, self._look, self._list,
            self._look_at_producers, self._mark,
        )  # fmt: skip

    def question(self) -> tuple[str, Question]:
        who = self.pick(self._identities)
        return who.id, self.pick(self._questions)(who)

    def _epoch(self, who: Identity) -> int:
        return max(-1, who.epoch + int(self.pick((0, 0, 0, 0, -1))))

    def _producer_id(self, who: Identity) -> int:
        return int(self.pick((who.producer_id,) * 9 + (999_999,)))

    def _init(self, who: Identity) -> Question:
        current = self.pick(
            (
                (-1, -1),
                (who.producer_id, who.epoch),
                (self._producer_id(who), self._epoch(who)),
                (who.producer_id, -1),
            )
        )
        timeout_ms = self.pick((1_500, 3_000, 3_000, 0, 1 << 30))
        request = InitProducerIdRequest(self.pick((who.id,) * 9 + ("",)), timeout_ms, *current)

        def told(reply: Any) -> None:
            if not reply.error_code:
                who.became(reply.producer_id, reply.producer_epoch)

        return Question(ApiKey.INIT_PRODUCER_ID, self.pick((3, 4, 5)), request, told)

    def _add(self, who: Identity) -> Question:
        named = AddPartitionsToTxnTopic(self.pick((STRAYS, STRAYS, STRAYS, "nowhere")), (0, 1))
        producer_id, epoch = self._producer_id(who), self._epoch(who)
        if self.draw(4) == 0:
            asked = AddPartitionsToTxnTransaction(who.id, producer_id, epoch, True, (named,))
            return Question(ApiKey.ADD_PARTITIONS_TO_TXN, 5, AddPartitionsToTxnRequest((asked,)))
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=who.id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=(named,),
        )
        return Question(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)

    def _add_offsets(self, who: Identity) -> Question:
        request = AddOffsetsToTxnRequest(
            who.id, self._producer_id(who), self._epoch(who), self.pick((GROUP, ""))
        )
        return Question(ApiKey.ADD_OFFSETS_TO_TXN, 4, request)

    def _write(self, who: Identity) -> Question:
        partition = self.pick(PARTITIONS)
        sequence = who.sequences[partition]
        data = build_batch(
            [Record(None, b"astray", timestamp=WALL_MS + self.world.now // MS)],
            producer_id=max(0, self._producer_id(who)),
            producer_epoch=max(0, self._epoch(who)),
            base_sequence=sequence + int(self.pick((0, 0, 0, 0, 0, 3))),
            transactional=True,
        )
        written = PartitionProduceData(partition.partition, read_batches(data))
        request = ProduceRequest(
            self.pick((who.id,) * 9 + (None,)),
            -1,
            PRODUCE_TIMEOUT_MS,
            (TopicProduceData(STRAYS, partition_data=(written,)),),
        )

        def told(reply: Any) -> None:
            if not reply.responses[0].partition_responses[0].error_code:
                who.sequences[partition] = max(who.sequences[partition], sequence + 1)

        version = self.pick((11, 12))
        return Question(ApiKey.PRODUCE, version, request, told, partition)

    def _end(self, who: Identity) -> Question:
        request = EndTxnRequest(who.id, self._producer_id(who), self._epoch(who), self.draw(2) == 0)

        def told(reply: Any) -> None:
            if not reply.error_code and reply.producer_id >= 0:
                who.became(reply.producer_id, reply.producer_epoch)

        return Question(ApiKey.END_TXN, self.pick((3, 5, 5)), request, told)

    def _look(self, who: Identity) -> Question:
        request = DescribeTransactionsRequest((who.id, "nobody"))
        return Question(ApiKey.DESCRIBE_TRANSACTIONS, 0, request)

    def _list(self, who: Identity) -> Question:
        request = ListTransactionsRequest(
            self.pick(((), STATES)),
            self.pick(((), (max(0, who.producer_id),))),
            self.pick((-1, 500)),
            self.pick((None, "stray.*", "(")),
        )
        return Question(ApiKey.LIST_TRANSACTIONS, 2, request)

    def _look_at_producers(self, who: Identity) -> Question:
        partition = self.pick(PARTITIONS)
        request = DescribeProducersRequest((ProducersOf(STRAYS, (partition.partition, 9)),))
        return Question(ApiKey.DESCRIBE_PRODUCERS, 0, request, None, partition)

    def _mark(self, who: Identity) -> Question:
        """At a partition itself, as the coordinator would: of an epoch of his, or one before."""
        partition = self.pick(PARTITIONS)
        marker = WritableTxnMarker(
            producer_id=max(0, who.producer_id),
            producer_epoch=max(0, self._epoch(who)),
            transaction_result=False,
            topics=(WritableTxnMarkerTopic(STRAYS, (partition.partition, 9)),),
            coordinator_epoch=0,
        )
        request = WriteTxnMarkersRequest((marker,))
        return Question(ApiKey.WRITE_TXN_MARKERS, 1, request, None, partition)
