"""AlterPartitionReassignments (key 45), versions 0-1.

KIP-455. Null replicas cancel a reassignment. Each partition is moved or refused by itself; one that
is named twice is refused the second time. Version 1 may forbid to change the number of replicas.

Not there: waiting for the move (it goes on when this is answered), quotas for it.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.core.cluster.controller import Controller, Decided
from cotidal.core.cluster.decide.reassignment import decide_reassign
from cotidal.core.cluster.image import MetadataRecord
from cotidal.core.machine import Decision
from cotidal.errors import ErrorCode, Refusal
from cotidal.limits import PARTITIONS_PER_DECISION_MAX
from cotidal.messages.rpc.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from cotidal.values import NodeId


def decide(
    request: AlterPartitionReassignmentsRequest, asked: Asked, controller: Controller
) -> Decision[MetadataRecord, AlterPartitionReassignmentsResponse]:
    records: list[MetadataRecord] = []
    seen: set[tuple[str, int]] = set()
    answers: list[ReassignableTopicResponse] = []
    for topic in request.topics:
        results: list[ReassignablePartitionResponse] = []
        for number, replicas in topic.partitions:
            decided: Decided
            if (topic.name, number) in seen:
                decided = Refusal(
                    ErrorCode.INVALID_REQUEST, f"{topic.name}-{number} is named twice"
                )
            elif len(records) == PARTITIONS_PER_DECISION_MAX:
                decided = Refusal(
                    ErrorCode.POLICY_VIOLATION,
                    f"one request moves at most {PARTITIONS_PER_DECISION_MAX} partitions",
                )
            else:
                decided = decide_reassign(
                    controller,
                    topic.name,
                    number,
                    None if replicas is None else tuple(map(NodeId, replicas)),
                    may_change_factor=request.allow_replication_factor_change,
                )
            seen.add((topic.name, number))
            if isinstance(decided, Refusal):
                results.append(ReassignablePartitionResponse(number, decided.error, decided.text))
            else:
                records.extend(decided)
                results.append(ReassignablePartitionResponse(number, ErrorCode.NONE, None))
        answers.append(ReassignableTopicResponse(topic.name, tuple(results)))
    reply = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=tuple(answers),
    )
    return Decision(tuple(records), reply)
