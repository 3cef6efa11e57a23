"""AlterClientQuotas (key 49), versions 0-1.

KIP-546. The quotas of users, client ids and of both together, by name and by default; each entity
is changed wholly or refused wholly. What is set is enforced by every broker for itself
(node/quotas.py).

Not there: quotas of an ip (connection_creation_rate), which are refused.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.quotas import QuotaChange, decide_quotas
from cotidal.core.cluster.image import MetadataRecord, QuotaEntity
from cotidal.core.machine import Decision
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)


def decide(
    request: AlterClientQuotasRequest, asked: Asked, controller: Controller
) -> Decision[MetadataRecord, AlterClientQuotasResponse]:
    records: list[MetadataRecord] = []
    entries: list[AlterClientQuotasResponseEntryData] = []
    seen: set[QuotaEntity] = set()
    for entry in request.entries:
        parts = tuple((part.entity_type, part.entity_name) for part in entry.entity)
        changes = tuple(QuotaChange(op.key, None if op.remove else op.value) for op in entry.ops)
        decided = decide_quotas(controller, parts, changes)
        if parts in seen:
            decided = Refusal(ErrorCode.INVALID_REQUEST, "the same entity is named twice")
        seen.add(parts)
        if isinstance(decided, Refusal):
            entries.append(told(entry, decided.error, decided.text))
        else:
            records.extend(decided)
            entries.append(told(entry, ErrorCode.NONE, None))
    reply = AlterClientQuotasResponse(entries=tuple(entries))
    return Decision(() if request.validate_only else tuple(records), reply)


def told(
    entry: AlterClientQuotasRequestEntryData, error: ErrorCode, why: str | None
) -> AlterClientQuotasResponseEntryData:
    entity = tuple(AlterClientQuotasResponseEntityData(*part) for part in entry.entity)
    return AlterClientQuotasResponseEntryData(error, why, entity)
