"""The metadata log and the controller in lines and in JSON."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from cotidal.core.cluster.decide.brokers import Heartbeat, HeartbeatDecided, Registration
from cotidal.core.cluster.decide.configs import SET, ConfigChange
from cotidal.core.cluster.decide.isr import IsrDecided, IsrProposal, Member
from cotidal.core.cluster.decide.reassignment import Ongoing
from cotidal.core.cluster.decide.topics import Created, NewTopic
from cotidal.core.cluster.image import RECOVERING, Image, MetadataRecord, Partition
from cotidal.core.cluster.sessions import Probe
from cotidal.core.trace import Moment, as_json, line, tell_record
from cotidal.core.trace.cluster import ClusterMoment
from cotidal.errors import ErrorCode
from cotidal.messages.records import metadata as md
from cotidal.values import BrokerEpoch, LeaderEpoch, NodeId, Offset, PartitionEpoch, Uuid
from replicas import nodes

ORDERS = Uuid(bytes([7] * 16))
ORDERS_TEXT = "BwcHBwcHBwcHBwcHBwcHBw"
ONE, E8 = NodeId(1), LeaderEpoch(8)
STANDS = Partition(nodes(1, 2, 3), nodes(2, 3), NodeId(2), E8, PartitionEpoch(9))
BEAT = Heartbeat(ONE, BrokerEpoch(12), Offset(40), want_fence=False, want_shutdown=False)
REGISTERS = Registration(ONE, ORDERS, (), None)
BORN = md.PartitionRecord(
    partition_id=0, topic_id=ORDERS, replicas=(1, 2, 3), isr=(1, 2), leader=1, leader_epoch=0
)
CHANGE = md.PartitionChangeRecord(partition_id=0, topic_id=ORDERS)

TOLD: list[tuple[Moment, str]] = [
    (
        md.RegisterBrokerRecord(broker_id=1, broker_epoch=12),
        "broker 1 registered, epoch 12, fenced",
    ),
    (
        md.RegisterBrokerRecord(
            broker_id=1, broker_epoch=12, rack="a", fenced=False, in_controlled_shutdown=True
        ),
        "broker 1 registered, epoch 12, rack a, shutting down",
    ),
    (md.UnregisterBrokerRecord(broker_id=1), "broker 1 unregistered"),
    (md.BrokerRegistrationChangeRecord(broker_id=1, fenced=1), "broker 1 fenced"),
    (md.BrokerRegistrationChangeRecord(broker_id=1, fenced=-1), "broker 1 unfenced"),
    (
        md.BrokerRegistrationChangeRecord(broker_id=1, in_controlled_shutdown=1),
        "broker 1 shutting down",
    ),
    (
        md.BrokerRegistrationChangeRecord(
            broker_id=1, log_dirs=(ORDERS,), cordoned_log_dirs=(ORDERS,)
        ),
        "broker 1 has other directories, cordons directories",
    ),
    (md.FenceBrokerRecord(id=1), "broker 1 fenced"),
    (md.UnfenceBrokerRecord(id=1), "broker 1 unfenced"),
    (md.TopicRecord(name="orders", topic_id=ORDERS), "topic orders created"),
    (md.RemoveTopicRecord(topic_id=ORDERS), f"topic {ORDERS_TEXT} removed"),
    (md.ClearElrRecord(topic_name="orders"), "topic orders: eligible replicas forgotten"),
    (md.ClearElrRecord(topic_name=""), "topic all topics: eligible replicas forgotten"),
    (BORN, f"partition {ORDERS_TEXT}-0: replicas 1 2 3, leader 1, ISR 1 2, epoch 0"),
    (CHANGE, f"partition {ORDERS_TEXT}-0: unchanged"),
    (CHANGE._replace(leader=-1, isr=()), f"partition {ORDERS_TEXT}-0: leader none, ISR none"),
    (
        CHANGE._replace(leader_recovery_state=RECOVERING, directories=(ORDERS,)),
        f"partition {ORDERS_TEXT}-0: recovering, in other directories",
    ),
    (md.ConfigRecord(2, "orders", "retention.ms", "5"), "config topic orders: retention.ms=5"),
    (
        md.ConfigRecord(4, "", "min.insync.replicas", "2"),
        "config all brokers: min.insync.replicas=2",
    ),
    (md.ConfigRecord(4, "1", "log.flush.ms", None), "config broker 1: log.flush.ms removed"),
    (md.ConfigRecord(32, "g", "x", "1"), "config resource 32 g: x=1"),
    (
        md.FeatureLevelRecord(name="metadata.version", feature_level=30),
        "feature metadata.version=30",
    ),
    (md.ProducerIdsRecord(1, 12, 1000), "producer-ids below 1000 given to broker 1"),
    (md.RegisterControllerRecord(controller_id=1), "controller 1 registered"),
    (
        md.ClientQuotaRecord((md.EntityData("user", "ann"),), "producer_byte_rate", 10.0),
        "quota user=ann: producer_byte_rate 10.0",
    ),
    (
        md.ClientQuotaRecord((md.EntityData("user", "ann"),), "producer_byte_rate", remove=True),
        "quota user=ann: producer_byte_rate removed",
    ),
    (
        md.AccessControlEntryRecord(principal="User:ann", resource_name="orders"),
        "acl User:ann on orders",
    ),
    (md.RemoveAccessControlEntryRecord(id=ORDERS), f"acl {ORDERS_TEXT} removed"),
    (md.UserScramCredentialRecord(name="ann", salt=b"salt"), "scram ann set"),
    (md.RemoveUserScramCredentialRecord(name="ann"), "scram ann removed"),
    (md.DelegationTokenRecord(token_id="t", owner="ann"), "token t of ann"),
    (md.RemoveDelegationTokenRecord(token_id="t"), "token t removed"),
    (md.NoOpRecord(), "no-op"),
    (md.BeginTransactionRecord(name="boot"), "transaction begun boot"),
    (md.EndTransactionRecord(), "transaction ended"),
    (md.AbortTransactionRecord(), "transaction aborted"),
    (md.ZkMigrationStateRecord(2), "migration 2"),
    (REGISTERS, "register broker 1"),
    (
        REGISTERS._replace(previous_epoch=BrokerEpoch(12)),
        "register broker 1 after a clean end of epoch 12",
    ),
    (BEAT, "heartbeat broker 1 epoch=12 metadata=40"),
    (
        BEAT._replace(want_fence=True, want_shutdown=True),
        "heartbeat broker 1 epoch=12 metadata=40 wants fence wants shutdown",
    ),
    (
        IsrProposal(ORDERS, 0, E8, PartitionEpoch(9), (Member(ONE), Member(NodeId(2)))),
        "propose-isr partition 0 ISR 1 2 epoch=8",
    ),
    (NewTopic("orders"), "create-topic orders"),
    (ConfigChange("retention.ms", SET, "5"), "config-change set retention.ms=5"),
    (HeartbeatDecided((), True, False, False), "heartbeat-decided caught up"),
    (HeartbeatDecided((), False, True, True), "heartbeat-decided not caught up, fenced, may stop"),
    (IsrDecided(None, STANDS, ErrorCode.NONE), "isr-decided leader 2, ISR 2 3, epoch 8"),
    (
        IsrDecided(None, STANDS, ErrorCode.NEW_LEADER_ELECTED),
        "isr-decided leader 2, ISR 2 3, epoch 8 but NEW_LEADER_ELECTED(108)",
    ),
    (Created((), ORDERS, 1, 3), "created 1 partition, replication factor 3"),
    (
        Ongoing("orders", 0, nodes(3, 4, 1), nodes(4), nodes(1)),
        "reassigning orders-0: replicas 3 4 1, adding 4, removing 1",
    ),
    (Probe(ONE, BrokerEpoch(12)), "probe broker 1 epoch=12"),
]


@pytest.mark.parametrize(("moment", "said"), TOLD, ids=[said for _, said in TOLD])
def test_each_moment_is_one_line_and_one_json_object(moment: Moment, said: str) -> None:
    assert line(moment) == said
    told = json.loads(json.dumps(as_json(moment)))
    assert told == as_json(moment)
    assert told["what"] == said.split(" ")[0]


def test_no_record_question_or_verdict_is_forgotten() -> None:
    assert {type(moment) for moment, _ in TOLD} == set(get_args(ClusterMoment))


def told_in_turn(*records: MetadataRecord) -> list[str]:
    image = Image()
    lines = []
    for record in records:
        lines.append(tell_record(record, image).line)
        image.replay(record)
    return lines


def test_the_metadata_log_tells_what_each_partition_becomes() -> None:
    assert told_in_turn(
        md.TopicRecord(name="orders", topic_id=ORDERS),
        BORN,
        CHANGE._replace(leader=2, isr=(2, 3)),
        CHANGE._replace(leader=-1, isr=(), eligible_leader_replicas=(3,), last_known_elr=(2,)),
        CHANGE._replace(
            leader=1,
            isr=(1,),
            eligible_leader_replicas=(),
            last_known_elr=(),
            leader_recovery_state=RECOVERING,
        ),
        CHANGE._replace(replicas=(4, 1, 2, 3), adding_replicas=(4,), removing_replicas=(1,)),
        md.RemoveTopicRecord(topic_id=ORDERS),
    ) == [
        "topic orders created",
        "partition orders-0: replicas 1 2 3, leader 1, ISR 1 2, epoch 0",
        "partition orders-0: leader 2, ISR 2 3, epoch 1",
        "partition orders-0: leader none, ISR none, epoch 2, eligible 3, last known leader 2",
        "partition orders-0: leader 1, ISR 1, epoch 3, recovering",
        "partition orders-0: replicas 4 1 2 3, leader 1, ISR 1, epoch 3, adding 4, removing 1, "
        "recovering",
        "topic orders removed",
    ]


def test_names_do_where_there_is_no_image() -> None:
    record = CHANGE._replace(isr=(2, 3))
    assert tell_record(record, names={ORDERS: "orders"}).line == "partition orders-0: ISR 2 3"


def test_a_secret_is_not_told() -> None:
    sixteen = bytes([7] * 16)
    told = as_json(md.UserScramCredentialRecord(name="ann", salt=sixteen, stored_key=b"key"))
    assert told == {
        "what": "scram",
        "record": "UserScramCredentialRecord",
        "name": "ann",
        "mechanism": 0,
        "iterations": 0,
    }
