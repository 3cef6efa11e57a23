"""IncrementalAlterConfigs (key 44), versions 0-1.

KIP-339: set, delete, append to a list, subtract from a list. Each resource is changed wholly or
refused wholly.

Not there: loggers of brokers (KIP-412), client metrics, policies.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.api.resources import decide_each
from cotidal.core.cluster.controller import Controller, Decided
from cotidal.core.cluster.decide.configs import ConfigChange, decide_incremental_alter
from cotidal.core.cluster.image import MetadataRecord
from cotidal.core.machine import Decision
from cotidal.messages.rpc.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def decide(
    request: IncrementalAlterConfigsRequest, asked: Asked, controller: Controller
) -> Decision[MetadataRecord, IncrementalAlterConfigsResponse]:
    records, outcomes = decide_each(
        request.resources, lambda resource: _decide_resource(resource, controller)
    )
    reply = IncrementalAlterConfigsResponse(
        responses=tuple(AlterConfigsResourceResponse(*outcome) for outcome in outcomes)
    )
    return Decision(() if request.validate_only else records, reply)


def _decide_resource(resource: AlterConfigsResource, controller: Controller) -> Decided:
    changes = tuple(
        ConfigChange(each.name, each.config_operation, each.value) for each in resource.configs
    )
    return decide_incremental_alter(
        controller, (resource.resource_type, resource.resource_name), changes
    )
