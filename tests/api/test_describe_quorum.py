from __future__ import annotations

from cotidal.api.describe_quorum import answer
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from cotidal.values import ZERO_UUID


def ask(topic, partition=0):
    partitions = (DescribeQuorumRequestPartitionData(partition),)
    return DescribeQuorumRequest((DescribeQuorumRequestTopicData(topic, partitions),))


def test_quorum_tells_leader_voters_and_where_controllers_listen(cluster, asked):
    response = answer(ask("__cluster_metadata"), asked(2), cluster.view)
    (partition,) = response.topics[0].partitions
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (1, 3, 40)
    (voter,) = partition.current_voters
    assert (voter.replica_id, voter.log_end_offset) == (1, 40)
    assert (voter.replica_directory_id, voter.last_fetch_timestamp) == (b"d" * 16, 7)
    (node,) = response.nodes
    assert node.listeners[0] == ("CONTROLLER", "c1", 9093)
    assert response.error_message is None


def test_directories_and_nodes_are_new_in_version_2(cluster, asked):
    response = answer(ask("__cluster_metadata"), asked(1), cluster.view)
    (voter,) = response.topics[0].partitions[0].current_voters
    assert voter.replica_directory_id == ZERO_UUID
    assert response.nodes == ()


def test_other_partitions_have_no_quorum(cluster, asked):
    for request in (ask("orders"), ask("__cluster_metadata", 1)):
        (partition,) = answer(request, asked(2), cluster.view).topics[0].partitions
        assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert partition.leader_id == -1
