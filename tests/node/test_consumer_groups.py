"""Consumer groups through a whole node: every version, failover, what other APIs say of them."""

from __future__ import annotations

from typing import Any

import pytest

from asking import create, delete
from cotidal.errors import ErrorCode
from cotidal.messages.rpc import (
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    describe_groups,
    incremental_alter_configs,
    list_groups,
    offset_commit,
    offset_fetch,
)
from lone_node import LoneNode
from tests.node.test_groups import node_with_groups

BEAT, DESCRIBE, COMMIT, FETCH, DESCRIBE_CLASSIC, LIST = 68, 69, 8, 9, 15, 16
CREATE_PARTITIONS, ALTER = 37, 44
Beat = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest


def joining(member_id: str = "a", **fields: Any) -> Beat:
    return Beat("g", member_id, 0, None, None, 5_000, ("orders",), None, None, ())._replace(
        **fields
    )


def joined(node: LoneNode, **fields: Any) -> Any:
    reply = node.ask(BEAT, 1, joining(**fields))
    assert reply.error_code == 0, reply
    return reply


def owned(reply: Any) -> int:
    return sum(len(topic.partitions) for topic in reply.assignment.topic_partitions)


def described(node: LoneNode, version: int = 1, group: str = "g") -> Any:
    asked = consumer_group_describe.ConsumerGroupDescribeRequest((group,))
    return node.ask(DESCRIBE, version, asked).groups[0]


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_in_every_version(version: int) -> None:
    node = node_with_groups()
    reply = node.ask(BEAT, version, joining())
    assert (reply.error_code, reply.member_epoch, owned(reply)) == (0, 1, 2)
    assert reply.heartbeat_interval_ms == 5_000


def test_the_coordinator_gives_ids_in_the_first_version_alone() -> None:
    node = node_with_groups()
    assert node.ask(BEAT, 0, joining("")).member_id
    refused = node.ask(BEAT, 1, joining(""))
    assert (refused.error_code, bool(refused.error_message)) == (ErrorCode.INVALID_REQUEST, True)


@pytest.mark.parametrize("fields", [{"group_id": ""}, {"instance_id": ""}, {"rack_id": ""}])
def test_names_that_are_empty_are_refused(fields: Any) -> None:
    reply = node_with_groups().ask(BEAT, 1, joining(**fields))
    assert reply.error_code == ErrorCode.INVALID_REQUEST


def test_members_survive_a_crash_of_their_coordinator() -> None:
    node = node_with_groups()
    joined(node, subscribed_topic_names=(), subscribed_topic_regex="ord.*")
    before = described(node)
    after = node.restart()
    assert described(after) == before
    reply = after.ask(BEAT, 1, Beat("g", "a", 1))
    assert (reply.error_code, reply.member_epoch, reply.assignment) == (0, 1, None)


def test_a_member_hears_of_new_partitions_and_of_deleted_topics() -> None:
    node = node_with_groups()
    joined(node)
    more = create_partitions.CreatePartitionsTopic("orders", 5, None)
    node.ask(CREATE_PARTITIONS, 3, create_partitions.CreatePartitionsRequest((more,), 1_000))
    assert owned(node.ask(BEAT, 1, Beat("g", "a", 1))) == 5
    node.ask(*delete("orders"))
    assert owned(node.ask(BEAT, 1, Beat("g", "a", 2))) == 0


def test_a_group_has_settings_of_its_own_within_the_brokers_bounds() -> None:
    node = node_with_groups(
        group_consumer_min_heartbeat_interval_ms="100",
        group_consumer_min_session_timeout_ms="200",
    )
    config = incremental_alter_configs.AlterableConfig
    configs = (
        config("consumer.heartbeat.interval.ms", 0, "100"),
        config("consumer.session.timeout.ms", 0, "300"),
    )
    resource = incremental_alter_configs.AlterConfigsResource(32, "g", configs)
    asked = incremental_alter_configs.IncrementalAlterConfigsRequest((resource,))
    assert node.ask(ALTER, 1, asked).responses[0].error_code == 0
    assert joined(node).heartbeat_interval_ms == 100
    assert joined(node, group_id="other").heartbeat_interval_ms == 5_000
    node.pass_time(299)
    assert len(described(node).members) == 1
    node.pass_time(1)
    assert len(described(node).members) == 0
    assert len(described(node, group="other").members) == 1


