"""UpdateFeatures (key 57), versions 0-2.

KIP-584; KIP-778 kinds of downgrade and validate-only from 1 on; from 2 on there is one error for
all. The updates are made together or not at all: before 2 each one that was refused says why, and
the first of them stands for the whole.

kraft.version is the quorum's own: it is raised by a request that names nothing else, unless it is
where it is wanted already.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.features import (
    KRAFT_VERSION,
    SAFE_DOWNGRADE,
    UPGRADE,
    FeatureUpdate,
    decide_features,
)
from cotidal.core.cluster.image import Image, MetadataRecord
from cotidal.core.machine import Decision
from cotidal.core.quorum.dialogue import MemberReply, RaiseVersion
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.quorum import KRaftVersionFeature
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


def kraft_version(request: UpdateFeaturesRequest) -> int | None:
    """The kraft.version that is asked for, if any is."""
    for each in request.feature_updates:
        if each.feature == KRAFT_VERSION.name:
            return int(each.max_version_level)
    return None


def without_kraft_version(request: UpdateFeaturesRequest) -> UpdateFeaturesRequest:
    others = [each for each in request.feature_updates if each.feature != KRAFT_VERSION.name]
    return request._replace(feature_updates=tuple(others))


def raising(request: UpdateFeaturesRequest, image: Image) -> RaiseVersion | Refusal:
    """What the quorum is to be asked. Every voter has registered what it supports."""
    level = kraft_version(request)
    assert level is not None
    if len(request.feature_updates) > 1:
        sentence = f"{KRAFT_VERSION.name} is raised by itself: leave the other features out"
        return Refusal(ErrorCode.INVALID_REQUEST, sentence)
    supported = tuple(
        (node.node_id, KRaftVersionFeature(each.oldest, each.newest))
        for node in image.controllers.values()
        for each in node.features
        if each.name == KRAFT_VERSION.name
    )
    return RaiseVersion(level, supported, request.timeout_ms, request.validate_only)


def raised(request: UpdateFeaturesRequest, told: MemberReply | Refusal) -> UpdateFeaturesResponse:
    message = told.text or None
    return UpdateFeaturesResponse(
        error_code=told.error,
        error_message=message,
        results=tuple(
            UpdatableFeatureResult(each.feature, told.error, message)
            for each in request.feature_updates
        ),
    )


def _update(each: FeatureUpdateKey, version: int) -> FeatureUpdate:
    kind = each.upgrade_type
    if version < KINDS_SINCE:
        kind = SAFE_DOWNGRADE if each.allow_downgrade else UPGRADE
    return FeatureUpdate(each.feature, each.max_version_level, kind)
