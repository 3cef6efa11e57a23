"""Transactions as operators see them: list, describe, end those that hang (KIP-664).

A transaction *hangs* when it is open in a partition and its coordinator does not know of it: nobody
will ever end it, and read_committed consumers stand still below it. Here it cannot come to be
(KIP-890); it may have been there before, in a log that another broker wrote.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from cotidal.client.backoff import Backoff
from cotidal.client.cluster import Cluster
from cotidal.client.connection import Connection
from cotidal.client.failures import Refused, known_code
from cotidal.client.groups import TRANSACTION, at_coordinator
from cotidal.errors import RETRIABLE, ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from cotidal.messages.rpc.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from cotidal.messages.rpc.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from cotidal.messages.rpc.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from cotidal.values import NodeId, Offset, TopicPartition, by_topic

OPEN: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")


class ListedTransaction(NamedTuple):
    transactional_id: str
    state: str
    producer_id: int
    coordinator: NodeId


class DescribedTransaction(NamedTuple):
    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int
    """Wall clock; -1: it has not begun."""
    partitions: tuple[TopicPartition, ...]


class OpenTransaction(NamedTuple):
    """What a partition knows of a transaction that is open in it."""

    partition: TopicPartition
    leader: NodeId
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    first_offset: Offset
    last_ms: int
    """When its producer last wrote; wall clock."""


def list_transactions(
    cluster: Cluster, *, states: Iterable[str] = (), producer_ids: Iterable[int] = ()
) -> list[ListedTransaction]:
    """Of all coordinators, by transactional id."""
    request = ListTransactionsRequest(tuple(states), tuple(producer_ids))
    found: dict[str, ListedTransaction] = {}
    for broker in cluster.metadata([]).brokers:
        response = cluster.connection(broker.node_id).call(
            ApiKey.LIST_TRANSACTIONS,
            request,
            ListTransactionsResponse,
            timeout_s=cluster.timeout_s,
        )
        if response.error_code:
            raise Refused(f"broker {broker.node_id}", known_code(response.error_code))
        for each in response.transaction_states:
            found[each.transactional_id] = ListedTransaction(
                each.transactional_id, each.transaction_state, each.producer_id, broker.node_id
            )
    return [found[id_] for id_ in sorted(found)]


def describe_transaction(cluster: Cluster, transactional_id: str) -> DescribedTransaction:
    """Refused with TRANSACTIONAL_ID_NOT_FOUND if there is none."""

    def ask(connection: Connection) -> tuple[DescribedTransaction, int]:
        request = DescribeTransactionsRequest((transactional_id,))
        (told,) = connection.call(
            ApiKey.DESCRIBE_TRANSACTIONS,
            request,
            DescribeTransactionsResponse,
            timeout_s=cluster.timeout_s,
        ).transaction_states
        described = DescribedTransaction(
            transactional_id,
            told.transaction_state,
            told.producer_id,
            told.producer_epoch,
            told.transaction_timeout_ms,
            told.transaction_start_time_ms,
            tuple(
                TopicPartition(topic.topic, number)
                for topic in told.topics
                for number in topic.partitions
            ),
        )
        return described, told.error_code

    return at_coordinator(cluster, transactional_id, ask, kind=TRANSACTION)


def open_transactions(cluster: Cluster, topic: str | None = None) -> list[OpenTransaction]:
    """All that partitions have open, of one topic or of all; each as its leader knows it. While
    one of them changes its leader, they are asked again."""
    backoff = Backoff(timeout_s=cluster.timeout_s)
    while True:
        try:
            return _open_now(cluster, topic)
        except Refused as refused:
            if refused.error not in RETRIABLE or not backoff.wait():
                raise


def _open_now(cluster: Cluster, topic: str | None) -> list[OpenTransaction]:
    leaders: dict[NodeId, list[TopicPartition]] = {}
    for each in cluster.metadata(None if topic is None else [topic]).topics:
        for partition in each.partitions:
            at = TopicPartition(each.name, partition.partition)
            if partition.leader >= 0:
                leaders.setdefault(partition.leader, []).append(at)
    found: list[OpenTransaction] = []
    for leader, partitions in leaders.items():
        request = DescribeProducersRequest(
            tuple(TopicRequest(name, numbers) for name, numbers in by_topic(partitions).items())
        )
        response = cluster.connection(leader).call(
            ApiKey.DESCRIBE_PRODUCERS,
            request,
            DescribeProducersResponse,
            timeout_s=cluster.timeout_s,
        )
        for told in response.topics:
            for one in told.partitions:
                at = TopicPartition(told.name, one.partition_index)
                if one.error_code:
                    raise Refused(str(at), known_code(one.error_code), one.error_message)
                found.extend(
                    OpenTransaction(
                        at,
                        leader,
                        producer.producer_id,
                        producer.producer_epoch,
                        producer.coordinator_epoch,
                        Offset(producer.current_txn_start_offset),
                        producer.last_timestamp,
                    )
                    for producer in one.active_producers
                    if producer.current_txn_start_offset >= 0
                )
    return sorted(found)


def hanging_transactions(
    cluster: Cluster, candidates: Iterable[OpenTransaction]
) -> list[OpenTransaction]:
    """Those of which no coordinator knows that they are to be ended."""
    asked = list(candidates)
    ids = sorted({each.producer_id for each in asked})
    holders: dict[int, list[str]] = {}
    for listed in list_transactions(cluster, producer_ids=ids) if ids else ():
        holders.setdefault(listed.producer_id, []).append(listed.transactional_id)
    return [
        each
        for each in asked
        if not any(_ends(cluster, id_, each) for id_ in holders.get(each.producer_id, ()))
    ]


def _ends(cluster: Cluster, transactional_id: str, open_: OpenTransaction) -> bool:
    try:
        told = describe_transaction(cluster, transactional_id)
    except Refused as refused:
        if refused.error is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return False
        raise
    is_its_own = told.producer_id == open_.producer_id
    return is_its_own and told.state in OPEN and open_.partition in told.partitions


def abort(cluster: Cluster, open_: OpenTransaction) -> None:
    """Write the marker that nobody else will write."""
    marker = WritableTxnMarker(
        open_.producer_id,
        open_.producer_epoch,
        False,
        (WritableTxnMarkerTopic(open_.partition.topic, (open_.partition.partition,)),),
        max(open_.coordinator_epoch, 0),
    )
    response = cluster.connection(open_.leader).call(
        ApiKey.WRITE_TXN_MARKERS,
        WriteTxnMarkersRequest((marker,)),
        WriteTxnMarkersResponse,
        timeout_s=cluster.timeout_s,
    )
    error = known_code(response.markers[0].topics[0].partitions[0].error_code)
    if error is not ErrorCode.NONE:
        raise Refused(f"the end of producer {open_.producer_id} in {open_.partition}", error)
