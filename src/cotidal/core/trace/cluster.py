"""The cluster in words: the metadata log, what is asked of the controller, what it decides. Pure.

A record names its topic by id, and says only what changes. With the image as it is *before* the
record is replayed, its line tells what the partition becomes:

    partition orders-0: leader 2, ISR 2 3, epoch 8

``names`` (topic id -> name) does for those who have no image: then a line tells only what the
record says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias, assert_never

from cotidal.core.cluster.decide.brokers import Heartbeat, HeartbeatDecided, Registration
from cotidal.core.cluster.decide.configs import ConfigChange
from cotidal.core.cluster.decide.isr import IsrDecided, IsrProposal
from cotidal.core.cluster.decide.reassignment import Ongoing
from cotidal.core.cluster.decide.topics import Created, NewTopic
from cotidal.core.cluster.image import (
    BROKER_RESOURCE,
    LEADER_UNCHANGED,
    RECOVERING,
    TOPIC_RESOURCE,
    Image,
    MetadataRecord,
    Partition,
    changed,
)
from cotidal.core.cluster.registered import partition_of
from cotidal.core.cluster.sessions import Probe
from cotidal.core.trace.told import Told, fields_of, named, node
from cotidal.errors import ErrorCode
from cotidal.messages.records import metadata as md
from cotidal.values import Uuid, uuid_text
from cotidal.words import counted

ClusterQuestion: TypeAlias = Registration | Heartbeat | IsrProposal | NewTopic | ConfigChange
ClusterVerdict: TypeAlias = HeartbeatDecided | IsrDecided | Created | Ongoing | Probe
ClusterMoment: TypeAlias = MetadataRecord | ClusterQuestion | ClusterVerdict
Names: TypeAlias = Mapping[Uuid, str]

NO_NAMES: Final[Names] = {}
_SECRETS: Final = ("salt", "stored_key", "server_key")
_OPERATIONS: Final = ("set", "delete", "append", "subtract")


def tell_cluster(moment: ClusterMoment) -> Told:
    match moment:
        case Registration() | Heartbeat() | IsrProposal() | NewTopic() | ConfigChange():
            name, said = _question(moment)
        case HeartbeatDecided() | IsrDecided() | Created() | Ongoing() | Probe():
            name, said = _verdict(moment)
        case _:
            return tell_record(moment)
    return Told(name, said, fields_of(moment))


def tell_record(
    record: MetadataRecord, image: Image | None = None, names: Names = NO_NAMES
) -> Told:
    """``image``: as it is before the record is replayed into it."""
    if image is not None:
        names = image.topic_names
    name, said = _record(record, image, names)
    fields = {"record": type(record).__name__, **fields_of(record)}
    for secret in _SECRETS if isinstance(record, md.UserScramCredentialRecord) else ():
        del fields[secret]
    return Told(name, said, fields)


def partition_words(partition: Partition) -> str:
    """Where a partition stands: ``leader 2, ISR 2 3, epoch 8`` and what is out of the ordinary."""
    words = [
        f"leader {node(partition.leader)}",
        f"ISR {_nodes(partition.isr)}",
        f"epoch {partition.leader_epoch}",
    ]
    if partition.elr:
        words.append(f"eligible {_nodes(partition.elr)}")
    if partition.last_known_elr:
        words.append(f"last known leader {_nodes(partition.last_known_elr)}")
    if partition.adding:
        words.append(f"adding {_nodes(partition.adding)}")
    if partition.removing:
        words.append(f"removing {_nodes(partition.removing)}")
    if partition.recovery_state == RECOVERING:
        words.append("recovering")
    return ", ".join(words)


# --- records ------------------------------------------------------------------------------------


def _record(record: MetadataRecord, image: Image | None, names: Names) -> tuple[str, str]:
    match record:
        case md.PartitionRecord() | md.PartitionChangeRecord():
            return "partition", _partition(record, image, names)
        case md.TopicRecord():
            return "topic", f"{record.name} created"
        case md.RemoveTopicRecord():
            return "topic", f"{_topic(record.topic_id, names)} removed"
        case md.ClearElrRecord():
            return "topic", f"{record.topic_name or 'all topics'}: eligible replicas forgotten"
        case (
            md.RegisterBrokerRecord()
            | md.UnregisterBrokerRecord()
            | md.BrokerRegistrationChangeRecord()
            | md.FenceBrokerRecord()
            | md.UnfenceBrokerRecord()
        ):
            return "broker", _broker(record)
        case md.RegisterControllerRecord():
            return "controller", f"{record.controller_id} registered"
        case md.ConfigRecord():
            is_set = record.value is not None
            value = f"{record.name}={record.value}" if is_set else f"{record.name} removed"
            return "config", f"{_resource(record.resource_type, record.resource_name)}: {value}"
        case md.FeatureLevelRecord():
            return "feature", f"{record.name}={record.feature_level}"
        case md.ProducerIdsRecord():
            said = f"below {record.next_producer_id} given to broker {record.broker_id}"
            return "producer-ids", said
        case _:
            return _rare(record)


def _rare(
    record: md.ClientQuotaRecord
    | md.AccessControlEntryRecord
    | md.RemoveAccessControlEntryRecord
    | md.UserScramCredentialRecord
    | md.RemoveUserScramCredentialRecord
    | md.DelegationTokenRecord
    | md.RemoveDelegationTokenRecord
    | md.NoOpRecord
    | md.BeginTransactionRecord
    | md.EndTransactionRecord
    | md.AbortTransactionRecord
    | md.ZkMigrationStateRecord,
) -> tuple[str, str]:
    match record:
        case md.ClientQuotaRecord():
            who = " ".join(f"{part.entity_type}={part.entity_name}" for part in record.entity)
            value = "removed" if record.remove else str(record.value)
            return "quota", f"{who}: {record.key} {value}"
        case md.AccessControlEntryRecord():
            return "acl", f"{record.principal} on {record.resource_name}"
        case md.RemoveAccessControlEntryRecord():
            return "acl", f"{uuid_text(record.id)} removed"
        case md.UserScramCredentialRecord():
            return "scram", f"{record.name} set"
        case md.RemoveUserScramCredentialRecord():
            return "scram", f"{record.name} removed"
        case md.DelegationTokenRecord():
            return "token", f"{record.token_id} of {record.owner}"
        case md.RemoveDelegationTokenRecord():
            return "token", f"{record.token_id} removed"
        case md.NoOpRecord():
            return "no-op", ""
        case md.BeginTransactionRecord():
            return "transaction", f"begun {record.name or ''}".rstrip()
        case md.EndTransactionRecord():
            return "transaction", "ended"
        case md.AbortTransactionRecord():
            return "transaction", f"aborted {record.reason or ''}".rstrip()
        case md.ZkMigrationStateRecord():
            return "migration", str(record.zk_migration_state)
        case _:
            assert_never(record)


def _partition(
    record: md.PartitionRecord | md.PartitionChangeRecord, image: Image | None, names: Names
) -> str:
    where = f"{_topic(record.topic_id, names)}-{record.partition_id}"
    if isinstance(record, md.PartitionRecord):
        born = partition_of(record)
        return f"{where}: replicas {_nodes(born.replicas)}, {partition_words(born)}"
    before = None
    if image is not None and record.topic_id in names:
        before = image.partition(names[record.topic_id], record.partition_id)
    if before is None:
        return f"{where}: {_change(record)}"
    after = changed(before, record)
    moved = record.replicas is not None
    replicas = f"replicas {_nodes(after.replicas)}, " if moved else ""
    return f"{where}: {replicas}{partition_words(after)}"


def _change(record: md.PartitionChangeRecord) -> str:
    """What the record itself says."""
    words = []
    if record.leader != LEADER_UNCHANGED:
        words.append(f"leader {node(record.leader)}")
    for what, nodes in (
        ("ISR", record.isr),
        ("replicas", record.replicas),
        ("adding", record.adding_replicas),
        ("removing", record.removing_replicas),
        ("eligible", record.eligible_leader_replicas),
        ("last known leader", record.last_known_elr),
    ):
        if nodes is not None:
            words.append(f"{what} {_nodes(nodes)}")
    if record.leader_recovery_state >= 0:
        is_recovering = record.leader_recovery_state == RECOVERING
        words.append("recovering" if is_recovering else "recovered")
    if record.directories is not None:
        words.append("in other directories")
    return ", ".join(words) or "unchanged"


def _broker(
    record: md.RegisterBrokerRecord
    | md.UnregisterBrokerRecord
    | md.BrokerRegistrationChangeRecord
    | md.FenceBrokerRecord
    | md.UnfenceBrokerRecord,
) -> str:
    match record:
        case md.RegisterBrokerRecord():
            words = ["registered", f"epoch {record.broker_epoch}"]
            words += [f"rack {record.rack}"] if record.rack else []
            words += ["fenced"] if record.fenced else []
            words += ["shutting down"] if record.in_controlled_shutdown else []
            return f"{record.broker_id} {', '.join(words)}"
        case md.UnregisterBrokerRecord():
            return f"{record.broker_id} unregistered"
        case md.BrokerRegistrationChangeRecord():
            words = [] if not record.fenced else ["fenced" if record.fenced > 0 else "unfenced"]
            words += ["shutting down"] if record.in_controlled_shutdown > 0 else []
            words += ["has other directories"] if record.log_dirs else []
            words += [] if record.cordoned_log_dirs is None else ["cordons directories"]
            return f"{record.broker_id} {', '.join(words) or 'unchanged'}"
        case md.FenceBrokerRecord():
            return f"{record.id} fenced"
        case md.UnfenceBrokerRecord():
            return f"{record.id} unfenced"
        case _:
            assert_never(record)


# --- questions and verdicts ---------------------------------------------------------------------


def _question(question: ClusterQuestion) -> tuple[str, str]:
    match question:
        case Registration():
            after = question.previous_epoch
            how = f" after a clean end of epoch {after}" if after >= 0 else ""
            return "register", f"broker {question.node_id}{how}"
        case Heartbeat():
            words = [f"broker {question.node_id}", f"epoch={question.epoch}"]
            words.append(f"metadata={question.metadata_offset}")
            words += ["wants fence"] if question.want_fence else []
            words += ["wants shutdown"] if question.want_shutdown else []
            return "heartbeat", " ".join(words)
        case IsrProposal():
            members = _nodes(member.node_id for member in question.members)
            said = f"partition {question.partition} ISR {members} epoch={question.leader_epoch}"
            return "propose-isr", said
        case NewTopic():
            return "create-topic", question.name
        case ConfigChange(name, operation, value):
            shown = "" if value is None else f"={value}"
            return "config-change", f"{_OPERATIONS[operation]} {name}{shown}"
        case _:
            assert_never(question)


def _verdict(verdict: ClusterVerdict) -> tuple[str, str]:
    match verdict:
        case HeartbeatDecided():
            words = ["caught up" if verdict.caught_up else "not caught up"]
            words += ["fenced"] if verdict.fenced else []
            words += ["may stop"] if verdict.should_shut_down else []
            return "heartbeat-decided", ", ".join(words)
        case IsrDecided(_, partition, error):
            told = "" if error is ErrorCode.NONE else f" but {named(error)}"
            return "isr-decided", f"{partition_words(partition)}{told}"
        case Created(_, _, partitions, factor):
            return "created", f"{counted(partitions, 'partition')}, replication factor {factor}"
        case Ongoing(topic, number, replicas, adding, removing):
            said = f"{topic}-{number}: replicas {_nodes(replicas)}"
            said += f", adding {_nodes(adding)}, removing {_nodes(removing)}"
            return "reassigning", said
        case Probe(node_id, epoch):
            return "probe", f"broker {node_id} epoch={epoch}"
        case _:
            assert_never(verdict)


def _topic(topic_id: Uuid, names: Names) -> str:
    return names.get(topic_id) or uuid_text(topic_id)


def _resource(kind: int, name: str) -> str:
    if kind == TOPIC_RESOURCE:
        return f"topic {name}"
    if kind == BROKER_RESOURCE:
        return f"broker {name}" if name else "all brokers"
    return f"resource {kind} {name}"


def _nodes(nodes: Iterable[int]) -> str:
    return " ".join(map(str, nodes)) or "none"
