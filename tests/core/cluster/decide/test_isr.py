"""One test for each check of a proposed ISR, in the order in which they are made."""

from __future__ import annotations

import pytest

from cotidal.core.cluster.decide.brokers import (
    decide_controlled_shutdown,
    decide_fence,
    decide_unregister,
)
from cotidal.core.cluster.decide.isr import IsrProposal, Member, decide_isr, refuse_sender
from cotidal.core.cluster.decide.reassignment import decide_reassign
from cotidal.core.cluster.decide.topics import decide_delete_topic
from cotidal.core.cluster.image import RECOVERED, RECOVERING
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.metadata import PartitionChangeRecord
from cotidal.values import NO_NODE, Uuid


def proposal(cluster, *members, topic="orders", **fields):
    """What a leader that knows everything would say; members by number, or number and epoch."""
    partition = cluster.partition(topic)
    named = [each if isinstance(each, tuple) else (each, cluster.epoch(each)) for each in members]
    given = {
        "topic_id": cluster.image.topics[topic].topic_id,
        "partition": 0,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "members": tuple(Member(*each) for each in named),
        **fields,
    }
    return IsrProposal(**given)


def propose(cluster, *members, sender=1, **fields):
    return decide_isr(cluster.controller, sender, proposal(cluster, *members, **fields))


def error_of(decided):
    assert isinstance(decided, Refusal), decided
    return decided.error


def accept(cluster, *members, sender=1, **fields):
    decided = propose(cluster, *members, sender=sender, **fields)
    assert not isinstance(decided, Refusal), decided
    cluster.apply(() if decided.record is None else (decided.record,))
    assert cluster.partition() == decided.partition
    return decided


@pytest.fixture
def cluster(scene):
    made = scene(brokers=4)
    made.create("orders", (1, 2, 3), min_insync_replicas="2")
    return made


def test_sender_must_be_registered_with_the_epoch_it_names(cluster):
    assert refuse_sender(cluster.image, 1, cluster.epoch(1)) is None
    for node_id, epoch in ((1, cluster.epoch(1) - 1), (1, cluster.epoch(1) + 1), (9, 5)):
        assert refuse_sender(cluster.image, node_id, epoch).error is ErrorCode.STALE_BROKER_EPOCH


def test_topic_id_must_be_known(cluster):
    refused = propose(cluster, 1, topic_id=Uuid(b"?" * 16))
    assert error_of(refused) is ErrorCode.UNKNOWN_TOPIC_ID


def test_topic_that_was_deleted_and_created_again_is_another(cluster):
    """Regression script 19."""
    stale = proposal(cluster, 1, 2)
    cluster.apply(decide_delete_topic(cluster.controller, stale.topic_id))
    cluster.create("orders", (1, 2, 3))
    assert error_of(decide_isr(cluster.controller, 1, stale)) is ErrorCode.UNKNOWN_TOPIC_ID


def test_partition_must_be_known(cluster):
    refused = propose(cluster, 1, partition=5)
    assert error_of(refused) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("ahead", ["leader_epoch", "partition_epoch"])
def test_epoch_that_is_ahead_shows_that_this_controller_is_behind(cluster, ahead):
    refused = propose(cluster, 1, 2, **{ahead: 99})
    assert error_of(refused) is ErrorCode.NOT_CONTROLLER


def test_zombie_leader_is_fenced(cluster):
    """Regression script 8. The older partition epoch that it has too is not what it is told."""
    stale = proposal(cluster, 1, 2)
    cluster.apply(decide_fence(cluster.controller, 1))
    assert error_of(decide_isr(cluster.controller, 1, stale)) is ErrorCode.FENCED_LEADER_EPOCH


def test_only_the_leader_proposes(cluster):
    assert error_of(propose(cluster, 1, 2, sender=2)) is ErrorCode.INVALID_REQUEST


def test_whoever_does_not_lead_is_told_that_before_its_partition_epoch_is_looked_at(cluster):
    accept(cluster, 1, 2)
    refused = propose(cluster, 1, sender=2, partition_epoch=0)
    assert error_of(refused) is ErrorCode.INVALID_REQUEST


def test_partition_epoch_that_is_behind_is_refused(cluster):
    stale = proposal(cluster, 1, 3)
    accept(cluster, 1, 2)
    assert error_of(decide_isr(cluster.controller, 1, stale)) is ErrorCode.INVALID_UPDATE_VERSION


@pytest.mark.parametrize("members", [(1, 4), (1, 2, 2), (2, 3), ()])
def test_members_are_replicas_once_each_and_the_leader_is_among_them(cluster, members):
    assert error_of(propose(cluster, *members)) is ErrorCode.INVALID_REQUEST


def recovering(cluster):
    """Broker 1 leads alone, and was elected uncleanly."""
    for number in (3, 2):
        cluster.apply(decide_fence(cluster.controller, number))
    cluster.register(1, life=1)  # ISR 1, ELR 2 before
    cluster.register(2, life=1)  # and now nobody is eligible
    cluster.join(1, life=1)
    assert (cluster.partition().leader, cluster.partition().recovery_state) == (1, RECOVERING)


