"""ListConfigResources (key 74), versions 0-1.

KIP-714 (version 0 lists subscriptions of client metrics only, of which there are none), KIP-1142
(version 1 lists every kind). No type named: all of them.

Not there: client metrics; groups are those that have settings of their own.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.view import View
from cotidal.core.cluster.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

ALL_KINDS_SINCE: Final = 1
_KINDS: Final = (
    TOPIC_RESOURCE,
    BROKER_RESOURCE,
    BROKER_LOGGER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
)


def answer(
    request: ListConfigResourcesRequest, asked: Asked, view: View
) -> ListConfigResourcesResponse:
    kinds: tuple[int, ...] = (CLIENT_METRICS_RESOURCE,)
    if asked.api_version >= ALL_KINDS_SINCE:
        kinds = tuple(dict.fromkeys(request.resource_types)) or _KINDS
    if any(kind not in _KINDS for kind in kinds):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=tuple(
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in kinds
            for name in _names(kind, view)
        )
    )


def _names(kind: int, view: View) -> tuple[str, ...]:
    if kind == TOPIC_RESOURCE:
        return tuple(view.image.topics)
    if kind in (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE):
        return tuple(map(str, view.image.brokers))
    return tuple(name for of_kind, name in view.image.configs if of_kind == kind)
