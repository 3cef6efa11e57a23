"""THE TABLE of the APIs that are served: key, versions, and who answers. Pure.

Versions are exactly those that Apache Kafka 4.3 answers to ApiVersions. A module of this package
holds each API; it is imported when the API is first asked for, so that a node starts fast.

  CONNECTION   answered from what the connection itself knows
  BROKER       ``answer(request, asked, view) -> response``, from this broker's committed image
  CONTROLLER   ``decide(request, asked, controller) -> Decision``; answered once it is committed
  ACTIVE       the same with ``active`` (active.py): the controller's soft state
  QUORUM       the leader of the quorum: node/voters.py asks its machine, the module translates
  PARTITION    the data plane: node/ talks to the partitions, the module builds the answers
  COORDINATOR  ``parts(request, asked, view)`` asks coordinators, ``response`` answers
"""

from __future__ import annotations

from enum import Enum
from importlib import import_module
from types import ModuleType
from typing import Final, NamedTuple

from cotidal.messages.rpc.apis import APIS as KNOWN
from cotidal.messages.rpc.apis import ApiKey


class Owner(Enum):
    CONNECTION = "connection"
    BROKER = "broker"
    CONTROLLER = "controller"
    ACTIVE = "active"
    QUORUM = "quorum"
    PARTITION = "partition"
    COORDINATOR = "coordinator"


class Api(NamedTuple):
    key: ApiKey
    name: str
    oldest: int
    """The oldest version that is served."""
    newest: int
    owner: Owner
    controller_listener: bool = False
    """Served on the controller's listener too."""
    advertised_from: int | None = None
    """Where ApiVersions claims an older version than is served."""

    @property
    def advertised_oldest(self) -> int:
        return self.oldest if self.advertised_from is None else self.advertised_from

    def serves(self, version: int) -> bool:
        return self.oldest <= version <= self.newest


