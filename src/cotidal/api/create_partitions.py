"""CreatePartitions (key 37), versions 0-3.

KIP-195; KIP-599 a quota of partitions created, strict in 3. ``count`` is the number of partitions
that a topic shall have in all. Each topic is changed or refused by itself.

Not there: waiting until brokers have opened the partitions (timeout_ms bounds nothing: the answer
comes when the decision is committed).
"""

from __future__ import annotations

from collections import Counter

from cotidal.api.asked import Asked
from cotidal.core.cluster.controller import Controller, Decided
from cotidal.core.cluster.decide.topics import decide_create_partitions
from cotidal.core.cluster.image import MetadataRecord
from cotidal.core.machine import Decision
from cotidal.errors import ErrorCode, Refusal
from cotidal.limits import PARTITIONS_PER_DECISION_MAX
from cotidal.messages.rpc.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def decide(
    request: CreatePartitionsRequest, asked: Asked, controller: Controller
) -> Decision[MetadataRecord, CreatePartitionsResponse]:
    named = Counter(topic.name for topic in request.topics)
    records: list[MetadataRecord] = []
    results: dict[str, CreatePartitionsTopicResult] = {}
    for topic in request.topics:
        if topic.name in results:
            continue
        decided = _decide_topic(topic, controller, twice=named[topic.name] > 1)
        if not isinstance(decided, Refusal) and len(records) + len(decided) > (
            PARTITIONS_PER_DECISION_MAX
        ):
            decided = Refusal(
                ErrorCode.POLICY_VIOLATION,
                f"more than {PARTITIONS_PER_DECISION_MAX} partitions in one request; ask for them "
                "in several",
            )
        if isinstance(decided, Refusal):
            results[topic.name] = CreatePartitionsTopicResult(
                name=topic.name, error_code=decided.error, error_message=decided.text
            )
        else:
            records.extend(decided)
            results[topic.name] = CreatePartitionsTopicResult(name=topic.name)
    reply = CreatePartitionsResponse(results=tuple(results.values()))
    return Decision(() if request.validate_only else tuple(records), reply)


def _decide_topic(topic: CreatePartitionsTopic, controller: Controller, *, twice: bool) -> Decided:
    if twice:
        return Refusal(ErrorCode.INVALID_REQUEST, f"topic '{topic.name}' is named twice")
    assignments = None
    if topic.assignments is not None:
        assignments = tuple(assignment.broker_ids for assignment in topic.assignments)
    return decide_create_partitions(
        controller, topic.name, count=topic.partition_count, assignments=assignments
    )
