"""Producer ids, handed to brokers in blocks. Pure. KIP-730."""

from __future__ import annotations

from typing import Final, NamedTuple

from cotidal.core.cluster.controller import Controller, Records
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.metadata import ProducerIdsRecord
from cotidal.values import BrokerEpoch, NodeId, ProducerId

BLOCK_SIZE: Final = 1000
"""Kafka's. A broker that restarts loses what is left of its block: there are 2^63."""

_PRODUCER_ID_MAX: Final = 2**63 - 1


class Block(NamedTuple):
    """Ids from ``first`` on, ``length`` of them. Invariant: no two blocks share an id."""

    records: Records
    first: ProducerId
    length: int


def decide_producer_ids(
    controller: Controller, *, node_id: NodeId, broker_epoch: BrokerEpoch
) -> Block | Refusal:
    broker = controller.image.brokers.get(node_id)
    if broker is None or broker.epoch != broker_epoch:
        registered = "is not registered" if broker is None else f"has epoch {broker.epoch}"
        return Refusal(
            ErrorCode.STALE_BROKER_EPOCH, f"broker {node_id} {registered}, not epoch {broker_epoch}"
        )
    first = controller.image.next_producer_id
    if first > _PRODUCER_ID_MAX - BLOCK_SIZE:
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "all producer ids have been used")
    record = ProducerIdsRecord(
        broker_id=node_id, broker_epoch=broker_epoch, next_producer_id=first + BLOCK_SIZE
    )
    return Block((record,), first, BLOCK_SIZE)
