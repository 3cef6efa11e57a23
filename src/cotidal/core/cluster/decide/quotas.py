"""Quotas of clients: how much a user, a client id, or both together may take. Pure. KIP-546.

An entity names a user, a client id or both; a part without a name stands for all that have no quota
by name. The changes of one entity are made together or not at all.

An ip has one quota in Kafka (connection_creation_rate), which nothing here would hold anybody to:
it is refused. Kafka's controllers may have written one; it is kept, and told.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Final, NamedTuple

from cotidal.core.cluster.controller import Controller, Decided
from cotidal.core.cluster.image import MetadataRecord, quota_entity
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.metadata import ClientQuotaRecord, EntityData

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
MUTATION_RATE: Final = "controller_mutation_rate"

_WHOLE: Final = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE)
_KEYS: Final = (*_WHOLE, REQUEST_PERCENTAGE, MUTATION_RATE)
_LARGEST: Final = 2.0**63


class QuotaChange(NamedTuple):
    key: str
    value: float | None
    """None: there shall be no such quota."""


def decide_quotas(
    controller: Controller,
    parts: Sequence[tuple[str, str | None]],
    changes: Sequence[QuotaChange],
) -> Decided:
    """AlterClientQuotas of one entity, which is told as type and name of its parts."""
    refusal = _refuse_entity(parts) or _refuse_changes(changes)
    if refusal is not None:
        return refusal
    entity = quota_entity(dict(parts))
    current = controller.image.quotas.get(entity, {})
    told = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity)
    records: list[MetadataRecord] = []
    for key, value in changes:
        if value != current.get(key):
            records.append(
                ClientQuotaRecord(entity=told, key=key, value=value or 0.0, remove=value is None)
            )
    return tuple(records)


def _refuse_entity(parts: Sequence[tuple[str, str | None]]) -> Refusal | None:
    def refused(sentence: str) -> Refusal:
        return Refusal(ErrorCode.INVALID_REQUEST, sentence)

    kinds = [kind for kind, _ in parts]
    if not kinds:
        return refused("whose quota is it? name a user, a client-id or both")
    for kind, name in parts:
        if kind not in (USER, CLIENT_ID, IP):
            return refused(f"'{kind[:100]}' has no quotas: a user and a client-id have")
        if kinds.count(kind) > 1:
            return refused(f"{kind} is named twice")
        if name == "":
            return refused(f"the name of a {kind} cannot be empty")
    if IP in kinds:
        return refused("quotas of an ip are not served here: max.connections.per.ip bounds it")
    return None


def _refuse_changes(changes: Sequence[QuotaChange]) -> Refusal | None:
    keys = [change.key for change in changes]
    for key, value in changes:
        sentence = None
        if keys.count(key) > 1:
            sentence = f"{key[:100]} is named twice"
        elif value is None:
            continue
        elif key not in _KEYS:
            sentence = f"there is no quota '{key[:100]}': {', '.join(_KEYS)} exist"
        elif not (isfinite(value) and 0 < value < _LARGEST):
            sentence = f"{key} must be more than 0 and less than 2^63"
        elif key in _WHOLE and value != int(value):
            sentence = f"{key} must be a whole number of bytes"
        if sentence is not None:
            return Refusal(ErrorCode.INVALID_REQUEST, sentence)
    return None
