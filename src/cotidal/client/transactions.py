"""Transactions, piece by piece: begin, commit a group's offsets within, end (KIP-98, KIP-890).

Whoever begins with a transactional id fences all that began with it before, and aborts what they
left open. Partitions join a transaction by being written to, and a group by its offsets
(transaction.version 2), so there is nothing to announce. Every piece may be done by another process
than the one before: what it takes is the id and the ``Identity``.

Writing is done by idempotent.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from cotidal.client.backoff import Backoff
from cotidal.client.cluster import Cluster
from cotidal.client.connection import Connection
from cotidal.client.failures import ProtocolMismatch, Refused, known_code
from cotidal.client.groups import TRANSACTION, at_coordinator
from cotidal.errors import RETRIABLE, ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.end_txn import EndTxnRequest, EndTxnResponse
from cotidal.messages.rpc.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from cotidal.messages.rpc.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from cotidal.messages.rpc.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from cotidal.values import Offset, ProducerEpoch, ProducerId, TopicPartition

JOINS_BY_COMMIT: Final = 5
"""From this version of TxnOffsetCommit and of EndTxn on transactions are KIP-890's."""

_PASSING: Final = frozenset(
    {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
)
_UNSTABLE: Final = frozenset({ErrorCode.UNSTABLE_OFFSET_COMMIT})


class Identity(NamedTuple):
    """Who writes: an older epoch of the same id is fenced."""

    producer_id: ProducerId
    epoch: ProducerEpoch


class Committed(NamedTuple):
    offset: Offset
    metadata: str


def begin(cluster: Cluster, transactional_id: str, *, timeout_ms: int) -> Identity:
    """Fence who wrote with this id before, and wait until what they left is settled."""
    request = InitProducerIdRequest(transactional_id, timeout_ms)

    def ask(connection: Connection) -> tuple[Identity, int]:
        told = connection.call(
            ApiKey.INIT_PRODUCER_ID, request, InitProducerIdResponse, timeout_s=cluster.timeout_s
        )
        return _identity(told), told.error_code

    return at_coordinator(cluster, transactional_id, ask, kind=TRANSACTION, passing=_PASSING)


def new_identity(cluster: Cluster) -> Identity:
    """For a producer without transactions. A broker that has none to give yet is asked again."""
    request = InitProducerIdRequest(None)
    backoff = Backoff(timeout_s=cluster.timeout_s)
    while True:
        told = cluster.ask(ApiKey.INIT_PRODUCER_ID, request, InitProducerIdResponse)
        error = known_code(told.error_code)
        if error is ErrorCode.NONE:
            return _identity(told)
        if error not in RETRIABLE or not backoff.wait():
            raise Refused("a producer id", error)


def _identity(told: InitProducerIdResponse | EndTxnResponse) -> Identity:
    return Identity(ProducerId(told.producer_id), ProducerEpoch(told.producer_epoch))


def commit_within(
    cluster: Cluster,
    transactional_id: str,
    identity: Identity,
    *,
    group: str,
    offsets: Mapping[TopicPartition, Committed],
) -> None:
    """Offsets of a group without members, which count once the transaction is committed."""
    topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for at, committed in offsets.items():
        one = TxnOffsetCommitRequestPartition(
            at.partition, committed.offset, committed_metadata=committed.metadata
        )
        topics.setdefault(at.topic, []).append(one)
    request = TxnOffsetCommitRequest(
        transactional_id,
        group,
        *identity,
        topics=tuple(TxnOffsetCommitRequestTopic(name, tuple(of)) for name, of in topics.items()),
    )

    def ask(connection: Connection) -> tuple[None, int]:
        _check(connection, ApiKey.TXN_OFFSET_COMMIT)
        told = connection.call(
            ApiKey.TXN_OFFSET_COMMIT, request, TxnOffsetCommitResponse, timeout_s=cluster.timeout_s
        )
        codes = (each.error_code for topic in told.topics for each in topic.partitions)
        return None, next((code for code in codes if code), ErrorCode.NONE)

    at_coordinator(cluster, group, ask, passing=_PASSING)


def end(
    cluster: Cluster, transactional_id: str, identity: Identity, *, committed: bool
) -> Identity:
    """Commit or abort; the identity with which the next transaction is written."""
    request = EndTxnRequest(transactional_id, *identity, committed)

    def ask(connection: Connection) -> tuple[Identity, int]:
        _check(connection, ApiKey.END_TXN)
        told = connection.call(ApiKey.END_TXN, request, EndTxnResponse, timeout_s=cluster.timeout_s)
        return _identity(told), told.error_code

    return at_coordinator(cluster, transactional_id, ask, kind=TRANSACTION, passing=_PASSING)


def settled_offsets(cluster: Cluster, group: str) -> list[Committed]:
    """What is committed, in any topic, after every transaction that might still change it."""

    def ask(connection: Connection) -> tuple[list[Committed], int]:
        request = OffsetFetchRequest(
            groups=(OffsetFetchRequestGroup(group, topics=None),), require_stable=True
        )
        (told,) = connection.call(
            ApiKey.OFFSET_FETCH, request, OffsetFetchResponse, timeout_s=cluster.timeout_s
        ).groups
        found = [each for topic in told.topics for each in topic.partitions]
        codes = (told.error_code, *(each.error_code for each in found))
        return (
            [
                Committed(Offset(each.committed_offset), each.metadata or "")
                for each in found
                if each.committed_offset >= 0
            ],
            next((code for code in codes if code), ErrorCode.NONE),
        )

    return at_coordinator(cluster, group, ask, passing=_UNSTABLE)


def _check(connection: Connection, key: ApiKey) -> None:
    if connection.version(key) < JOINS_BY_COMMIT:
        raise ProtocolMismatch(
            f"{connection.address} is too old for these transactions: they need "
            "transaction.version 2, which Apache Kafka has from 4.0 on"
        )
