"""DescribeClientQuotas (key 48), versions 0-1.

KIP-546. Each component asks for one type of entity: this name (0), the default (1), any (2). An
entity is told if every component finds its part in it; ``strict``: and if it has no others.

Not there: nothing of the protocol.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.view import View
from cotidal.core.cluster.decide.quotas import CLIENT_ID, IP, USER
from cotidal.core.cluster.image import QuotaEntity
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

EXACT: Final = 0
DEFAULT: Final = 1
ANY: Final = 2


def answer(
    request: DescribeClientQuotasRequest, asked: Asked, view: View
) -> DescribeClientQuotasResponse:
    refusal = _refusal(request.components)
    if refusal is not None:
        return DescribeClientQuotasResponse(
            error_code=refusal.error, error_message=refusal.text, entries=None
        )
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=tuple(
            EntryData(
                tuple(EntityData(*part) for part in entity),
                tuple(ValueData(*quota) for quota in values.items()),
            )
            for entity, values in view.image.quotas.items()
            if _is_wanted(entity, request)
        ),
    )


def _is_wanted(entity: QuotaEntity, request: DescribeClientQuotasRequest) -> bool:
    names = dict(entity)
    if request.strict and len(names) != len(request.components):
        return False
    for wanted in request.components:
        if wanted.entity_type not in names:
            return False
        if wanted.match_type != ANY and names[wanted.entity_type] != wanted.match:
            return False
    return True


def _refusal(components: tuple[ComponentData, ...]) -> Refusal | None:
    kinds = [each.entity_type for each in components]
    for kind, match_type, match in components:
        sentence = None
        if kind not in (USER, CLIENT_ID, IP) and kind:
            return Refusal(
                ErrorCode.UNSUPPORTED_VERSION, f"there are no quotas of a '{kind[:100]}'"
            )
        if not kind:
            sentence = "a component names no type of entity"
        elif kinds.count(kind) > 1:
            sentence = f"{kind} is asked for twice"
        elif match_type not in (EXACT, DEFAULT, ANY):
            sentence = f"there is no match type {match_type}: exact (0), default (1), any (2) exist"
        elif (match_type == EXACT) != (match is not None):
            sentence = f"{kind}: a name is given for match type 0, and for no other"
        if sentence is not None:
            return Refusal(ErrorCode.INVALID_REQUEST, sentence)
    if IP in kinds and len(kinds) > 1:
        return Refusal(
            ErrorCode.INVALID_REQUEST, "an ip cannot be asked for with a user or client-id"
        )
    return None
