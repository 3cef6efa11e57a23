"""What operators ask of a cluster, asked of a node: it has one broker, and answers all the same."""

from __future__ import annotations

import pytest

from asking import METADATA, node_with, produce, written
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from cotidal.messages.rpc.elect_leaders import ElectLeadersRequest, TopicPartitions
from cotidal.messages.rpc.list_partition_reassignments import ListPartitionReassignmentsRequest
from cotidal.messages.rpc.metadata import MetadataRequest
from cotidal.messages.rpc.unregister_broker import UnregisterBrokerRequest
from cotidal.messages.rpc.update_features import FeatureUpdateKey, UpdateFeaturesRequest

ELECT, REASSIGN, LIST, FEATURES, UNREGISTER = 43, 45, 46, 57, 64


@pytest.fixture
def node():
    return node_with("orders", 2)


def test_leaders_are_where_they_prefer_to_be(node):
    reply = node.ask(ELECT, 2, ElectLeadersRequest(0, None))
    assert reply.replica_election_results == ()
    named = (TopicPartitions("orders", (0, 9)),)
    for kind in (0, 1):
        reply = node.ask(ELECT, 2, ElectLeadersRequest(kind, named))
        codes = [each.error_code for each in reply.replica_election_results[0].partition_result]
        assert codes == [ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def reassign(node, *replicas):
    partition = ReassignablePartition(0, replicas or None)
    request = AlterPartitionReassignmentsRequest(
        topics=(ReassignableTopic("orders", (partition,)),)
    )
    return node.ask(REASSIGN, 1, request).responses[0].partitions[0].error_code


def test_there_is_nowhere_to_move_to(node):
    assert reassign(node, 1) == ErrorCode.NONE
    assert reassign(node, 2) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert reassign(node) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert node.ask(LIST, 0, ListPartitionReassignmentsRequest()).topics == ()
    node.send(produce(b"x"))
    assert written(node.replies[-1].message) == (0, 0)


def test_only_broker_cannot_be_unregistered_while_it_runs(node):
    reply = node.ask(UNREGISTER, 0, UnregisterBrokerRequest(1))
    assert reply.error_code == ErrorCode.INVALID_REQUEST
    assert len(node.ask(METADATA, 9, MetadataRequest(topics=None)).brokers) == 1
    reply = node.ask(UNREGISTER, 0, UnregisterBrokerRequest(2))
    assert reply.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def feature(node, name, level, kind=1):
    updates = (FeatureUpdateKey(name, level, upgrade_type=kind),)
    return node.ask(FEATURES, 2, UpdateFeaturesRequest(feature_updates=updates)).error_code


def test_feature_levels_survive_a_restart(node):
    assert feature(node, "group.version", 0, kind=2) == ErrorCode.NONE
    assert feature(node, "metadata.version", 99) == ErrorCode.INVALID_UPDATE_VERSION
    after = node.restart()
    assert feature(after, "group.version", 0, kind=2) == ErrorCode.NONE, "it is so already"
    assert feature(after, "group.version", 1) == ErrorCode.NONE


def test_elr_can_be_switched_off_and_on_under_a_working_topic(node):
    for level, kind in ((0, 2), (1, 1)):
        assert feature(node, "eligible.leader.replicas.version", level, kind) == ErrorCode.NONE
        node.send(produce(b"x"))
        assert written(node.replies[-1].message)[0] == ErrorCode.NONE
    after = node.restart()
    after.send(produce(b"x"))
    assert written(after.replies[-1].message) == (0, 2)
