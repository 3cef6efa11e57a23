"""Metadata (key 3), versions 0-13.

No topics named: all of them (version 0: an empty list; later: null). KIP-4 cluster id and internal
topics, KIP-430 authorized operations, KIP-516 topic ids from 10 on, KIP-1102 top-level error from
13. ``controller_id`` is a broker that clients may ask for decisions; every one passes them on
(KIP-590).

Topics that are asked for and missing are created by the node (``missing_topics``), which then asks
for the answer again.

Not there: nothing of the protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from cotidal.api.reachability import controller_for_clients, named, reachable
from cotidal.api.view import View
from cotidal.core.cluster.decide.topics import INTERNAL_TOPICS, refuse_name
from cotidal.core.cluster.image import Endpoint, Image, Partition, Topic
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from cotidal.settings import effective
from cotidal.values import NO_NODE, ZERO_UUID, NodeId, Uuid

ALL_BY_NULL_SINCE: Final = 1
AUTO_CREATE_FLAG_SINCE: Final = 4
LISTENER_ERRORS_SINCE: Final = 6
CLUSTER_OPERATIONS_IN: Final = range(8, 11)
TOPIC_OPERATIONS_SINCE: Final = 8
NULL_NAME_SINCE: Final = 12


def answer(request: MetadataRequest, asked: Asked, view: View) -> MetadataResponse:
    operations = NOT_ASKED
    if asked.api_version >= TOPIC_OPERATIONS_SINCE and request.include_topic_authorized_operations:
        operations = TOPIC_OPERATIONS
    cluster_operations = NOT_ASKED
    if asked.api_version in CLUSTER_OPERATIONS_IN and request.include_cluster_authorized_operations:
        cluster_operations = CLUSTER_OPERATIONS
    reached = reachable(view, asked.listener)
    return MetadataResponse(
        brokers=_brokers(view.image, named(view, asked.listener)),
        cluster_id=view.cluster_id,
        controller_id=controller_for_clients(view, reached),
        topics=tuple(
            _topic(found, asked, view, reached, operations) if isinstance(found, Topic) else found
            for found in _topics(request, asked, view.image)
        ),
        cluster_authorized_operations=cluster_operations,
    )


def missing_topics(request: MetadataRequest, asked: Asked, view: View) -> tuple[str, ...]:
    """Names that the request may bring into being: asked for by name, valid, not there."""
    if _asks_for_all(request, asked) or not request.topics:
        return ()
    if asked.api_version >= AUTO_CREATE_FLAG_SINCE and not request.allow_auto_topic_creation:
        return ()
    if not effective("auto.create.topics.enable", static=view.settings).value:
        return ()
    names = dict.fromkeys(
        topic.name for topic in request.topics if topic.name is not None and not _by_id(topic[0])
    )
    topics = view.image.topics
    return tuple(name for name in names if name not in topics and refuse_name(name) is None)


def describe_partition(
    view: View,
    reached: Mapping[NodeId, Endpoint],
    number: int,
    partition: Partition,
    version: int,
) -> MetadataResponsePartition:
    """A partition as a client may see it that can reach the brokers ``reached``."""
    replicas, isr, leader = partition.replicas, partition.isr, partition.leader
    offline = tuple([replica for replica in replicas if replica not in reached])
    if len(isr) < len(replicas):  # whose log works may be in sync
        offline = tuple([r for r in replicas if r in offline or _has_failed(view, partition, r)])
    error = ErrorCode.NONE
    if leader not in reached:
        error = ErrorCode.LEADER_NOT_AVAILABLE
        known = leader in view.image.brokers and not view.is_doubted(leader)
        if version >= LISTENER_ERRORS_SINCE and known:
            error = ErrorCode.LISTENER_NOT_FOUND
        leader = NO_NODE
    if version == 0 and offline:
        # The first version has no offline replicas: it leaves them out and says that it did.
        replicas = tuple(replica for replica in replicas if replica not in offline)
        isr = tuple(member for member in isr if member not in offline)
        error = error or ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error, number, leader, partition.leader_epoch, replicas, isr, offline
    )


def _has_failed(view: View, partition: Partition, replica: NodeId) -> bool:
    """Its broker lives, but its log or the directory of it is offline (KIP-112, KIP-858)."""
    broker = view.image.brokers.get(replica)
    return broker is not None and not broker.has_online(partition.directory(replica))


def _brokers(image: Image, named: Mapping[NodeId, Endpoint]) -> tuple[MetadataResponseBroker, ...]:
    return tuple(
        MetadataResponseBroker(node_id, endpoint.host, endpoint.port, image.brokers[node_id].rack)
        for node_id, endpoint in named.items()
    )


def _topics(
    request: MetadataRequest, asked: Asked, image: Image
) -> Iterator[Topic | MetadataResponseTopic]:
    """What was asked for: the topic, or the answer that there is none."""
    if _asks_for_all(request, asked):
        yield from image.topics.values()
        return
    # Each topic once, however often it is named.
    for topic_id, name in dict.fromkeys(request.topics or ()):
        if _by_id(topic_id):
            yield image.topic_by_id(topic_id) or _unknown_id(topic_id, asked)
        else:
            yield image.topics.get(name or "") or _unknown_name(name or "")


def _topic(
    topic: Topic,
    asked: Asked,
    view: View,
    reached: Mapping[NodeId, Endpoint],
    operations: int,
) -> MetadataResponseTopic:
    version = asked.api_version
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=tuple(
            [
                describe_partition(view, reached, number, partition, version)
                for number, partition in topic.partitions.items()
            ]
        ),
        topic_authorized_operations=operations,
    )


def _unknown_id(topic_id: Uuid, asked: Asked) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_ID,
        name=None if asked.api_version >= NULL_NAME_SINCE else "",
        topic_id=topic_id,
    )


def _unknown_name(name: str) -> MetadataResponseTopic:
    refusal = refuse_name(name)
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if refusal is None else refusal.error
    return MetadataResponseTopic(error_code=error, name=name, is_internal=name in INTERNAL_TOPICS)


def _asks_for_all(request: MetadataRequest, asked: Asked) -> bool:
    if asked.api_version < ALL_BY_NULL_SINCE:
        return not request.topics
    return request.topics is None


def _by_id(topic_id: Uuid) -> bool:
    return topic_id != ZERO_UUID
