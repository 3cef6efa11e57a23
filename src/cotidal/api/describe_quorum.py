"""DescribeQuorum (key 55), versions 0-2.

KIP-595; KIP-836 fetch times from 1 on; KIP-853 directory ids and endpoints from 2 on. The one
partition that a quorum has is __cluster_metadata-0; others are told UNKNOWN_TOPIC_OR_PARTITION.
Only the leader knows how far the others have got: another node passes a client's question on to it,
and refuses a controller's with NOT_CONTROLLER.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.view import View, VoterView
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)
from cotidal.values import NO_EPOCH, NO_NODE, NO_OFFSET, ZERO_UUID

METADATA_TOPIC: Final = "__cluster_metadata"
DIRECTORIES_SINCE: Final = 2


def answer(request: DescribeQuorumRequest, asked: Asked, view: View) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        error_message=None,
        topics=tuple(
            DescribeQuorumResponseTopicData(
                topic_name=topic.topic_name,
                partitions=tuple(
                    _partition(topic.topic_name, partition.partition_index, asked, view)
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
        nodes=_nodes(view) if asked.api_version >= DIRECTORIES_SINCE else (),
    )


def _partition(
    topic: str, partition: int, asked: Asked, view: View
) -> DescribeQuorumResponsePartitionData:
    if (topic, partition) != (METADATA_TOPIC, 0):
        return DescribeQuorumResponsePartitionData(
            partition_index=partition,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=f"only {METADATA_TOPIC}-0 has a quorum",
            leader_id=NO_NODE,
            leader_epoch=NO_EPOCH,
            high_watermark=NO_OFFSET,
        )
    quorum = view.quorum
    return DescribeQuorumResponsePartitionData(
        partition_index=partition,
        error_message=None,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.leader_epoch,
        high_watermark=quorum.high_watermark,
        current_voters=tuple(_state(voter, asked) for voter in quorum.voters),
        observers=tuple(_state(observer, asked) for observer in quorum.observers),
    )


def _state(voter: VoterView, asked: Asked) -> ReplicaState:
    with_directory = asked.api_version >= DIRECTORIES_SINCE
    return ReplicaState(
        replica_id=voter.node_id,
        replica_directory_id=voter.directory_id if with_directory else ZERO_UUID,
        log_end_offset=voter.end_offset,
        last_fetch_timestamp=voter.last_fetch_ms,
        last_caught_up_timestamp=voter.last_caught_up_ms,
    )


def _nodes(view: View) -> tuple[Node, ...]:
    return tuple(
        Node(
            node_id=node.node_id,
            listeners=tuple(Listener(each.name, each.host, each.port) for each in node.endpoints),
        )
        for node in view.quorum.controllers
    )
