"""UpdateFeatures (key 57), versions 0-2.

KIP-584; KIP-778 kinds of downgrade and validate-only from 1 on; from 2 on there is one error for
all. The updates are made together or not at all: before 2 each one that was refused says why, and
the first of them stands for the whole.

Not there: kraft.version, which is the quorum's own.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.features import (
    SAFE_DOWNGRADE,
    UPGRADE,
    FeatureUpdate,
    decide_features,
)
from cotidal.core.cluster.image import MetadataRecord
from cotidal.core.machine import Decision
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

KINDS_SINCE: Final = 1
ONE_ERROR_SINCE: Final = 2


def decide(
    request: UpdateFeaturesRequest, asked: Asked, controller: Controller
) -> Decision[MetadataRecord, UpdateFeaturesResponse]:
    updates = tuple(_update(each, asked.api_version) for each in request.feature_updates)
    decided = decide_features(controller, updates)
    first = next((refusal for refusal in decided.refusals if refusal is not None), None)
    results: tuple[UpdatableFeatureResult, ...] = ()
    if asked.api_version < ONE_ERROR_SINCE:
        results = tuple(
            UpdatableFeatureResult(
                update.name,
                refusal.error if refusal else ErrorCode.NONE,
                refusal.text if refusal else None,
            )
            for update, refusal in zip(updates, decided.refusals, strict=True)
        )
    reply = UpdateFeaturesResponse(
        error_code=first.error if first else ErrorCode.NONE,
        error_message=first.text if first else None,
        results=results,
    )
    return Decision(() if request.validate_only else decided.records, reply)


def _update(each: FeatureUpdateKey, version: int) -> FeatureUpdate:
    kind = each.upgrade_type
    if version < KINDS_SINCE:
        kind = SAFE_DOWNGRADE if each.allow_downgrade else UPGRADE
    return FeatureUpdate(each.feature, each.max_version_level, kind)
