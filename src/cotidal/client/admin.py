"""Asking for changes, and for what lies behind the metadata: configs, log sizes, the quorum.

Each function is one request, sent again only while no controller is there to decide it. What the
cluster refuses is raised as Refused with the cluster's own sentence; where several things are asked
at once, the first refusal in the order of asking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

from cotidal.client.backoff import Backoff
from cotidal.client.cluster import Cluster
from cotidal.client.failures import (
    ClientError,
    NoController,
    TimedOut,
    UnknownTopic,
    Unreachable,
    raise_for,
)
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.values import NodeId, TopicPartition, Uuid

Response = TypeVar("Response")

CHANGE_TIMEOUT_MS: Final = 30_000
HEARD_WITHIN_S: Final = 5.0
"""What is committed is waited for so long at each broker; longer only at one that hangs."""
DEFAULT_FROM_BROKER: Final = -1
"""Partitions and replication factor: the broker's num.partitions, default.replication.factor."""


class Resource(IntEnum):
    """What can have configs (KIP-133)."""

    TOPIC = 2
    BROKER = 4


class ConfigSource(IntEnum):
    """Where a value comes from; the protocol's numbers."""

    UNKNOWN = 0
    TOPIC = 1
    BROKER = 2
    CLUSTER = 3
    FILE = 4
    DEFAULT = 5


class Config(NamedTuple):
    name: str
    value: str | None
    """None when it has none, or when it is secret."""
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    documentation: str | None


class Created(NamedTuple):
    name: str
    partitions: int
    replication_factor: int


class QuorumMember(NamedTuple):
    node_id: NodeId
    directory_id: Uuid
    """Zero where the voters are fixed by the configuration."""
    end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int
    """Wall clock of the leader; -1 where it does not know."""


class Quorum(NamedTuple):
    leader: NodeId
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumMember, ...]
    observers: tuple[QuorumMember, ...]


class LogSize(NamedTuple):
    directory: str
    size_bytes: int
    lag: int


def create_topic(
    cluster: Cluster,
    name: str,
    *,
    partitions: int = DEFAULT_FROM_BROKER,
    replication_factor: int = DEFAULT_FROM_BROKER,
    configs: Mapping[str, str],
    validate_only: bool = False,
) -> Created:
    """Done when every broker that can be asked knows it: the next question may go to any."""
    from cotidal.messages.rpc.create_topics import (
        CreatableTopic,
        CreatableTopicConfig,
        CreateTopicsRequest,
        CreateTopicsResponse,
    )

    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=tuple(CreatableTopicConfig(key, value) for key, value in configs.items()),
    )
    request = CreateTopicsRequest((topic,), CHANGE_TIMEOUT_MS, validate_only)
    response = _decided(
        cluster,
        lambda: cluster.tell(ApiKey.CREATE_TOPICS, request, CreateTopicsResponse),
        lambda response: (each.error_code for each in response.topics),
    )
    result = response.topics[0]
    raise_for(result.error_code, f"topic '{name}'", result.error_message)
    if not validate_only:
        _await_everywhere(cluster, name)
    return Created(
        name,
        result.num_partitions if result.num_partitions > 0 else partitions,
        result.replication_factor if result.replication_factor > 0 else replication_factor,
    )


def delete_topics(cluster: Cluster, names: Sequence[str]) -> None:
    from cotidal.messages.rpc.delete_topics import (
        DeleteTopicsRequest,
        DeleteTopicsResponse,
        DeleteTopicState,
    )

    if cluster.any_connection().version(ApiKey.DELETE_TOPICS) >= 6:
        topics = tuple(DeleteTopicState(name=name) for name in names)
        request = DeleteTopicsRequest(topics=topics, timeout_ms=CHANGE_TIMEOUT_MS)
    else:
        request = DeleteTopicsRequest(topic_names=tuple(names), timeout_ms=CHANGE_TIMEOUT_MS)
    response = _decided(
        cluster,
        lambda: cluster.tell(ApiKey.DELETE_TOPICS, request, DeleteTopicsResponse),
        lambda response: (each.error_code for each in response.responses),
    )
    for result in response.responses:
        _check_topic(cluster, result.name or "", result.error_code, result.error_message)


def create_partitions(cluster: Cluster, topic: str, *, partitions: int) -> None:
    from cotidal.messages.rpc.create_partitions import (
        CreatePartitionsRequest,
        CreatePartitionsResponse,
        CreatePartitionsTopic,
    )

    request = CreatePartitionsRequest(
        (CreatePartitionsTopic(topic, partitions, None),), CHANGE_TIMEOUT_MS
    )
    response = _decided(
        cluster,
        lambda: cluster.tell(ApiKey.CREATE_PARTITIONS, request, CreatePartitionsResponse),
        lambda response: (each.error_code for each in response.results),
    )
    for result in response.results:
        _check_topic(cluster, topic, result.error_code, result.error_message)


