"""AlterConfigs (key 33), versions 0-2.

KIP-133. What is not named goes back to its default; IncrementalAlterConfigs has replaced it. Each
resource is changed wholly or refused wholly.

Not there: loggers of brokers, client metrics, policies.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.api.resources import decide_each
from cotidal.core.cluster.controller import Controller, Decided
from cotidal.core.cluster.decide.configs import decide_alter
from cotidal.core.cluster.image import MetadataRecord
from cotidal.core.machine import Decision
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def decide(
    request: AlterConfigsRequest, asked: Asked, controller: Controller
) -> Decision[MetadataRecord, AlterConfigsResponse]:
    records, outcomes = decide_each(
        request.resources, lambda resource: _decide_resource(resource, controller)
    )
    reply = AlterConfigsResponse(
        responses=tuple(AlterConfigsResourceResponse(*outcome) for outcome in outcomes)
    )
    return Decision(() if request.validate_only else records, reply)


def _decide_resource(resource: AlterConfigsResource, controller: Controller) -> Decided:
    values = {each.name: each.value for each in resource.configs}
    if len(values) != len(resource.configs):
        return Refusal(ErrorCode.INVALID_REQUEST, "a setting is named twice")
    return decide_alter(controller, (resource.resource_type, resource.resource_name), values)
