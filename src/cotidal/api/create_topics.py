"""CreateTopics (key 19), versions 2-7.

KIP-464 defaults (-1 partitions, -1 replicas), KIP-525 the new topic's settings in the answer from 5
on, KIP-599 a quota of partitions created, strict from 6 on, KIP-516 topic ids in 7. Each topic is
created or refused by itself; all that are created are created together. Validate-only gives the
same answer and creates nothing; its topic id is zero.

Not there: policies, waiting until brokers have opened the partitions (timeout_ms bounds nothing:
the answer comes when the decision is committed).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.describe_quorum import METADATA_TOPIC
from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.topics import Created, NewTopic, decide_create_topic
from cotidal.core.cluster.image import BROKER_RESOURCE, MetadataRecord
from cotidal.core.machine import Decision
from cotidal.errors import ErrorCode, Refusal
from cotidal.limits import PARTITIONS_PER_DECISION_MAX
from cotidal.messages.rpc.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from cotidal.settings import TOPIC, effective
from cotidal.values import ZERO_UUID

DETAILS_SINCE: Final = 5


def decide(
    request: CreateTopicsRequest, asked: Asked, controller: Controller
) -> Decision[MetadataRecord, CreateTopicsResponse]:
    named = Counter(topic.name for topic in request.topics)
    records: list[MetadataRecord] = []
    results: dict[str, CreatableTopicResult] = {}
    created_names: list[str] = []
    room = PARTITIONS_PER_DECISION_MAX
    for topic in request.topics:
        if topic.name in results:
            continue
        decided: Created | Refusal
        if named[topic.name] > 1:
            decided = Refusal(ErrorCode.INVALID_REQUEST, f"topic '{topic.name}' is named twice")
        elif topic.name == METADATA_TOPIC:
            decided = Refusal(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                f"{METADATA_TOPIC} is the controllers' own and cannot be created",
            )
        else:
            decided = decide_create_topic(controller, _new_topic(topic), also=created_names)
            if isinstance(decided, Created) and decided.partitions > room:
                decided = Refusal(
                    ErrorCode.POLICY_VIOLATION,
                    f"more than {PARTITIONS_PER_DECISION_MAX} partitions in one request; ask for "
                    "them in several",
                )
        if isinstance(decided, Refusal):
            results[topic.name] = CreatableTopicResult(
                name=topic.name, error_code=decided.error, error_message=decided.text
            )
            continue
        room -= decided.partitions
        created_names.append(topic.name)
        records.extend(decided.records)
        results[topic.name] = _created(topic, decided, request, asked, controller)
    reply = CreateTopicsResponse(topics=tuple(results.values()))
    return Decision(() if request.validate_only else tuple(records), reply)


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=tuple((each.partition_index, each.broker_ids) for each in topic.assignments),
        configs=tuple((each.name, each.value) for each in topic.configs),
    )


def _created(
    topic: CreatableTopic,
    created: Created,
    request: CreateTopicsRequest,
    asked: Asked,
    controller: Controller,
) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name,
        topic_id=ZERO_UUID if request.validate_only else created.topic_id,
        error_message=None,
        num_partitions=created.partitions,
        replication_factor=created.replication_factor,
        configs=_settings(topic, controller) if asked.api_version >= DETAILS_SINCE else (),
    )


def _settings(topic: CreatableTopic, controller: Controller) -> tuple[CreatableTopicConfigs, ...]:
    image = controller.image
    own = {each.name: each.value for each in topic.configs if each.value is not None}
    broker = image.config(BROKER_RESOURCE, str(controller.node_id))
    found = []
    for name in TOPIC:
        held = effective(
            name,
            topic=own,
            broker=broker,
            cluster=image.cluster_config,
            static=controller.settings,
        )
        if held.text is not None:
            found.append(
                CreatableTopicConfigs(name=name, value=held.text, config_source=held.source)
            )
    return tuple(found)
