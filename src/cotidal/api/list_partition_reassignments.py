"""ListPartitionReassignments (key 46), version 0.

KIP-455. Those under way, of the named partitions or, with null, of all; what is not being
reassigned or does not exist is left out.

Not there: nothing of the protocol.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.reassignment import reassignments
from cotidal.core.cluster.image import MetadataRecord
from cotidal.core.machine import Decision
from cotidal.messages.rpc.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def decide(
    request: ListPartitionReassignmentsRequest, asked: Asked, controller: Controller
) -> Decision[MetadataRecord, ListPartitionReassignmentsResponse]:
    by_topic: dict[str, dict[int, OngoingPartitionReassignment]] = {}
    for topic, number, replicas, adding, removing in reassignments(
        controller.image, request.topics
    ):
        each = OngoingPartitionReassignment(number, replicas, adding, removing)
        by_topic.setdefault(topic, {})[number] = each
    reply = ListPartitionReassignmentsResponse(
        error_message=None,
        topics=tuple(
            OngoingTopicReassignment(name, tuple(ongoing.values()))
            for name, ongoing in by_topic.items()
        ),
    )
    return Decision((), reply)