_TABLE: Final = (
    # librdkafka drops compression unless Produce is advertised from 0 (KAFKA-18659)
    Api(ApiKey.PRODUCE, "Produce", 3, 13, Owner.PARTITION, advertised_from=0),
    Api(ApiKey.FETCH, "Fetch", 4, 18, Owner.PARTITION, True),
    Api(ApiKey.LIST_OFFSETS, "ListOffsets", 1, 11, Owner.PARTITION),
    Api(ApiKey.METADATA, "Metadata", 0, 13, Owner.BROKER),
    Api(ApiKey.OFFSET_COMMIT, "OffsetCommit", 2, 10, Owner.COORDINATOR),
    Api(ApiKey.OFFSET_FETCH, "OffsetFetch", 1, 10, Owner.COORDINATOR),
    Api(ApiKey.FIND_COORDINATOR, "FindCoordinator", 0, 6, Owner.BROKER),
    Api(ApiKey.JOIN_GROUP, "JoinGroup", 0, 9, Owner.COORDINATOR),
    Api(ApiKey.HEARTBEAT, "Heartbeat", 0, 4, Owner.COORDINATOR),
    Api(ApiKey.LEAVE_GROUP, "LeaveGroup", 0, 5, Owner.COORDINATOR),
    Api(ApiKey.SYNC_GROUP, "SyncGroup", 0, 5, Owner.COORDINATOR),
    Api(ApiKey.DESCRIBE_GROUPS, "DescribeGroups", 0, 6, Owner.COORDINATOR),
    Api(ApiKey.LIST_GROUPS, "ListGroups", 0, 5, Owner.COORDINATOR),
    Api(ApiKey.SASL_HANDSHAKE, "SaslHandshake", 0, 1, Owner.BROKER, True),
    Api(ApiKey.API_VERSIONS, "ApiVersions", 0, 4, Owner.CONNECTION, True),
    Api(ApiKey.CREATE_TOPICS, "CreateTopics", 2, 7, Owner.CONTROLLER, True),
    Api(ApiKey.DELETE_TOPICS, "DeleteTopics", 1, 6, Owner.CONTROLLER, True),
    Api(ApiKey.DELETE_RECORDS, "DeleteRecords", 0, 2, Owner.PARTITION),
    Api(ApiKey.INIT_PRODUCER_ID, "InitProducerId", 0, 5, Owner.COORDINATOR),
    Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, "OffsetForLeaderEpoch", 2, 4, Owner.PARTITION),
    Api(ApiKey.ADD_PARTITIONS_TO_TXN, "AddPartitionsToTxn", 0, 5, Owner.COORDINATOR),
    Api(ApiKey.ADD_OFFSETS_TO_TXN, "AddOffsetsToTxn", 0, 4, Owner.COORDINATOR),
    Api(ApiKey.END_TXN, "EndTxn", 0, 5, Owner.COORDINATOR),
    Api(ApiKey.WRITE_TXN_MARKERS, "WriteTxnMarkers", 1, 2, Owner.PARTITION),
    Api(ApiKey.TXN_OFFSET_COMMIT, "TxnOffsetCommit", 0, 5, Owner.COORDINATOR),
    Api(ApiKey.DESCRIBE_ACLS, "DescribeAcls", 1, 3, Owner.BROKER, True),
    Api(ApiKey.CREATE_ACLS, "CreateAcls", 1, 3, Owner.BROKER, True),
    Api(ApiKey.DELETE_ACLS, "DeleteAcls", 1, 3, Owner.BROKER, True),
    Api(ApiKey.DESCRIBE_CONFIGS, "DescribeConfigs", 1, 4, Owner.BROKER, True),
    Api(ApiKey.ALTER_CONFIGS, "AlterConfigs", 0, 2, Owner.CONTROLLER, True),
    Api(ApiKey.ALTER_REPLICA_LOG_DIRS, "AlterReplicaLogDirs", 1, 2, Owner.PARTITION),
    Api(ApiKey.DESCRIBE_LOG_DIRS, "DescribeLogDirs", 1, 5, Owner.PARTITION),
    Api(ApiKey.SASL_AUTHENTICATE, "SaslAuthenticate", 0, 2, Owner.BROKER, True),
    Api(ApiKey.CREATE_PARTITIONS, "CreatePartitions", 0, 3, Owner.CONTROLLER, True),
    Api(ApiKey.CREATE_DELEGATION_TOKEN, "CreateDelegationToken", 1, 3, Owner.BROKER, True),
    Api(ApiKey.RENEW_DELEGATION_TOKEN, "RenewDelegationToken", 1, 2, Owner.BROKER, True),
    Api(ApiKey.EXPIRE_DELEGATION_TOKEN, "ExpireDelegationToken", 1, 2, Owner.BROKER, True),
    Api(ApiKey.DESCRIBE_DELEGATION_TOKEN, "DescribeDelegationToken", 1, 3, Owner.BROKER, True),
    Api(ApiKey.DELETE_GROUPS, "DeleteGroups", 0, 2, Owner.COORDINATOR),
    Api(ApiKey.ELECT_LEADERS, "ElectLeaders", 0, 2, Owner.CONTROLLER, True),
    Api(ApiKey.INCREMENTAL_ALTER_CONFIGS, "IncrementalAlterConfigs", 0, 1, Owner.CONTROLLER, True),
    Api(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        "AlterPartitionReassignments",
        0,
        1,
        Owner.CONTROLLER,
        True,
    ),
    Api(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        "ListPartitionReassignments",
        0,
        0,
        Owner.CONTROLLER,
        True,
    ),
    Api(ApiKey.OFFSET_DELETE, "OffsetDelete", 0, 0, Owner.COORDINATOR),
    Api(ApiKey.DESCRIBE_CLIENT_QUOTAS, "DescribeClientQuotas", 0, 1, Owner.BROKER),
    Api(ApiKey.ALTER_CLIENT_QUOTAS, "AlterClientQuotas", 0, 1, Owner.CONTROLLER, True),
    Api(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        "DescribeUserScramCredentials",
        0,
        0,
        Owner.BROKER,
        True,
    ),
    Api(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        "AlterUserScramCredentials",
        0,
        0,
        Owner.CONTROLLER,
        True,
    ),
    Api(ApiKey.DESCRIBE_QUORUM, "DescribeQuorum", 0, 2, Owner.QUORUM, True),
    Api(ApiKey.UPDATE_FEATURES, "UpdateFeatures", 0, 2, Owner.CONTROLLER, True),
    Api(ApiKey.DESCRIBE_CLUSTER, "DescribeCluster", 0, 2, Owner.BROKER, True),
    Api(ApiKey.DESCRIBE_PRODUCERS, "DescribeProducers", 0, 0, Owner.BROKER),
    Api(ApiKey.UNREGISTER_BROKER, "UnregisterBroker", 0, 0, Owner.CONTROLLER, True),
    Api(ApiKey.DESCRIBE_TRANSACTIONS, "DescribeTransactions", 0, 0, Owner.COORDINATOR),
    Api(ApiKey.LIST_TRANSACTIONS, "ListTransactions", 0, 2, Owner.COORDINATOR),
    Api(ApiKey.CONSUMER_GROUP_HEARTBEAT, "ConsumerGroupHeartbeat", 0, 1, Owner.COORDINATOR),
    Api(ApiKey.CONSUMER_GROUP_DESCRIBE, "ConsumerGroupDescribe", 0, 1, Owner.COORDINATOR),
    Api(ApiKey.LIST_CONFIG_RESOURCES, "ListConfigResources", 0, 1, Owner.BROKER),
    Api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "DescribeTopicPartitions", 0, 0, Owner.BROKER),
    Api(ApiKey.ADD_RAFT_VOTER, "AddRaftVoter", 0, 1, Owner.QUORUM, True),
    Api(ApiKey.REMOVE_RAFT_VOTER, "RemoveRaftVoter", 0, 0, Owner.QUORUM, True),
)

