"""What the cluster is: brokers, topics, partitions, settings, features. Pure.

An Image is the sum of the metadata records replayed into it, in order, from the first one or from
a snapshot. ``replay`` is the only thing that changes it, and it cannot fail (REPLAY_CANNOT_FAIL):
every record was decided upon an image that had replayed everything before it, so a record about a
topic that is not there is a Fault, never a Refusal.

Values inside (Broker, Partition) are immutable and shared between images; a Topic is owned by its
image. ``copy`` therefore costs one shallow copy of each dict: 1 ms for 10,000 partitions.

Invariants of each partition, checked by ``check``:
  C1  the ISR and the ELR are disjoint parts of the replicas; the last known leader is one of them
  C2  a leader is in the ISR
  C3  a full ISR (min.insync.replicas and more) leaves the ELR empty   (checked where min is known)
  C4  with ELR on, no fenced broker is in an ISR
  C5  replicas that are being added or removed are replicas; some remain when the removed have gone
  C6  each replica has a directory, or none has

Records of families of which nothing is asked (ACLs, delegation tokens), or little (SCRAM
credentials), are kept as they are in ``kept``, so that a snapshot loses nothing. The beginnings and
ends of metadata transactions say nothing here: whether what is between them counts is decided
before it is replayed (together.py). The ZooKeeper migration state is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, assert_never

from cotidal.core.cluster.registered import (
    LEADER_UNCHANGED,
    RECOVERED,
    RECOVERING,
    RECOVERY_UNCHANGED,
    Broker,
    ControllerNode,
    Endpoint,
    FeatureRange,
    Partition,
    broker_of,
    broker_record,
    changed,
    controller_of,
    controller_record,
    partition_of,
    partition_record,
)
from cotidal.invariants import REPLAY_CANNOT_FAIL
from cotidal.messages.records.metadata import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    EntityData,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from cotidal.values import (
    NO_NODE,
    ZERO_UUID,
    NodeId,
    PartitionEpoch,
    ProducerId,
    Uuid,
)

__all__ = [
    "BROKER_LOGGER_RESOURCE",
    "BROKER_RESOURCE",
    "CLIENT_METRICS_RESOURCE",
    "CLUSTER_DEFAULT",
    "ELR_VERSION",
    "GROUP_RESOURCE",
    "LEADER_UNCHANGED",
    "METADATA_VERSION",
    "RECOVERED",
    "RECOVERING",
    "RECOVERY_UNCHANGED",
    "TOPIC_RESOURCE",
    "Broker",
    "ConfigResource",
    "ControllerNode",
    "Endpoint",
    "FeatureRange",
    "Image",
    "MetadataRecord",
    "Partition",
    "QuotaEntity",
    "Topic",
    "broker_record",
    "changed",
    "check",
    "partition_record",
    "quota_entity",
]

MetadataRecord: TypeAlias = (
    AbortTransactionRecord
    | AccessControlEntryRecord
    | BeginTransactionRecord
    | BrokerRegistrationChangeRecord
    | ClearElrRecord
    | ClientQuotaRecord
    | ConfigRecord
    | DelegationTokenRecord
    | EndTransactionRecord
    | FeatureLevelRecord
    | FenceBrokerRecord
    | NoOpRecord
    | PartitionChangeRecord
    | PartitionRecord
    | ProducerIdsRecord
    | RegisterBrokerRecord
    | RegisterControllerRecord
    | RemoveAccessControlEntryRecord
    | RemoveDelegationTokenRecord
    | RemoveTopicRecord
    | RemoveUserScramCredentialRecord
    | TopicRecord
    | UnfenceBrokerRecord
    | UnregisterBrokerRecord
    | UserScramCredentialRecord
    | ZkMigrationStateRecord
)

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
BROKER_LOGGER_RESOURCE: Final = 8
CLIENT_METRICS_RESOURCE: Final = 16
GROUP_RESOURCE: Final = 32

CLUSTER_DEFAULT: Final = (BROKER_RESOURCE, "")
"""The resource that carries settings for all brokers."""

METADATA_VERSION: Final = "metadata.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"

ConfigResource: TypeAlias = tuple[int, str]
"""Resource type and name: (TOPIC_RESOURCE, "orders")."""

QuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]
"""Type and name of each part, by type; no name: whoever has no quota by name."""

_NO_SETTINGS: Final[Mapping[str, str]] = {}


def quota_entity(parts: Mapping[str, str | None]) -> QuotaEntity:
    """One for the same parts, in whatever order they are told."""
    return tuple((kind, parts[kind]) for kind in sorted(parts))


class Topic:
    """A topic and its partitions. Owned by one image."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: Uuid, partitions: dict[int, Partition]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Topic)
            and self.name == other.name
            and self.topic_id == other.topic_id
            and self.partitions == other.partitions
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, {len(self.partitions)} partitions)"


_SAID: Final = (
    "brokers",
    "configs",
    "controllers",
    "features",
    "kept",
    "next_producer_id",
    "quotas",
    "topic_names",
    "topics",
)