@pytest.mark.parametrize("version", [0, 1])
def test_a_group_is_described_with_what_is_and_what_is_to_be(version: int) -> None:
    node = node_with_groups()
    joined(node)
    joined(node, member_id="b")
    told = described(node, version)
    assert (told.group_state, told.group_epoch, told.assignment_epoch) == ("Reconciling", 2, 2)
    assert told.assignor_name == "uniform"
    has = {each.member_id: each.assignment.topic_partitions for each in told.members}
    to_have = {each.member_id: each.target_assignment.topic_partitions for each in told.members}
    assert has["a"][0].topic_name == "orders"
    assert (has["a"][0].partitions, has["b"]) == ((0, 1), ())
    assert len(to_have["a"][0].partitions) == len(to_have["b"][0].partitions) == 1
    assert {each.member_type for each in told.members} == {1}


def test_what_is_not_a_consumer_group_is_not_found() -> None:
    node = node_with_groups()
    assert described(node).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert described(node, group="").error_code == ErrorCode.INVALID_GROUP_ID


def test_lists_tell_the_kind_and_the_classic_description_knows_no_such_group() -> None:
    node = node_with_groups()
    joined(node)
    for types, found in (((), 1), (("Consumer",), 1), (("classic",), 0)):
        listed = node.ask(LIST, 5, list_groups.ListGroupsRequest(types_filter=types)).groups
        assert [each.group_type for each in listed] == ["consumer"] * found
    told = node.ask(DESCRIBE_CLASSIC, 6, describe_groups.DescribeGroupsRequest(("g",))).groups[0]
    assert told.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    told = node.ask(DESCRIBE_CLASSIC, 5, describe_groups.DescribeGroupsRequest(("g",))).groups[0]
    assert (told.error_code, told.group_state) == (0, "Dead")


def test_epochs_of_commits_and_fetches_are_checked_from_version_9_on() -> None:
    node = node_with_groups()
    joined(node)
    partition = offset_commit.OffsetCommitRequestPartition(0, 5)
    topic = offset_commit.OffsetCommitRequestTopic("orders", partitions=(partition,))

    def commit(version: int, epoch: int) -> int:
        asked = offset_commit.OffsetCommitRequest("g", epoch, "a", topics=(topic,))
        error: int = node.ask(COMMIT, version, asked).topics[0].partitions[0].error_code
        return error

    assert commit(8, 1) == ErrorCode.UNSUPPORTED_VERSION
    assert commit(9, 2) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(9, 1) == 0

    def fetch(version: int, member_id: str | None, epoch: int) -> tuple[int, int]:
        group = offset_fetch.OffsetFetchRequestGroup("g", member_id, epoch, topics=None)
        (told,) = node.ask(FETCH, version, offset_fetch.OffsetFetchRequest(groups=(group,))).groups
        return told.error_code, len(told.topics)

    assert fetch(8, None, -1) == fetch(9, None, -1) == fetch(9, "a", 1) == (0, 1)
    assert fetch(9, "a", 2) == (ErrorCode.STALE_MEMBER_EPOCH, 0)
    assert fetch(9, "b", 1) == (ErrorCode.UNKNOWN_MEMBER_ID, 0)


def test_a_new_topic_that_an_expression_matches_is_read() -> None:
    node = node_with_groups()
    joined(node, subscribed_topic_names=None, subscribed_topic_regex="ord.*")
    node.ask(BEAT, 1, Beat("g", "a", 1))
    create(node, "orders-eu", 3)
    node.pass_time(1_000)
    assert owned(node.ask(BEAT, 1, Beat("g", "a", 1))) == 5