def describe_configs(
    cluster: Cluster,
    resource: Resource,
    name: str,
    *,
    names: Iterable[str] | None = None,
    documentation: bool = False,
) -> tuple[Config, ...]:
    from cotidal.messages.rpc.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
        DescribeConfigsResponse,
    )

    wanted = DescribeConfigsResource(resource, name, None if names is None else tuple(names))
    request = DescribeConfigsRequest((wanted,), include_documentation=documentation)
    response = _ask_owner(
        cluster, resource, name, ApiKey.DESCRIBE_CONFIGS, request, DescribeConfigsResponse
    )
    result = response.results[0]
    _check_resource(cluster, resource, name, result.error_code, result.error_message)
    return tuple(
        sorted(
            Config(
                config.name,
                config.value,
                _source(config.config_source),
                config.read_only,
                config.is_sensitive,
                config.documentation,
            )
            for config in result.configs
        )
    )


def config_json(config: Config) -> dict[str, object]:
    fields: dict[str, object] = {
        "setting": config.name,
        "value": config.value,
        "from": source_text(config.source),
        "changeable": not config.is_read_only,
        "sensitive": config.is_sensitive,
    }
    if config.documentation:
        fields["meaning"] = config.documentation
    return fields


def source_text(source: ConfigSource) -> str:
    return {
        "TOPIC": "topic",
        "BROKER": "this broker",
        "CLUSTER": "all brokers",
        "FILE": "server.properties",
        "DEFAULT": "default",
        "UNKNOWN": "unknown",
    }[source.name]


def change_configs(
    cluster: Cluster,
    resource: Resource,
    name: str,
    *,
    set_to: Mapping[str, str] | None = None,
    unset: Iterable[str] = (),
) -> None:
    """Set some and return others to their default, all or none (KIP-339)."""
    from cotidal.messages.rpc.incremental_alter_configs import (
        AlterableConfig,
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )

    set_operation, delete_operation = 0, 1
    configs = (
        *(AlterableConfig(key, set_operation, value) for key, value in (set_to or {}).items()),
        *(AlterableConfig(key, delete_operation, None) for key in unset),
    )
    request = IncrementalAlterConfigsRequest((AlterConfigsResource(resource, name, configs),))
    key = ApiKey.INCREMENTAL_ALTER_CONFIGS
    if resource is Resource.BROKER and _serves(cluster, name):
        # Apache Kafka takes a broker's settings only at that broker; ours take them anywhere.
        owner = cluster.connection(NodeId(int(name)))
        response = owner.call(
            key, request, IncrementalAlterConfigsResponse, timeout_s=cluster.timeout_s
        )
    else:
        response = _decided(
            cluster,
            lambda: cluster.tell(key, request, IncrementalAlterConfigsResponse),
            lambda response: (each.error_code for each in response.responses),
        )
    result = response.responses[0]
    _check_resource(cluster, resource, name, result.error_code, result.error_message)


def describe_quorum(cluster: Cluster) -> Quorum:
    from cotidal.messages.rpc import describe_quorum as rpc

    metadata_log = rpc.DescribeQuorumRequestTopicData(
        "__cluster_metadata", (rpc.DescribeQuorumRequestPartitionData(0),)
    )
    request = rpc.DescribeQuorumRequest((metadata_log,))
    response = _decided(
        cluster,
        lambda: cluster.ask(ApiKey.DESCRIBE_QUORUM, request, rpc.DescribeQuorumResponse),
        lambda response: (response.error_code,),
    )
    raise_for(response.error_code, "the metadata quorum", response.error_message)
    partition = response.topics[0].partitions[0]
    raise_for(partition.error_code, "the metadata quorum", partition.error_message)

    def members(states: Iterable[rpc.ReplicaState]) -> tuple[QuorumMember, ...]:
        return tuple(
            sorted(
                QuorumMember(
                    NodeId(state.replica_id),
                    state.replica_directory_id,
                    state.log_end_offset,
                    state.last_fetch_timestamp,
                    state.last_caught_up_timestamp,
                )
                for state in states
            )
        )

    return Quorum(
        NodeId(partition.leader_id),
        partition.leader_epoch,
        partition.high_watermark,
        members(partition.current_voters),
        members(partition.observers),
    )


def _decided(
    cluster: Cluster,
    ask: Callable[[], Response],
    codes: Callable[[Response], Iterable[int]],
) -> Response:
    """Asked again while there is no controller: another one may just be elected. NoController if
    time runs out meanwhile.

    One that stepped down may have decided all the same: a topic that was to be created is then
    refused because it is there, as by Kafka's own clients.
    """
    backoff = Backoff(timeout_s=cluster.timeout_s)
    while True:
        response = ask()
        if ErrorCode.NOT_CONTROLLER not in codes(response):
            return response
        if not backoff.wait():
            raise NoController(seconds=cluster.timeout_s)


