from __future__ import annotations

from typing import Any

import pytest

from cotidal.client.admin import (
    ConfigSource,
    Resource,
    change_configs,
    create_partitions,
    create_topic,
    delete_topics,
    describe_configs,
    describe_quorum,
    log_sizes,
)
from cotidal.client.cluster import Cluster
from cotidal.client.failures import Refused, UnknownTopic
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.api_versions import ApiVersion, ApiVersionsResponse
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.create_partitions import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from cotidal.messages.rpc.create_topics import CreatableTopicResult, CreateTopicsResponse
from cotidal.messages.rpc.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from cotidal.messages.rpc.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from cotidal.messages.rpc.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from cotidal.messages.rpc.describe_quorum import (
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    ReplicaState,
)
from cotidal.messages.rpc.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from cotidal.values import NodeId, TopicPartition


def saying(response: object) -> Any:
    return lambda _request, _version: response


@pytest.fixture
def broker(scripted_broker: Any, metadata_of: Any) -> Any:
    broker = scripted_broker()
    broker.script(ApiKey.METADATA, metadata_of({1: broker}, ("orders", (1,))))
    return broker


def test_what_was_created_is_told_in_the_clusters_numbers(broker: Any) -> None:
    result = CreatableTopicResult("t", num_partitions=6, replication_factor=3)
    broker.script(ApiKey.CREATE_TOPICS, saying(CreateTopicsResponse(topics=(result,))))
    with Cluster(broker.bootstrap) as cluster:
        created = create_topic(cluster, "t", configs={"retention.ms": "1"})
    assert (created.partitions, created.replication_factor) == (6, 3)
    [request] = broker.asked(ApiKey.CREATE_TOPICS)
    [topic] = request.topics
    assert (topic.num_partitions, topic.replication_factor) == (-1, -1)
    assert [tuple(config) for config in topic.configs] == [("retention.ms", "1")]


def test_a_topic_is_created_when_every_broker_has_heard_of_it(
    scripted_broker: Any, metadata_of: Any
) -> None:
    first, second = scripted_broker(), scripted_broker()
    brokers = {1: first, 2: second}
    ignorant = metadata_of(brokers, ("t", ()))

    def unknown(request: Any, version: int) -> Any:
        told = ignorant(request, version)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return told._replace(topics=tuple(each._replace(error_code=code) for each in told.topics))

    knowing = metadata_of(brokers, ("t", (1,)))
    done = CreateTopicsResponse(topics=(CreatableTopicResult("t"),))
    first.script(ApiKey.CREATE_TOPICS, saying(done))
    first.script(ApiKey.METADATA, unknown, unknown, knowing)
    second.script(ApiKey.METADATA, unknown, unknown, knowing)
    with Cluster(first.bootstrap) as cluster:
        create_topic(cluster, "t", configs={})
    assert len(second.asked(ApiKey.METADATA)) == 3


def test_a_broker_that_cannot_be_asked_keeps_no_topic_from_being_created(
    scripted_broker: Any, metadata_of: Any, hang_up: Any
) -> None:
    first, second = scripted_broker(), scripted_broker({ApiKey.METADATA: hang_up})
    done = CreateTopicsResponse(topics=(CreatableTopicResult("t"),))
    first.script(ApiKey.CREATE_TOPICS, saying(done))
    first.script(ApiKey.METADATA, metadata_of({1: first, 2: second}, ("t", (1,))))
    with Cluster(first.bootstrap) as cluster:
        assert create_topic(cluster, "t", configs={}).name == "t"


def test_a_refused_creation_carries_the_clusters_sentence(broker: Any) -> None:
    result = CreatableTopicResult(
        "t", error_code=ErrorCode.INVALID_REPLICATION_FACTOR, error_message="3 of 1 brokers."
    )
    broker.script(ApiKey.CREATE_TOPICS, saying(CreateTopicsResponse(topics=(result,))))
    with Cluster(broker.bootstrap) as cluster, pytest.raises(Refused) as caught:
        create_topic(cluster, "t", replication_factor=3, configs={})
    assert str(caught.value) == "topic 't': 3 of 1 brokers"


def test_a_change_is_asked_for_again_while_no_controller_is_there(broker: Any) -> None:
    nobody, done = (
        saying(CreateTopicsResponse(topics=(CreatableTopicResult("t", error_code=code),)))
        for code in (ErrorCode.NOT_CONTROLLER, ErrorCode.NONE)
    )
    broker.script(ApiKey.CREATE_TOPICS, nobody, nobody, done)
    with Cluster(broker.bootstrap) as cluster:
        create_topic(cluster, "t", configs={})
    assert len(broker.asked(ApiKey.CREATE_TOPICS)) == 3


def test_without_a_controller_patience_ends(broker: Any) -> None:
    results = (DeletableTopicResult("t", error_code=ErrorCode.NOT_CONTROLLER),)
    broker.script(ApiKey.DELETE_TOPICS, saying(DeleteTopicsResponse(responses=results)))
    with Cluster(broker.bootstrap, timeout_s=0.3) as cluster, pytest.raises(Refused) as caught:
        delete_topics(cluster, ["t"])
    assert caught.value.error is ErrorCode.NOT_CONTROLLER
    assert "no broker has found a controller for 0.3 s" in str(caught.value)
    assert len(broker.asked(ApiKey.DELETE_TOPICS)) > 1