class Image:
    """The state of the cluster after some prefix of the metadata log."""

    __slots__ = (*_SAID, "version")

    def __init__(self) -> None:
        self.brokers: dict[NodeId, Broker] = {}
        self.controllers: dict[NodeId, ControllerNode] = {}
        self.topics: dict[str, Topic] = {}
        self.topic_names: dict[Uuid, str] = {}
        self.configs: dict[ConfigResource, dict[str, str]] = {}
        """Dynamic settings. Invariant: no resource maps to an empty dict."""
        self.features: dict[str, int] = {}
        """Finalized levels. Invariant: no level is 0."""
        self.next_producer_id = ProducerId(0)
        """The first producer id of the next block."""
        self.quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.kept: dict[tuple[str, object], MetadataRecord] = {}
        """Records of families without rules of their own, by family and identity."""
        self.version = 0
        """Grows with each replay that may change an answer (a NoOpRecord does not): for caches."""

    # What it says ----------------------------------------------------------------------------

    def topic_by_id(self, topic_id: Uuid) -> Topic | None:
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics[name]

    def partition(self, topic: str, partition: int) -> Partition | None:
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(partition)

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """The dynamic settings of one resource."""
        return self.configs.get((resource_type, name), _NO_SETTINGS)

    @property
    def cluster_config(self) -> Mapping[str, str]:
        return self.configs.get(CLUSTER_DEFAULT, _NO_SETTINGS)

    @property
    def elr_enabled(self) -> bool:
        return self.features.get(ELR_VERSION, 0) >= 1

    def is_active(self, node_id: NodeId) -> bool:
        broker = self.brokers.get(node_id)
        return broker is not None and broker.active

    def default_directory(self, node_id: NodeId) -> Uuid:
        """A broker's only directory; otherwise it will choose one itself (KIP-858)."""
        broker = self.brokers.get(node_id)
        return broker.log_dirs[0] if broker and len(broker.log_dirs) == 1 else ZERO_UUID

    def __eq__(self, other: object) -> bool:
        """Equal in what they say; ``version`` counts how they came to say it."""
        return isinstance(other, Image) and all(
            getattr(self, name) == getattr(other, name) for name in _SAID
        )

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> Image:
        """An image that says the same and shares nothing that can change."""
        twin = Image()
        twin.brokers = self.brokers.copy()
        twin.controllers = self.controllers.copy()
        twin.topics = {
            name: Topic(name, topic.topic_id, topic.partitions.copy())
            for name, topic in self.topics.items()
        }
        twin.topic_names = self.topic_names.copy()
        twin.configs = {resource: values.copy() for resource, values in self.configs.items()}
        twin.features = self.features.copy()
        twin.next_producer_id = self.next_producer_id
        twin.quotas = {entity: values.copy() for entity, values in self.quotas.items()}
        twin.kept = self.kept.copy()
        twin.version = self.version
        return twin

    # What changes it -------------------------------------------------------------------------

    def replay(self, record: MetadataRecord) -> None:
        match record:
            case (
                NoOpRecord()
                | BeginTransactionRecord()
                | EndTransactionRecord()
                | AbortTransactionRecord()
                | ZkMigrationStateRecord()
            ):
                return
            case PartitionChangeRecord():
                topic = self._topic(record.topic_id)
                partition_id = record.partition_id
                topic.partitions[partition_id] = changed(topic.partitions[partition_id], record)
            case TopicRecord():
                self.topics[record.name] = Topic(record.name, record.topic_id, {})
                self.topic_names[record.topic_id] = record.name
            case PartitionRecord():
                topic = self._topic(record.topic_id)
                topic.partitions[record.partition_id] = partition_of(record)
            case RemoveTopicRecord():
                name = self._topic(record.topic_id).name
                del self.topics[name]
                del self.topic_names[record.topic_id]
                self.configs.pop((TOPIC_RESOURCE, name), None)
            case ConfigRecord():
                self._replay_config(record)
            case RegisterBrokerRecord():
                self.brokers[NodeId(record.broker_id)] = broker_of(record)
            case UnregisterBrokerRecord():
                del self.brokers[NodeId(record.broker_id)]
            case BrokerRegistrationChangeRecord():
                self._replay_broker_change(record)
            case FenceBrokerRecord() | UnfenceBrokerRecord():
                node_id = NodeId(record.id)
                fenced = isinstance(record, FenceBrokerRecord)
                self.brokers[node_id] = self.brokers[node_id]._replace(fenced=fenced)
            case RegisterControllerRecord():
                self.controllers[NodeId(record.controller_id)] = controller_of(record)
            case FeatureLevelRecord():
                if record.feature_level == 0:
                    self.features.pop(record.name, None)
                else:
                    self.features[record.name] = record.feature_level
            case ProducerIdsRecord():
                self.next_producer_id = ProducerId(record.next_producer_id)
            case ClearElrRecord():
                self._replay_clear_elr(record)
            case ClientQuotaRecord():
                self._replay_quota(record)
            case AccessControlEntryRecord():
                self.kept["acl", record.id] = record
            case RemoveAccessControlEntryRecord():
                self.kept.pop(("acl", record.id), None)
            case UserScramCredentialRecord():
                self.kept["scram", (record.name, record.mechanism)] = record
            case RemoveUserScramCredentialRecord():
                self.kept.pop(("scram", (record.name, record.mechanism)), None)
            case DelegationTokenRecord():
                self.kept["token", record.token_id] = record
            case RemoveDelegationTokenRecord():
                self.kept.pop(("token", record.token_id), None)
            case _:
                assert_never(record)
        self.version += 1

    def _topic(self, topic_id: Uuid) -> Topic:
        name = self.topic_names.get(topic_id)
        assert name is not None, REPLAY_CANNOT_FAIL
        return self.topics[name]

    def _replay_config(self, record: ConfigRecord) -> None:
        resource = (record.resource_type, record.resource_name)
        if record.value is not None:
            self.configs.setdefault(resource, {})[record.name] = record.value
            return
        values = self.configs.get(resource)
        if values is not None:
            values.pop(record.name, None)
            if not values:
                del self.configs[resource]

    def _replay_broker_change(self, record: BrokerRegistrationChangeRecord) -> None:
        node_id = NodeId(record.broker_id)
        broker = self.brokers[node_id]
        self.brokers[node_id] = broker._replace(
            fenced=record.fenced > 0 if record.fenced else broker.fenced,
            in_controlled_shutdown=(
                record.in_controlled_shutdown > 0
                if record.in_controlled_shutdown
                else broker.in_controlled_shutdown
            ),
            log_dirs=record.log_dirs if record.log_dirs else broker.log_dirs,
            cordoned_log_dirs=(
                broker.cordoned_log_dirs
                if record.cordoned_log_dirs is None
                else record.cordoned_log_dirs
            ),
        )

    def _replay_clear_elr(self, record: ClearElrRecord) -> None:
        topics = [self.topics[record.topic_name]] if record.topic_name else self.topics.values()
        for topic in topics:
            for number, partition in topic.partitions.items():
                if partition.elr or partition.last_known_elr:
                    topic.partitions[number] = partition._replace(
                        elr=(),
                        last_known_elr=(),
                        partition_epoch=PartitionEpoch(partition.partition_epoch + 1),
                    )

    def _replay_quota(self, record: ClientQuotaRecord) -> None:
        entity = quota_entity({part.entity_type: part.entity_name for part in record.entity})
        if not record.remove:
            self.quotas.setdefault(entity, {})[record.key] = record.value
            return
        values = self.quotas.get(entity)
        if values is not None:
            values.pop(record.key, None)
            if not values:
                del self.quotas[entity]

    # How it is written down ------------------------------------------------------------------

    def records(self) -> Iterator[MetadataRecord]:
        """Records that make an equal image: the body of a snapshot. Features come first, because
        a reader has to know metadata.version before it can read the rest."""
        for feature in sorted(self.features, key=lambda name: (name != METADATA_VERSION, name)):
            yield FeatureLevelRecord(name=feature, feature_level=self.features[feature])
        for controller in self.controllers.values():
            yield controller_record(controller)
        for broker in self.brokers.values():
            yield broker_record(broker)
        for topic in self.topics.values():
            yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
            for number, partition in topic.partitions.items():
                yield partition_record(topic.topic_id, number, partition)
        for (resource_type, resource_name), values in self.configs.items():
            for name, value in values.items():
                yield ConfigRecord(
                    resource_type=resource_type,
                    resource_name=resource_name,
                    name=name,
                    value=value,
                )
        for entity, quotas in self.quotas.items():
            parts = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity)
            for key, quota in quotas.items():
                yield ClientQuotaRecord(entity=parts, key=key, value=quota, remove=False)
        if self.next_producer_id > 0:
            yield ProducerIdsRecord(
                broker_id=0, broker_epoch=0, next_producer_id=self.next_producer_id
            )
        yield from self.kept.values()


def check(image: Image) -> None:
    """Assert C1, C2 and C4 to C6 (module head) of every partition."""
    for topic in image.topics.values():
        for number, partition in topic.partitions.items():
            where = f"{topic.name}-{number}: {partition}"
            replicas = frozenset(partition.replicas)
            assert replicas.issuperset(partition.isr), f"C1 {where}"
            assert replicas.issuperset(partition.elr), f"C1 {where}"
            assert replicas.issuperset(partition.last_known_elr), f"C1 {where}"
            assert replicas.issuperset(partition.adding), f"C5 {where}"
            assert replicas.issuperset(partition.removing), f"C5 {where}"
            assert replicas.difference(partition.removing), f"C5 {where}"
            housed = len(partition.directories)
            assert housed in (0, len(partition.replicas)), f"C6 {where}"
            assert not frozenset(partition.isr).intersection(partition.elr), f"C1 {where}"
            assert partition.leader == NO_NODE or partition.leader in partition.isr, f"C2 {where}"
            if image.elr_enabled:
                assert not any(
                    node in image.brokers and image.brokers[node].fenced for node in partition.isr
                ), f"C4 {where}"
