"""Every answer, refusals too, can be written in every version of its API and read back."""

from __future__ import annotations

import pytest

from cotidal.api.registry import APIS, INTERNAL, Owner, handler
from cotidal.core.cluster.decide.features import SUPPORTED
from cotidal.messages.rpc import (
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_user_scram_credentials,
    api_versions,
    assign_replicas_to_dirs,
    broker_heartbeat,
    broker_registration,
    controller_registration,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_delegation_token,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    describe_user_scram_credentials,
    elect_leaders,
    expire_delegation_token,
    find_coordinator,
    incremental_alter_configs,
    list_config_resources,
    list_partition_reassignments,
    metadata,
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
    unregister_broker,
    update_features,
)
from cotidal.values import Uuid

NO_SUCH = Uuid(b"?" * 16)


def requests_between_nodes(key: int, version: int):
    """As below, for what nodes ask each other. Broker 1's epoch is 1."""
    match key:
        case 56:
            for epoch in (1, 99):
                data = alter_partition.AlterPartitionRequestPartitionData
                members = tuple(alter_partition.BrokerState(member) for member in (1, 2))
                yield alter_partition.AlterPartitionRequest(
                    1,
                    epoch,
                    (
                        alter_partition.AlterPartitionRequestTopicData(
                            NO_SUCH, (data(0, 0, (1, 2), members, 0, 0),)
                        ),
                    ),
                )
        case 62:
            for cluster_id in ("cluster-of-tests", "another"):
                yield broker_registration.BrokerRegistrationRequest(
                    9,
                    cluster_id,
                    NO_SUCH,
                    (broker_registration.Listener("PLAINTEXT", "h", 1),),
                    tuple(broker_registration.Feature(*each) for each in SUPPORTED),
                )
        case 63:
            for epoch in (1, 99):
                yield broker_heartbeat.BrokerHeartbeatRequest(1, epoch, 500)
        case 67:
            for epoch in (1, 99):
                yield allocate_producer_ids.AllocateProducerIdsRequest(1, epoch)
        case 70:
            listeners = (controller_registration.Listener("CONTROLLER", "h", 1),)
            for features in (SUPPORTED, ()):
                yield controller_registration.ControllerRegistrationRequest(
                    1,
                    NO_SUCH,
                    False,
                    listeners,
                    tuple(controller_registration.Feature(*each) for each in features),
                )
        case 73:
            partitions = (assign_replicas_to_dirs.AssignReplicasToDirsRequestPartitionData(0),)
            topics = (
                assign_replicas_to_dirs.AssignReplicasToDirsRequestTopicData(NO_SUCH, partitions),
            )
            directory = assign_replicas_to_dirs.AssignReplicasToDirsRequestDirectoryData
            for epoch in (1, 99):
                yield assign_replicas_to_dirs.AssignReplicasToDirsRequest(
                    1, epoch, (directory(NO_SUCH, topics),)
                )


