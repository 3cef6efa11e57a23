"""What the desk tells of a cluster that is well."""

import confluent_kafka
import pytest

from cotidal.client.failures import Refused as ClusterRefused
from cotidal.client.failures import UnknownTopic
from cotidal.console.world import Refused
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicResponse,
)


def test_the_overview_begins_with_one_sentence(ask, make_topic, until):
    make_topic("seen", partitions=4)
    until(lambda: ask("overview")["state"] == "good")
    told = ask("overview")
    assert told["sentence"].startswith("All well: 3 brokers, ")
    assert told["sentence"].endswith(", all in sync.")
    assert told["troubles"] == []
    assert [broker["state"] for broker in told["brokers"]] == ["serves"] * 3
    assert sum(broker["controls"] for broker in told["brokers"]) == 1
    assert sum(broker["leads"] for broker in told["brokers"]) == told["partitions"]


def test_topics_tell_their_size_and_who_is_internal(ask, make_topic):
    make_topic("sized", b"12345", partitions=2)
    rows = {row["topic"]: row for row in ask("topics")["topics"]}
    assert rows["sized"]["partitions"] == 2
    assert rows["sized"]["replicas"] == 3
    assert rows["sized"]["offsets"] == 1
    assert rows["sized"]["size_bytes"] > 60
    assert not rows["sized"]["internal"]


def test_a_topic_tells_each_replica_of_each_partition(ask, make_topic):
    make_topic("stood", b"one", partitions=2)
    partitions = ask("topic", topic="stood")["partitions"]
    assert [each["partition"] for each in partitions] == [0, 1]
    assert {each["role"] for each in partitions[0]["standing"]} == {"leader", "in sync"}
    assert partitions[0]["end_offset"] == 1
    assert not partitions[0]["acks_all_refused"]


def test_a_topic_that_does_not_exist_is_told_with_the_nearest(ask, make_topic):
    make_topic("orders")
    with pytest.raises(UnknownTopic, match="did you mean 'orders'"):
        ask("topic", topic="order")


def test_a_group_tells_its_lag_and_its_members(ask, make_topic, cluster, until):
    make_topic("grouped", b"1", b"2", b"3")
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["grouped"])
    try:
        until(lambda: consumer.poll(0.5) is not None)
        at = confluent_kafka.TopicPartition("grouped", 0, 1)
        consumer.commit(offsets=[at], asynchronous=False)
        told = ask("group", group="readers")
        assert told["lag"] == 2
        assert told["state"] == "Stable"
        assert told["members"][0]["partitions"] == ["grouped-0"]
        (row,) = told["partitions"]
        assert (row["committed"], row["end"], row["lag"]) == (1, 3, 2)
        listed = {row["group"]: row for row in ask("groups")["groups"]}
        assert listed["readers"]["lag"] == 2
    finally:
        consumer.close()


def test_a_group_that_does_not_exist_is_refused(ask):
    with pytest.raises(ClusterRefused, match="does not exist"):
        ask("group", group="nobody")


def test_open_transactions_are_listed_and_hang_when_no_coordinator_knows_them(
    ask, make_topic, cluster, until
):
    make_topic("opened")
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap, "transactional.id": "shop"}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("opened", b"v", partition=0)
    producer.flush(30)
    told = ask("transactions")
    assert [each["transactional_id"] for each in told["transactions"]] == ["shop"]
    (opened,) = told["open"]
    assert (opened["partition"], opened["first_offset"], opened["hangs"]) == ("opened-0", 0, False)
    one = ask("transaction", id="shop")
    assert (one["state"], one["partitions"]) == ("Ongoing", ["opened-0"])
    with pytest.raises(Refused, match="no transaction hangs"):
        ask("plan-abort-hanging")
    producer.commit_transaction(30)
    until(lambda: ask("transactions")["open"] == [])


def test_open_transactions_are_asked_for_again_while_a_leader_changes(ask, make_topic, cluster):
    make_topic("moving")
    refusal = PartitionResponse(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, None)
    told = DescribeProducersResponse(topics=(TopicResponse("moving", (refusal,)),))
    rule = cluster.on(DescribeProducersRequest, reply=lambda request: told)
    ask("transactions")
    assert rule.hits == 1
    assert rule.seen > 1


def test_settings_tell_where_they_come_from(ask, make_topic):
    make_topic("set", retention_ms="1000")
    found = {each["setting"]: each for each in ask("configs", kind="topic", name="set")["configs"]}
    assert (found["retention.ms"]["value"], found["retention.ms"]["from"]) == ("1000", "topic")
    assert found["segment.bytes"]["from"] == "default"
    assert ask("configs", kind="broker", name="1")["configs"]
    with pytest.raises(Refused, match="no broker '9' serves"):
        ask("configs", kind="broker", name="9")


def test_the_quorum_tells_lags(ask):
    told = ask("quorum")
    assert len(told["voters"]) == 3
    assert told["leader"] in (1, 2, 3)
    assert all(member["lag"] >= 0 for member in told["voters"])
