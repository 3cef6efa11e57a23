"""DeleteTopics (key 20), versions 1-6.

By name; from 6 on by name or by id (KIP-516), never both. KIP-599 a quota of partitions deleted,
strict from 5 on. Each topic is deleted or refused by itself.

Not there: waiting until brokers have removed the logs (timeout_ms bounds nothing: the answer comes
when the decision is committed).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from cotidal.api.asked import Asked
from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.topics import decide_delete_topic
from cotidal.core.cluster.image import Image, MetadataRecord, Topic
from cotidal.core.machine import Decision
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from cotidal.values import ZERO_UUID, Uuid, uuid_text

BY_ID_SINCE: Final = 6
DELETION_DISABLED_SINCE: Final = 3


def decide(
    request: DeleteTopicsRequest, asked: Asked, controller: Controller
) -> Decision[MetadataRecord, DeleteTopicsResponse]:
    wanted = request.topics
    if asked.api_version < BY_ID_SINCE:
        wanted = tuple(DeleteTopicState(name=name) for name in request.topic_names)
    disabled = None
    if not controller.flag("delete.topic.enable"):
        newer = asked.api_version >= DELETION_DISABLED_SINCE
        disabled = Refusal(
            ErrorCode.TOPIC_DELETION_DISABLED if newer else ErrorCode.INVALID_REQUEST,
            "topics cannot be deleted here: delete.topic.enable is false",
        )
    found = [_find(state, controller.image) for state in wanted]
    times = Counter(topic.topic_id for topic in found if isinstance(topic, Topic))
    records: list[MetadataRecord] = []
    results: list[DeletableTopicResult] = []
    for state, topic in zip(wanted, found, strict=True):
        refusal = disabled
        if refusal is None and isinstance(topic, Refusal):
            refusal = topic
        if refusal is None and isinstance(topic, Topic) and times[topic.topic_id] > 1:
            refusal = Refusal(ErrorCode.INVALID_REQUEST, f"topic '{topic.name}' is named twice")
        if refusal is not None or isinstance(topic, Refusal):
            results.append(_refused(state, refusal or Refusal(ErrorCode.INVALID_REQUEST)))
            continue
        decided = decide_delete_topic(controller, topic.topic_id)
        assert not isinstance(decided, Refusal), decided
        records.extend(decided)
        results.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id))
    return Decision(tuple(records), DeleteTopicsResponse(responses=tuple(results)))


def _find(state: DeleteTopicState, image: Image) -> Topic | Refusal:
    by_id = state.topic_id != ZERO_UUID
    if state.name is not None and by_id:
        return Refusal(
            ErrorCode.INVALID_REQUEST, "a topic is named by its name or by its id, not by both"
        )
    if state.name is None and not by_id:
        return Refusal(ErrorCode.INVALID_REQUEST, "neither the name nor the id of a topic is given")
    if state.name is not None:
        return image.topics.get(state.name) or Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic '{state.name}' does not exist"
        )
    return image.topic_by_id(Uuid(state.topic_id)) or Refusal(
        ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with id {uuid_text(state.topic_id)}"
    )


def _refused(state: DeleteTopicState, refusal: Refusal) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=state.name,
        topic_id=state.topic_id,
        error_code=refusal.error,
        error_message=refusal.text,
    )