def requests_about_security(key: int):
    """As below, of what is answered as by a cluster without security."""
    match key:
        case 17:
            yield sasl_handshake.SaslHandshakeRequest("PLAIN")
        case 29:
            yield describe_acls.DescribeAclsRequest()
        case 30:
            yield create_acls.CreateAclsRequest((create_acls.AclCreation(),) * 2)
        case 31:
            yield delete_acls.DeleteAclsRequest((delete_acls.DeleteAclsFilter(),) * 2)
        case 36:
            yield sasl_authenticate.SaslAuthenticateRequest(b"secret")
        case 38:
            yield create_delegation_token.CreateDelegationTokenRequest()
            yield create_delegation_token.CreateDelegationTokenRequest("User", "alice")
        case 39:
            yield renew_delegation_token.RenewDelegationTokenRequest()
        case 40:
            yield expire_delegation_token.ExpireDelegationTokenRequest()
        case 41:
            yield describe_delegation_token.DescribeDelegationTokenRequest()
        case 50:
            yield describe_user_scram_credentials.DescribeUserScramCredentialsRequest(None)
            yield describe_user_scram_credentials.DescribeUserScramCredentialsRequest(
                (describe_user_scram_credentials.UserName("nobody"),)
            )
        case 51:
            upsertion = alter_user_scram_credentials.ScramCredentialUpsertion
            yield alter_user_scram_credentials.AlterUserScramCredentialsRequest(
                (alter_user_scram_credentials.ScramCredentialDeletion("nobody", 1),),
                (upsertion("alice", 1, 4096, b"salt", b"password"),),
            )


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
        case 43:
            yield elect_leaders.ElectLeadersRequest(topic_partitions=None)
            for kind in range(3 if version else 1):
                named = (elect_leaders.TopicPartitions("orders", (0, 9)),)
                yield elect_leaders.ElectLeadersRequest(kind, named)
        case 45:
            partition = alter_partition_reassignments.ReassignablePartition
            wanted = (partition(0, (1, 2)), partition(1, None), partition(9, (1,)))
            yield alter_partition_reassignments.AlterPartitionReassignmentsRequest(
                topics=(alter_partition_reassignments.ReassignableTopic("orders", wanted),)
            )
        case 46:
            yield list_partition_reassignments.ListPartitionReassignmentsRequest()
        case 48:
            component = describe_client_quotas.ComponentData
            yield describe_client_quotas.DescribeClientQuotasRequest()
            yield describe_client_quotas.DescribeClientQuotasRequest((component("host", 2, None),))
        case 49:
            entity = alter_client_quotas.AlterClientQuotasRequestEntityData
            op = alter_client_quotas.OpData("producer_byte_rate", 1.0)
            yield alter_client_quotas.AlterClientQuotasRequest(
                tuple(
                    alter_client_quotas.AlterClientQuotasRequestEntryData((entity(*who),), (op,))
                    for who in (("user", None), ("host", "h"))
                )
            )
        case 57:
            for level in (1, 7):
                yield update_features.UpdateFeaturesRequest(
                    feature_updates=(update_features.FeatureUpdateKey("group.version", level),)
                )
        case 64:
            for number in (4, 1, 9):
                yield unregister_broker.UnregisterBrokerRequest(number)
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


CHANGES_OF_VOTERS = (80, 81)
"""The quorum's machine answers them: tests/node/test_voters.py."""

SERVED = [
    (int(api.key), version)
    for api in APIS.values()
    if api.owner not in (Owner.PARTITION, Owner.COORDINATOR)
    if int(api.key) not in CHANGES_OF_VOTERS
    for version in range(api.oldest, api.newest + 1)
]


@pytest.mark.parametrize(("key", "version"), SERVED)
def test_every_answer_can_be_written_in_its_version(cluster, asked, encodes, key, version):
    module = handler(key)
    asked_for = [*requests(key, version), *requests_about_security(key)]
    assert asked_for
    for request in asked_for:
        if APIS[key].owner is Owner.CONTROLLER:
            response = module.decide(request, asked(version), cluster.controller).reply
        else:
            response = module.answer(request, asked(version), cluster.view)
        written = 0 if request is None else version
        assert type(encodes(key, written, response)) is type(response)


BETWEEN_NODES = [
    (key, version)
    for key, api in INTERNAL.items()
    if api.owner is not Owner.BROKER
    for version in range(api.oldest, api.newest + 1)
]


@pytest.mark.parametrize(("key", "version"), BETWEEN_NODES)
def test_every_answer_to_a_node_can_be_written_in_its_version(
    cluster, asked, encodes, key, version
):
    asked_for = list(requests_between_nodes(key, version))
    errors = set()
    for request in asked_for:
        more = (cluster.active(),) if INTERNAL[key].owner is Owner.ACTIVE else ()
        response = handler(key).decide(request, asked(version), cluster.controller, *more).reply
        assert type(encodes(key, version, response)) is type(response)
        errors.add(response.error_code)
    assert len(errors) == 2, "one is heard, one is refused"