_BETWEEN_NODES: Final = (
    Api(ApiKey.ALTER_PARTITION, "AlterPartition", 2, 3, Owner.CONTROLLER, True),
    Api(ApiKey.ENVELOPE, "Envelope", 0, 0, Owner.BROKER, True),
    Api(ApiKey.BROKER_REGISTRATION, "BrokerRegistration", 0, 4, Owner.ACTIVE, True),
    Api(ApiKey.BROKER_HEARTBEAT, "BrokerHeartbeat", 0, 2, Owner.ACTIVE, True),
    Api(ApiKey.ALLOCATE_PRODUCER_IDS, "AllocateProducerIds", 0, 0, Owner.CONTROLLER, True),
    Api(ApiKey.CONTROLLER_REGISTRATION, "ControllerRegistration", 0, 0, Owner.CONTROLLER, True),
    Api(ApiKey.ASSIGN_REPLICAS_TO_DIRS, "AssignReplicasToDirs", 0, 0, Owner.CONTROLLER, True),
)

APIS: Final[dict[int, Api]] = {int(api.key): api for api in _TABLE}
"""By key. Iteration is in the order of the keys."""

INTERNAL: Final[dict[int, Api]] = {int(api.key): api for api in _BETWEEN_NODES}
"""What nodes ask each other, on a controller's listener only."""

_OURS: Final = (Api(ApiKey.DESCRIBE_REPLICAS, "DescribeReplicas", 0, 0, Owner.PARTITION),)

OURS: Final[dict[int, Api]] = {int(api.key): api for api in _OURS}
"""What only our own client asks for (docs/adr/0004): ApiVersions names it to nobody else."""

QUORUM: Final = (
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.FETCH_SNAPSHOT,
    ApiKey.UPDATE_RAFT_VOTER,
)
"""What replicas of the metadata log ask each other besides Fetch, on a controller's listener only:
the quorum's machine answers (quorum_talk.py)."""


def served(*, by_controller: bool) -> dict[int, tuple[int, int]]:
    """What may be asked at a listener, of clients or of the controller: key -> oldest and newest
    version, in the order of the keys."""
    if not by_controller:
        return {key: (api.oldest, api.newest) for key, api in (APIS | OURS).items()}
    found = {
        key: (api.oldest, api.newest)
        for key, api in (APIS | INTERNAL).items()
        if api.controller_listener
    }
    for key in QUORUM:
        found[int(key)] = (KNOWN[key].first_version, KNOWN[key].last_stable_version)
    return dict(sorted(found.items()))


def handler(key: int) -> ModuleType:
    """The module of an API that is in one of the tables."""
    assert key in APIS or key in INTERNAL or key in OURS, key
    return import_module(f"cotidal.api.{KNOWN[key].module}")


def refusals() -> ModuleType:
    """How each API says that this node cannot decide: it knows the messages of all of them."""
    return import_module("cotidal.api.refusing")