def test_recovering_leader_is_alone_in_its_isr(cluster):
    recovering(cluster)
    cluster.join(2, life=1)
    refused = propose(cluster, 1, 2, recovery_state=RECOVERING)
    assert error_of(refused) is ErrorCode.INVALID_REQUEST
    accept(cluster, 1, 2, recovery_state=RECOVERED)
    assert cluster.partition().recovery_state == RECOVERED


def test_leader_that_says_it_has_recovered_has(cluster):
    recovering(cluster)
    before = cluster.partition()
    decided = accept(cluster, 1)
    assert decided.record.leader_recovery_state == RECOVERED
    assert cluster.partition().partition_epoch == before.partition_epoch + 1
    assert cluster.partition().leader_epoch == before.leader_epoch


def test_recovered_leader_does_not_recover_again(cluster):
    for state in (RECOVERING, 7):
        assert error_of(propose(cluster, 1, recovery_state=state)) is ErrorCode.INVALID_REQUEST


def test_fenced_member_is_ineligible(cluster):
    cluster.apply(decide_fence(cluster.controller, 3))
    assert error_of(propose(cluster, 1, 2, 3)) is ErrorCode.INELIGIBLE_REPLICA


def test_member_that_shuts_down_is_ineligible(cluster):
    """Regression script 11: KIP-841."""
    cluster.apply(decide_controlled_shutdown(cluster.controller, 3))
    assert error_of(propose(cluster, 1, 2, 3)) is ErrorCode.INELIGIBLE_REPLICA


def test_member_that_is_not_registered_is_ineligible(cluster):
    cluster.apply(decide_fence(cluster.controller, 3))
    cluster.apply(decide_unregister(cluster.controller, 3))
    assert error_of(propose(cluster, 1, 2, (3, -1))) is ErrorCode.INELIGIBLE_REPLICA


def test_member_of_another_life_is_ineligible(cluster):
    """Regression script 6: it fetched to the end, lost its log in a crash, and is back."""
    old = cluster.epoch(3)
    cluster.join(3, life=1)
    assert error_of(propose(cluster, 1, 2, (3, old))) is ErrorCode.INELIGIBLE_REPLICA
    accept(cluster, 1, 2, 3)
    assert cluster.partition().isr == (1, 2, 3)


def test_leader_that_does_not_know_epochs_is_believed(cluster):
    cluster.join(3, life=1)
    accept(cluster, (1, -1), (2, -1), (3, -1))
    assert cluster.partition().isr == (1, 2, 3)


def test_shrinking_raises_the_partition_epoch_only(cluster):
    before = cluster.partition()
    decided = accept(cluster, 1, 2)
    assert decided.error is ErrorCode.NONE
    after = cluster.partition()
    assert (after.isr, after.leader_epoch) == ((1, 2), before.leader_epoch)
    assert after.partition_epoch == before.partition_epoch + 1


def test_isr_that_is_so_already_gives_no_record(cluster):
    decided = propose(cluster, 1, 2, 3)
    assert (decided.record, decided.partition) == (None, cluster.partition())


def test_whoever_is_dropped_below_min_isr_stays_eligible_until_it_is_full_again(cluster):
    accept(cluster, 1, 2)
    assert cluster.partition().elr == ()
    accept(cluster, 1)
    assert cluster.partition().elr == (2,)
    accept(cluster, 1, 3)
    assert (cluster.partition().isr, cluster.partition().elr) == ((1, 3), ())


def test_proposal_that_finishes_a_reassignment_ends_it(cluster):
    cluster.apply(decide_reassign(cluster.controller, "orders", 0, (1, 2, 4)))
    decided = accept(cluster, 1, 2, 3, 4)
    assert decided.error is ErrorCode.NONE
    after = cluster.partition()
    assert (after.replicas, after.isr, after.adding, after.removing) == ((1, 2, 4),) * 2 + ((), ())
    assert after.leader_epoch == 1, "a replica was removed"


def test_leader_that_a_finished_reassignment_removes_is_told_and_the_record_is_written(cluster):
    cluster.apply(decide_reassign(cluster.controller, "orders", 0, (2, 3, 4)))
    decided = accept(cluster, 1, 2, 3, 4)
    assert decided.error is ErrorCode.NEW_LEADER_ELECTED
    assert isinstance(decided.record, PartitionChangeRecord)
    after = cluster.partition()
    assert (after.leader, after.replicas, after.isr) == (2, (2, 3, 4), (2, 3, 4))
    assert 1 not in after.elr
    assert after.leader != NO_NODE


def test_replica_that_was_removed_and_added_again_needs_a_new_leader_epoch(cluster):
    """Regression script 15: what the leader saw before the removal is not believed."""
    stale = proposal(cluster, 1, 2, 3)
    cluster.apply(decide_reassign(cluster.controller, "orders", 0, (1, 2)))
    cluster.apply(decide_reassign(cluster.controller, "orders", 0, (1, 2, 3)))
    assert cluster.partition().isr == (1, 2)
    assert error_of(decide_isr(cluster.controller, 1, stale)) is ErrorCode.FENCED_LEADER_EPOCH
