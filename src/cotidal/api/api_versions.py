"""ApiVersions (key 18), versions 0-4.

KIP-511 client software name and version, checked from 3 on. KIP-584 features from 3 on; below 4 a
feature whose oldest level is 0 is left out, because older clients cannot read it (KAFKA-17492).
A version that is not known is answered in version 0 with UNSUPPORTED_VERSION and this API's own
range, so that the client can ask again: the caller passes None for the request.
Our own client (by its name, from 3 on) is also told of the APIs that only it asks for.
kraft.version is the quorum's own feature: its level is in force, though perhaps not committed yet.

Not there: the client's name and version are not kept.
"""

from __future__ import annotations

import re
from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.reachability import is_controller_listener
from cotidal.api.registry import APIS, OURS, served
from cotidal.api.view import View
from cotidal.core.cluster.decide.features import KRAFT_VERSION, OFFERED
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from cotidal.messages.rpc.apis import ApiKey

SOFTWARE_SINCE: Final = 3
OUR_CLIENT: Final = "cotidal"
LEVEL_ZERO_SINCE: Final = 4

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def answer(request: ApiVersionsRequest | None, asked: Asked, view: View) -> ApiVersionsResponse:
    if request is None:
        api = APIS[ApiKey.API_VERSIONS]
        own = ApiVersion(api.key, api.advertised_oldest, api.newest)
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=(own,))
    if asked.api_version >= SOFTWARE_SINCE and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return ApiVersionsResponse(
        api_keys=_api_keys(
            for_controller=is_controller_listener(view, asked.listener),
            is_ours=asked.api_version >= SOFTWARE_SINCE
            and request.client_software_name == OUR_CLIENT,
        ),
        supported_features=tuple(
            SupportedFeatureKey(*feature)
            for feature in OFFERED
            if feature.oldest > 0 or asked.api_version >= LEVEL_ZERO_SINCE
        ),
        finalized_features_epoch=max(view.quorum.high_watermark - 1, -1),
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in _finalized(view).items()
        ),
    )


def _api_keys(*, for_controller: bool, is_ours: bool) -> tuple[ApiVersion, ...]:
    """What nodes ask each other is told too: a broker of another make asks before it speaks."""
    return tuple(
        ApiVersion(key, APIS[key].advertised_oldest if key in APIS else oldest, newest)
        for key, (oldest, newest) in served(by_controller=for_controller).items()
        if is_ours or key not in OURS
    )


def _finalized(view: View) -> dict[str, int]:
    quorum = view.quorum
    own = {KRAFT_VERSION.name: quorum.kraft_version} if quorum.kraft_version else {}
    return view.image.features | own