@pytest.mark.parametrize("newest", [5, 6])
def test_topics_are_deleted_by_name_in_the_form_the_broker_knows(
    scripted_broker: Any, newest: int
) -> None:
    broker = scripted_broker(
        {
            ApiKey.API_VERSIONS: saying(
                ApiVersionsResponse(api_keys=(ApiVersion(ApiKey.DELETE_TOPICS, 1, newest),))
            ),
            ApiKey.DELETE_TOPICS: saying(
                DeleteTopicsResponse(responses=(DeletableTopicResult("a"),))
            ),
        }
    )
    with Cluster(broker.bootstrap) as cluster:
        delete_topics(cluster, ["a"])
    [request] = broker.asked(ApiKey.DELETE_TOPICS)
    assert (request.topic_names or tuple(topic.name for topic in request.topics)) == ("a",)


def test_deleting_what_does_not_exist_names_the_nearest(broker: Any) -> None:
    result = DeletableTopicResult("order", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    broker.script(ApiKey.DELETE_TOPICS, saying(DeleteTopicsResponse(responses=(result,))))
    with Cluster(broker.bootstrap) as cluster, pytest.raises(UnknownTopic, match="'orders'"):
        delete_topics(cluster, ["order"])


def test_a_refused_number_of_partitions_is_told(broker: Any) -> None:
    result = CreatePartitionsTopicResult("orders", ErrorCode.INVALID_PARTITIONS, "there are 5")
    broker.script(ApiKey.CREATE_PARTITIONS, saying(CreatePartitionsResponse(results=(result,))))
    with Cluster(broker.bootstrap) as cluster, pytest.raises(Refused, match="there are 5"):
        create_partitions(cluster, "orders", partitions=2)


def test_a_brokers_configs_are_asked_of_that_broker(scripted_broker: Any, metadata_of: Any) -> None:
    config = DescribeConfigsResourceResult("log.retention.ms", "1", True, 4)
    answer = saying(DescribeConfigsResponse(results=(DescribeConfigsResult(configs=(config,)),)))
    first, second = scripted_broker(), scripted_broker({ApiKey.DESCRIBE_CONFIGS: answer})
    first.script(ApiKey.METADATA, metadata_of({1: first, 2: second}, ("orders", (1,))))
    with Cluster(first.bootstrap) as cluster:
        [found] = describe_configs(cluster, Resource.BROKER, "2")
    assert (found.name, found.value, found.source) == ("log.retention.ms", "1", ConfigSource.FILE)
    assert found.is_read_only
    [request] = second.asked(ApiKey.DESCRIBE_CONFIGS)
    assert request.resources[0].configuration_keys is None


def test_settings_are_changed_and_unset_in_one_request(broker: Any) -> None:
    done = IncrementalAlterConfigsResponse(responses=(AlterConfigsResourceResponse(),))
    broker.script(ApiKey.INCREMENTAL_ALTER_CONFIGS, saying(done))
    with Cluster(broker.bootstrap) as cluster:
        change_configs(cluster, Resource.TOPIC, "orders", set_to={"a": "1"}, unset=["b"])
    [request] = broker.asked(ApiKey.INCREMENTAL_ALTER_CONFIGS)
    [resource] = request.resources
    assert [tuple(config) for config in resource.configs] == [("a", 0, "1"), ("b", 1, None)]


def test_the_quorum_is_that_of_the_metadata_log(broker: Any) -> None:
    partition = DescribeQuorumResponsePartitionData(
        leader_id=1, leader_epoch=4, high_watermark=90, current_voters=(ReplicaState(1),)
    )
    topic = DescribeQuorumResponseTopicData("__cluster_metadata", (partition,))
    broker.script(ApiKey.DESCRIBE_QUORUM, saying(DescribeQuorumResponse(topics=(topic,))))
    with Cluster(broker.bootstrap) as cluster:
        quorum = describe_quorum(cluster)
    assert (quorum.leader, quorum.leader_epoch, quorum.high_watermark) == (1, 4, 90)
    [request] = broker.asked(ApiKey.DESCRIBE_QUORUM)
    assert request.topics[0].topic_name == "__cluster_metadata"


def test_a_broker_that_cannot_be_asked_has_no_sizes(scripted_broker: Any, metadata_of: Any) -> None:
    log = DescribeLogDirsPartition(0, 1234, 0, False)
    result = DescribeLogDirsResult(log_dir="/d", topics=(DescribeLogDirsTopic("orders", (log,)),))
    here = scripted_broker(
        {ApiKey.DESCRIBE_LOG_DIRS: saying(DescribeLogDirsResponse(results=(result,)))}
    )
    away = scripted_broker()
    here.script(ApiKey.METADATA, metadata_of({1: here, 2: away}, ("orders", (1,))))
    away.close()
    with Cluster(here.bootstrap) as cluster:
        cluster.metadata()
        sizes = log_sizes(cluster, [NodeId(1), NodeId(2)])
    assert list(sizes) == [1]
    assert sizes[NodeId(1)][TopicPartition("orders", 0)].size_bytes == 1234
