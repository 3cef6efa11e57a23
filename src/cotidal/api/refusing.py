"""Refusals of requests that only the active controller can decide, in each API's own form.

Where an API has no field for the whole, every element of the request is told NOT_CONTROLLER.
"""

from __future__ import annotations

from cotidal.errors import MESSAGES, ErrorCode
from cotidal.messages.rpc import (
    add_raft_voter,
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_user_scram_credentials,
    assign_replicas_to_dirs,
    broker_heartbeat,
    broker_registration,
    controller_registration,
    create_partitions,
    create_topics,
    delete_topics,
    describe_quorum,
    elect_leaders,
    incremental_alter_configs,
    list_partition_reassignments,
    remove_raft_voter,
    unregister_broker,
    update_features,
)

_ERROR = ErrorCode.NOT_CONTROLLER
_WHY = MESSAGES[_ERROR]


def not_controller(api_key: int, request: object) -> object:
    match request:
        case alter_configs.AlterConfigsRequest():
            return alter_configs.AlterConfigsResponse(
                responses=tuple(
                    alter_configs.AlterConfigsResourceResponse(
                        _ERROR, _WHY, resource.resource_type, resource.resource_name
                    )
                    for resource in request.resources
                )
            )
        case incremental_alter_configs.IncrementalAlterConfigsRequest():
            return incremental_alter_configs.IncrementalAlterConfigsResponse(
                responses=tuple(
                    incremental_alter_configs.AlterConfigsResourceResponse(
                        _ERROR, _WHY, each.resource_type, each.resource_name
                    )
                    for each in request.resources
                )
            )
        case alter_client_quotas.AlterClientQuotasRequest():
            return alter_client_quotas.AlterClientQuotasResponse(
                entries=tuple(
                    alter_client_quotas.AlterClientQuotasResponseEntryData(
                        _ERROR,
                        _WHY,
                        tuple(
                            alter_client_quotas.AlterClientQuotasResponseEntityData(*part)
                            for part in entry.entity
                        ),
                    )
                    for entry in request.entries
                )
            )
        case alter_user_scram_credentials.AlterUserScramCredentialsRequest():
            gone, new = request.deletions, request.upsertions
            users = dict.fromkeys([*(each.name for each in gone), *(each.name for each in new)])
            return alter_user_scram_credentials.AlterUserScramCredentialsResponse(
                results=tuple(
                    alter_user_scram_credentials.AlterUserScramCredentialsResult(name, _ERROR, _WHY)
                    for name in users
                )
            )
        case _:
            return _topics(request, _ERROR) or _whole(request)


def over_quota(request: object) -> object:
    """CreateTopics, DeleteTopics and CreatePartitions of a client that asks for too much."""
    reply = _topics(request, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    assert reply is not None, request
    return reply


def _topics(request: object, error: ErrorCode) -> object | None:
    """APIs about topics, each of which is told the error."""
    why = MESSAGES[error]
    match request:
        case create_topics.CreateTopicsRequest():
            return create_topics.CreateTopicsResponse(
                topics=tuple(
                    create_topics.CreatableTopicResult(
                        name=topic.name, error_code=error, error_message=why
                    )
                    for topic in request.topics
                )
            )
        case delete_topics.DeleteTopicsRequest():
            named = [(topic.name, topic.topic_id) for topic in request.topics]
            return delete_topics.DeleteTopicsResponse(
                responses=(
                    *(
                        delete_topics.DeletableTopicResult(
                            name=name, topic_id=topic_id, error_code=error, error_message=why
                        )
                        for name, topic_id in named
                    ),
                    *(
                        delete_topics.DeletableTopicResult(name=name, error_code=error)
                        for name in request.topic_names
                    ),
                )
            )
        case create_partitions.CreatePartitionsRequest():
            return create_partitions.CreatePartitionsResponse(
                results=tuple(
                    create_partitions.CreatePartitionsTopicResult(topic.name, error, why)
                    for topic in request.topics
                )
            )
        case _:
            return None


def _whole(request: object) -> object:
    """APIs with one error for the whole answer."""
    match request:
        case alter_partition.AlterPartitionRequest():
            return alter_partition.AlterPartitionResponse(error_code=_ERROR)
        case assign_replicas_to_dirs.AssignReplicasToDirsRequest():
            return assign_replicas_to_dirs.AssignReplicasToDirsResponse(error_code=_ERROR)
        case broker_registration.BrokerRegistrationRequest():
            return broker_registration.BrokerRegistrationResponse(error_code=_ERROR)
        case broker_heartbeat.BrokerHeartbeatRequest():
            return broker_heartbeat.BrokerHeartbeatResponse(error_code=_ERROR)
        case allocate_producer_ids.AllocateProducerIdsRequest():
            return allocate_producer_ids.AllocateProducerIdsResponse(error_code=_ERROR)
        case controller_registration.ControllerRegistrationRequest():
            return controller_registration.ControllerRegistrationResponse(
                error_code=_ERROR, error_message=_WHY
            )
        case elect_leaders.ElectLeadersRequest():
            return elect_leaders.ElectLeadersResponse(error_code=_ERROR)
        case alter_partition_reassignments.AlterPartitionReassignmentsRequest():
            return alter_partition_reassignments.AlterPartitionReassignmentsResponse(
                error_code=_ERROR, error_message=_WHY
            )
        case list_partition_reassignments.ListPartitionReassignmentsRequest():
            return list_partition_reassignments.ListPartitionReassignmentsResponse(
                error_code=_ERROR, error_message=_WHY
            )
        case unregister_broker.UnregisterBrokerRequest():
            return unregister_broker.UnregisterBrokerResponse(error_code=_ERROR, error_message=_WHY)
        case add_raft_voter.AddRaftVoterRequest():
            return add_raft_voter.AddRaftVoterResponse(error_code=_ERROR, error_message=_WHY)
        case remove_raft_voter.RemoveRaftVoterRequest():
            return remove_raft_voter.RemoveRaftVoterResponse(error_code=_ERROR, error_message=_WHY)
        case describe_quorum.DescribeQuorumRequest():
            return describe_quorum.DescribeQuorumResponse(error_code=_ERROR, error_message=_WHY)
        case update_features.UpdateFeaturesRequest():
            return update_features.UpdateFeaturesResponse(error_code=_ERROR, error_message=_WHY)
        case _:
            raise NotImplementedError(type(request).__name__)
