"""Every answer, refusals too, can be written in every version of its API and read back."""

from __future__ import annotations

import pytest

from cotidal.api.registry import APIS, Owner, handler
from cotidal.messages.rpc import (
    alter_configs,
    api_versions,
    create_partitions,
    create_topics,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    find_coordinator,
    incremental_alter_configs,
    list_config_resources,
    metadata,
)
from cotidal.values import Uuid

NO_SUCH = Uuid(b"?" * 16)


def requests(key: int, version: int):
    """Requests that bring out every kind of answer that this version has."""
    match key:
        case 3:
            named = [metadata.MetadataRequestTopic(name=name) for name in ("orders", "none", "a b")]
            if version >= 10:
                named.append(metadata.MetadataRequestTopic(topic_id=NO_SUCH, name=None))
            yield metadata.MetadataRequest(topics=tuple(named))
            yield metadata.MetadataRequest(
                topics=None if version else (),
                include_cluster_authorized_operations=True,
                include_topic_authorized_operations=True,
            )
        case 10:
            yield find_coordinator.FindCoordinatorRequest(key="g", coordinator_keys=("g", "h"))
            yield find_coordinator.FindCoordinatorRequest(key_type=9, coordinator_keys=("g",))
        case 18:
            yield None
            yield api_versions.ApiVersionsRequest("tests", "1.0")
            yield api_versions.ApiVersionsRequest("", "")
        case 19:
            yield create_topics.CreateTopicsRequest(
                topics=(
                    create_topics.CreatableTopic("new", 2, 1),
                    create_topics.CreatableTopic("orders", 1, 1),
                    create_topics.CreatableTopic("a b", 1, 1),
                )
            )
        case 20:
            named = [delete_topics.DeleteTopicState(name="none")]
            named += [delete_topics.DeleteTopicState(topic_id=NO_SUCH)]
            yield delete_topics.DeleteTopicsRequest(
                topics=tuple(named), topic_names=("lonely", "none")
            )
        case 32:
            resources = (
                (2, "orders"),
                (2, "none"),
                (4, "1"),
                (4, ""),
                (8, "1"),
                (32, "g"),
                (99, ""),
            )
            yield describe_configs.DescribeConfigsRequest(
                resources=tuple(
                    describe_configs.DescribeConfigsResource(kind, name, None)
                    for kind, name in resources
                ),
                include_synonyms=True,
                include_documentation=True,
            )
        case 33:
            yield alter_configs.AlterConfigsRequest(
                resources=(
                    alter_configs.AlterConfigsResource(2, "orders"),
                    alter_configs.AlterConfigsResource(2, "none"),
                )
            )
        case 37:
            yield create_partitions.CreatePartitionsRequest(
                topics=(
                    create_partitions.CreatePartitionsTopic("orders", 5, None),
                    create_partitions.CreatePartitionsTopic("none", 5, None),
                )
            )
        case 44:
            yield incremental_alter_configs.IncrementalAlterConfigsRequest(
                resources=(
                    incremental_alter_configs.AlterConfigsResource(2, "orders"),
                    incremental_alter_configs.AlterConfigsResource(2, "none"),
                )
            )
        case 55:
            yield describe_quorum.DescribeQuorumRequest(
                topics=tuple(
                    describe_quorum.DescribeQuorumRequestTopicData(
                        name, (describe_quorum.DescribeQuorumRequestPartitionData(0),)
                    )
                    for name in ("__cluster_metadata", "orders")
                )
            )
        case 60:
            yield describe_cluster.DescribeClusterRequest(include_fenced_brokers=version >= 2)
            if version >= 1:
                yield describe_cluster.DescribeClusterRequest(endpoint_type=2)
                yield describe_cluster.DescribeClusterRequest(endpoint_type=7)
        case 61:
            yield describe_producers.DescribeProducersRequest(
                topics=(describe_producers.TopicRequest("orders", (0, 9)),)
            )
        case 74:
            yield list_config_resources.ListConfigResourcesRequest()
            if version >= 1:
                yield list_config_resources.ListConfigResourcesRequest((99,))
        case 75:
            yield describe_topic_partitions.DescribeTopicPartitionsRequest()
            yield describe_topic_partitions.DescribeTopicPartitionsRequest(
                topics=(describe_topic_partitions.TopicRequest("none"),)
            )


SERVED = [
    (int(api.key), version)
    for api in APIS.values()
    if api.owner is not Owner.PARTITION
    for version in range(api.oldest, api.newest + 1)
]


@pytest.mark.parametrize(("key", "version"), SERVED)
def test_every_answer_can_be_written_in_its_version(cluster, asked, encodes, key, version):
    module = handler(key)
    asked_for = list(requests(key, version))
    assert asked_for
    for request in asked_for:
        if APIS[key].owner is Owner.CONTROLLER:
            response = module.decide(request, asked(version), cluster.controller).reply
        else:
            response = module.answer(request, asked(version), cluster.view)
        written = 0 if request is None else version
        assert type(encodes(key, written, response)) is type(response)
