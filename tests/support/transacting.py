"""A transactional producer, request by request, and a node that has coordinators for it."""

from __future__ import annotations

from typing import Any

from asking import create
from cotidal.messages.rpc import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    find_coordinator,
    init_producer_id,
    produce,
    txn_offset_commit,
)
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, build_batch
from lone_node import LoneNode

PRODUCE, FIND, INIT, ADD, ADD_OFFSETS, END, COMMIT = 0, 10, 22, 24, 25, 26, 28
SETTINGS = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.min.isr": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
}
ID = "shop"


def node_with_transactions(**settings: str) -> LoneNode:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    node = LoneNode(SETTINGS | given).start()
    create(node, "orders", 2)
    request = find_coordinator.FindCoordinatorRequest(key_type=1, coordinator_keys=(ID,))
    assert node.ask(FIND, 4, request).coordinators[0].error_code == 0
    return node


class Producer:
    """A transactional producer, request by request."""

    def __init__(self, node: LoneNode, id_: str = ID) -> None:
        answer = node.ask(INIT, 4, init_producer_id.InitProducerIdRequest(id_, 60_000))
        assert answer.error_code == 0
        self._become(node, id_, answer.producer_id, answer.producer_epoch)

    @classmethod
    def of(cls, node: LoneNode, producer_id: int) -> Producer:
        """One that no coordinator knows of."""
        stranger = cls.__new__(cls)
        stranger._become(node, ID, producer_id, 0)
        return stranger

    def _become(self, node: LoneNode, id_: str, producer_id: int, epoch: int) -> None:
        self.node = node
        self.id = id_
        self.producer_id = producer_id
        self.epoch = epoch
        self.sequence = 0

    def add(self, *partitions: int, topic: str = "orders") -> list[int]:
        topics = (add_partitions_to_txn.AddPartitionsToTxnTopic(topic, partitions),)
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=topics,
        )
        (found,) = self.node.ask(ADD, 3, request).results_by_topic_v3_and_below
        return [each.partition_error_code for each in found.results_by_partition]

    def request(self, value: bytes = b"v", partition: int = 0, version: int = 11) -> Any:
        """A Produce of one record with the next sequence."""
        data = build_batch(
            [Record(None, value, timestamp=1)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            transactional=True,
        )
        written = produce.PartitionProduceData(partition, read_batches(data))
        topics = (produce.TopicProduceData("orders", partition_data=(written,)),)
        self.sequence += 1
        return PRODUCE, version, produce.ProduceRequest(self.id, -1, 1_000, topics)

    def write(self, value: bytes = b"v", partition: int = 0, version: int = 11) -> int:
        answer = self.node.ask(*self.request(value, partition, version))
        error = answer.responses[0].partition_responses[0].error_code
        self.sequence -= bool(error)
        return int(error)

    def end(self, *, commit: bool = True, version: int = 3) -> Any:
        request = end_txn.EndTxnRequest(self.id, self.producer_id, self.epoch, commit)
        return self.node.ask(END, version, request)

    def add_offsets(self, group: str = "g", version: int = 3) -> int:
        request = add_offsets_to_txn.AddOffsetsToTxnRequest(
            self.id, self.producer_id, self.epoch, group
        )
        return int(self.node.ask(ADD_OFFSETS, version, request).error_code)

    def committing(self, offset: int, topic: str = "orders", **fields: Any) -> Any:
        partition = txn_offset_commit.TxnOffsetCommitRequestPartition(0, offset)
        request = txn_offset_commit.TxnOffsetCommitRequest(
            self.id,
            "g",
            self.producer_id,
            self.epoch,
            topics=(txn_offset_commit.TxnOffsetCommitRequestTopic(topic, (partition,)),),
        )
        return request._replace(**fields)

    def commit(self, offset: int, version: int = 3, **fields: Any) -> int:
        answer = self.node.ask(COMMIT, version, self.committing(offset, **fields))
        return int(answer.topics[0].partitions[0].error_code)
