"""Where this node keeps its replicas, told to the controller (AssignReplicasToDirs). Pure. KIP-858.

The controller must know the directory of each replica: when one fails, it moves leaderships away.
A replica whose log alone has failed is told to be in LOST_DIRECTORY, which is never online: it
leaves the ISR and leads no more. What is said of a replica is compared with what is committed, so
nothing is asked for that is so already. One request is under way at a time.
Owns of the state: housing_due, housing_retry_at, housing_under_way.
"""

from __future__ import annotations

from typing import Final

from cotidal.api import to_controller as api
from cotidal.core.cluster.image import Partition
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.assign_replicas_to_dirs import AssignReplicasToDirsResponse
from cotidal.node import calls
from cotidal.node.events import LogHoused
from cotidal.node.hosting import Hosted
from cotidal.node.state import NodeState
from cotidal.values import NO_BROKER_EPOCH, Millis, TopicPartition, Uuid

RETRY_MS: Final = 50
TIMEOUT_MS: Final = 3_000

_OVER: Final = (
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)
"""It is no longer ours to say; metadata will tell."""


class HousingCall:
    """A request under way."""

    __slots__ = ("partitions",)

    def __init__(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.partitions = partitions


def say(state: NodeState, hosted: Hosted, directory: Uuid) -> None:
    """The controller shall know this replica to be there."""
    hosted.housed_in = directory
    told = state.controller.committed.partition(*hosted.replica.partition)
    if told is not None:
        check(state, hosted, told)


def on_housed(state: NodeState, event: LogHoused) -> None:
    """A log has moved to another directory of this node."""
    hosted = state.hosted_of(event.partition, event.topic_id)
    if hosted is None:
        return
    hosted.directory = event.directory
    if hosted.replica.offline_reason is None:
        say(state, hosted, event.directory)


def check(state: NodeState, hosted: Hosted, told: Partition) -> None:
    """Something was committed about the partition: is it what was said?"""
    wanted = hosted.housed_in
    if wanted is not None and told.directory(state.config.node_id) != wanted:
        state.housing_due[hosted.replica.partition] = None


def pump(state: NodeState) -> None:
    """At the end of a step: send what has gathered."""
    leader = state.controller.leader
    if state.housing_under_way or leader is None:
        return
    if state.controller.broker_epoch == NO_BROKER_EPOCH:
        return  # not registered yet
    if state.housing_retry_at is not None and state.now < state.housing_retry_at:
        return
    due, state.housing_due = state.housing_due, {}
    state.housing_retry_at = None
    by_directory: dict[Uuid, list[tuple[Uuid, int]]] = {}
    partitions: list[TopicPartition] = []
    for partition in due:
        hosted = state.hosted.get(partition)
        if hosted is not None and hosted.housed_in is not None:
            replica = (hosted.replica.topic_id, partition.partition)
            by_directory.setdefault(hosted.housed_in, []).append(replica)
            partitions.append(partition)
    if not partitions:
        return
    state.housing_under_way = True
    calls.call(
        state,
        leader.node_id,
        leader.endpoint,
        lane=calls.CONTROL_LANE,
        api=ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        version=api.ASSIGN_VERSION,
        message=api.assign_replicas(
            by_directory,
            node_id=state.config.node_id,
            broker_epoch=state.controller.broker_epoch,
        ),
        timeout_ms=TIMEOUT_MS,
        owner=HousingCall(tuple(partitions)),
    )


def on_answered(
    state: NodeState, asked: HousingCall, response: AssignReplicasToDirsResponse
) -> None:
    state.housing_under_way = False
    if response.error_code != 0:
        _again(state, asked.partitions)
        return
    names = state.controller.committed.topic_names
    refused = [
        TopicPartition(names.get(topic.topic_id, ""), told.partition_index)
        for directory in response.directories
        for topic in directory.topics
        for told in topic.partitions
        if told.error_code != 0 and told.error_code not in _OVER
    ]
    if refused:
        _again(state, tuple(refused))


def on_failed(state: NodeState, asked: HousingCall) -> None:
    """It may have been decided all the same; to say it twice does no harm."""
    state.housing_under_way = False
    _again(state, asked.partitions)


def _again(state: NodeState, partitions: tuple[TopicPartition, ...]) -> None:
    state.housing_retry_at = Millis(state.now + RETRY_MS)
    for partition in partitions:
        state.housing_due[partition] = None