def _await_everywhere(cluster: Cluster, topic: str) -> None:
    """Who cannot be asked now learns of it when it is back."""
    backoff = Backoff(timeout_s=HEARD_WITHIN_S)
    with suppress(ClientError):
        for broker in cluster.metadata([]).brokers:
            with suppress(ClientError):
                while not cluster.knows(broker.node_id, topic, timeout_s=HEARD_WITHIN_S):
                    if not backoff.wait():
                        return


def add_voter(
    cluster: Cluster, node_id: NodeId, directory_id: Uuid, *, listener: str, host: str, port: int
) -> None:
    """Let a controller vote that follows the quorum already; done when it is committed."""
    from cotidal.messages.rpc.add_raft_voter import (
        AddRaftVoterRequest,
        AddRaftVoterResponse,
        Listener,
    )

    request = AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=int(cluster.timeout_s * 1000),
        voter_id=node_id,
        voter_directory_id=directory_id,
        listeners=(Listener(listener, host, port),),
    )
    response = cluster.tell(ApiKey.ADD_RAFT_VOTER, request, AddRaftVoterResponse)
    raise_for(response.error_code, f"adding voter {node_id}", response.error_message)


def remove_voter(cluster: Cluster, node_id: NodeId, directory_id: Uuid) -> None:
    from cotidal.messages.rpc.remove_raft_voter import (
        RemoveRaftVoterRequest,
        RemoveRaftVoterResponse,
    )

    request = RemoveRaftVoterRequest(None, node_id, directory_id)
    response = cluster.tell(ApiKey.REMOVE_RAFT_VOTER, request, RemoveRaftVoterResponse)
    raise_for(response.error_code, f"removing voter {node_id}", response.error_message)


def raise_kraft_version(cluster: Cluster, level: int) -> None:
    """Make fixed voters a record, so that they can be changed; done when it is committed."""
    from cotidal.messages.rpc.update_features import (
        FeatureUpdateKey,
        UpdateFeaturesRequest,
        UpdateFeaturesResponse,
    )

    request = UpdateFeaturesRequest(
        timeout_ms=int(cluster.timeout_s * 1000),
        feature_updates=(FeatureUpdateKey("kraft.version", level),),
    )
    response = cluster.tell(ApiKey.UPDATE_FEATURES, request, UpdateFeaturesResponse)
    raise_for(response.error_code, "raising kraft.version", response.error_message)


def log_sizes(
    cluster: Cluster, brokers: Iterable[NodeId]
) -> dict[NodeId, dict[TopicPartition, LogSize]]:
    """The log of each replica on each broker; a broker that cannot be asked is left out."""
    from cotidal.messages.rpc.describe_log_dirs import (
        DescribeLogDirsRequest,
        DescribeLogDirsResponse,
    )

    sizes: dict[NodeId, dict[TopicPartition, LogSize]] = {}
    for node_id in brokers:
        try:
            response = cluster.connection(node_id).call(
                ApiKey.DESCRIBE_LOG_DIRS,
                DescribeLogDirsRequest(None),
                DescribeLogDirsResponse,
                timeout_s=cluster.timeout_s,
            )
        except (Unreachable, TimedOut):
            continue
        sizes[node_id] = {
            TopicPartition(topic.name, log.partition_index): LogSize(
                directory.log_dir, log.partition_size, log.offset_lag
            )
            for directory in response.results
            for topic in directory.topics
            for log in topic.partitions
            if not log.is_future_key
        }
    return sizes


def _ask_owner(
    cluster: Cluster,
    resource: Resource,
    name: str,
    key: ApiKey,
    request: object,
    answer: type[Response],
) -> Response:
    """A broker's own configs are known to that broker only; anything else to any."""
    if resource is Resource.BROKER and name:
        cluster.metadata(())
        return cluster.connection(NodeId(int(name))).call(
            key, request, answer, timeout_s=cluster.timeout_s
        )
    return cluster.ask(key, request, answer)


def _serves(cluster: Cluster, name: str) -> bool:
    return any(str(broker.node_id) == name for broker in cluster.metadata(()).brokers)


def _check_resource(
    cluster: Cluster, resource: Resource, name: str, code: int, message: str | None
) -> None:
    if resource is Resource.TOPIC:
        _check_topic(cluster, name, code, message)
    else:
        raise_for(code, f"broker {name}" if name else "all brokers", message)


def _check_topic(cluster: Cluster, name: str, code: int, message: str | None) -> None:
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise UnknownTopic(name, [topic.name for topic in cluster.metadata().topics])
    raise_for(code, f"topic '{name}'", message)


def _source(number: int) -> ConfigSource:
    try:
        return ConfigSource(number)
    except ValueError:
        return ConfigSource.UNKNOWN
