from __future__ import annotations

from cotidal.api.alter_partition import decide
from cotidal.core.cluster.decide.reassignment import decide_reassign
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)
from cotidal.values import Uuid


def ask(cluster, *partitions, sender=1, epoch=None, topic_id=None):
    return AlterPartitionRequest(
        sender,
        cluster.epoch(sender) if epoch is None else epoch,
        (
            AlterPartitionRequestTopicData(
                topic_id or cluster.image.topics["orders"].topic_id, partitions
            ),
        ),
    )


def isr(cluster, *members, number=0, epochs=None):
    """What version 3 says; orders-N is led by broker N + 1."""
    partition = cluster.image.partition("orders", number)
    states = tuple(
        BrokerState(member, (epochs or {}).get(member, cluster.epoch(member))) for member in members
    )
    return AlterPartitionRequestPartitionData(
        number,
        partition.leader_epoch,
        new_isr_with_epochs=states,
        partition_epoch=partition.partition_epoch,
    )


def test_answer_tells_the_new_state(cluster, asked):
    decision = decide(ask(cluster, isr(cluster, 1, 2)), asked(3), cluster.controller)
    reply = cluster.commit(decision)
    (topic,) = reply.topics
    assert topic.partitions[0] == (0, ErrorCode.NONE, 1, 0, (1, 2), 0, 1)
    assert cluster.image.partition("orders", 0).isr == (1, 2)


def test_version_2_names_no_epochs(cluster, asked):
    data = AlterPartitionRequestPartitionData(0, 0, new_isr=(1, 3))
    reply = cluster.commit(decide(ask(cluster, data), asked(2), cluster.controller))
    assert reply.topics[0].partitions[0].isr == (1, 3)


def test_version_3_is_held_to_its_epochs(cluster, asked):
    stale = isr(cluster, 1, 2, epochs={2: 99})
    decision = decide(ask(cluster, stale), asked(3), cluster.controller)
    assert decision.records == ()
    assert decision.reply.topics[0].partitions[0].error_code == ErrorCode.INELIGIBLE_REPLICA


def test_stale_broker_is_refused_as_a_whole(cluster, asked):
    decision = decide(ask(cluster, isr(cluster, 1), epoch=77), asked(3), cluster.controller)
    assert (decision.records, decision.reply.topics) == ((), ())
    assert decision.reply.error_code == ErrorCode.STALE_BROKER_EPOCH


def test_each_partition_is_decided_by_itself_and_only_once(cluster, asked):
    request = ask(
        cluster,
        isr(cluster, 1, 2),
        isr(cluster, 1, 2, number=1),
        isr(cluster, 1, 3),
        AlterPartitionRequestPartitionData(9),
    )
    reply = cluster.commit(decide(request, asked(3), cluster.controller))
    assert [each.error_code for each in reply.topics[0].partitions] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert cluster.image.partition("orders", 0).isr == (1, 2)


def test_unknown_topic_id_is_told_on_each_partition(cluster, asked):
    request = ask(cluster, isr(cluster, 1), topic_id=Uuid(b"?" * 16))
    reply = decide(request, asked(3), cluster.controller).reply
    assert reply.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_removed_leader_is_told_and_its_change_is_written(cluster, asked):
    cluster.commit_records(decide_reassign(cluster.controller, "orders", 0, (2, 3)))
    cluster.commit_records(decide_reassign(cluster.controller, "orders", 1, (2, 3)))
    assert cluster.image.partition("orders", 0).leader == 2, "2 and 3 were in sync"
    cluster.unfence(4)
    cluster.commit_records(decide_reassign(cluster.controller, "orders", 0, (4,)))
    members = isr(cluster, 2, 3, 4)
    decision = decide(ask(cluster, members, sender=2), asked(3), cluster.controller)
    reply = cluster.commit(decision)
    assert reply.topics[0].partitions[0].error_code == ErrorCode.NEW_LEADER_ELECTED
    assert cluster.image.partition("orders", 0).leader == 4
