from __future__ import annotations

import pytest

from cotidal.core.cluster.decide.brokers import decide_fence
from cotidal.core.cluster.decide.isr import IsrProposal, Member, decide_isr
from cotidal.core.cluster.decide.reassignment import Ongoing, decide_reassign, reassignments
from cotidal.core.cluster.image import RECOVERING
from cotidal.errors import ErrorCode, Refusal
from cotidal.values import NO_NODE, ZERO_UUID, Uuid


def move(cluster, *target, **more):
    return decide_reassign(cluster.controller, "orders", 0, target, **more)


def cancel(cluster):
    return decide_reassign(cluster.controller, "orders", 0, None)


def in_sync(cluster, *members):
    """The leader proposes this ISR and it is accepted."""
    partition = cluster.partition()
    decided = decide_isr(
        cluster.controller,
        partition.leader,
        IsrProposal(
            cluster.image.topics["orders"].topic_id,
            0,
            partition.leader_epoch,
            partition.partition_epoch,
            tuple(Member(member, cluster.epoch(member)) for member in members),
        ),
    )
    assert not isinstance(decided, Refusal), decided
    cluster.apply(() if decided.record is None else (decided.record,))


def shape(cluster):
    partition = cluster.partition()
    return partition.replicas, partition.adding, partition.removing


def error_of(decided):
    assert isinstance(decided, Refusal), decided
    return decided.error


@pytest.fixture
def cluster(scene):
    made = scene(brokers=6)
    made.create("orders", (1, 2, 3), min_insync_replicas="2")
    return made


def test_target_comes_first_and_the_rest_is_being_removed(cluster):
    before = cluster.partition()
    cluster.apply(move(cluster, 3, 4))
    assert shape(cluster) == ((3, 4, 1, 2), (4,), (1, 2))
    after = cluster.partition()
    assert (after.leader, after.leader_epoch) == (before.leader, before.leader_epoch)
    assert after.isr == (1, 2, 3)


def test_move_ends_when_the_whole_target_is_in_sync(cluster):
    cluster.apply(move(cluster, 4, 5, 6))
    in_sync(cluster, 1, 2, 3, 4, 5)
    assert cluster.partition().reassigning
    in_sync(cluster, 1, 2, 3, 4, 5, 6)
    assert shape(cluster) == ((4, 5, 6), (), ())
    assert (cluster.partition().leader, cluster.partition().isr) == (4, (4, 5, 6))
    assert cluster.partition().leader_epoch == 1


def test_old_member_of_the_target_has_to_be_in_sync_too(cluster):
    in_sync(cluster, 1, 2)
    cluster.apply(move(cluster, 1, 3, 4))
    in_sync(cluster, 1, 2, 4)
    assert cluster.partition().reassigning, "3 is not in sync"
    in_sync(cluster, 1, 2, 3, 4)
    assert shape(cluster) == ((1, 3, 4), (), ())


def test_taking_replicas_away_is_done_at_once_when_the_rest_is_in_sync(cluster):
    cluster.apply(move(cluster, 2, 3))
    assert shape(cluster) == ((2, 3), (), ())
    after = cluster.partition()
    assert (after.leader, after.isr, after.leader_epoch) == (2, (2, 3), 1)


def test_more_replicas_can_be_had(cluster):
    cluster.apply(move(cluster, 1, 2, 3, 4))
    assert shape(cluster) == ((1, 2, 3, 4), (4,), ())
    in_sync(cluster, 1, 2, 3, 4)
    assert shape(cluster) == ((1, 2, 3, 4), (), ())
    assert cluster.partition().leader_epoch == 0


def test_another_order_is_only_another_preference(cluster):
    cluster.apply(move(cluster, 3, 1, 2))
    assert shape(cluster) == ((3, 1, 2), (), ())
    assert (cluster.partition().leader, cluster.partition().leader_epoch) == (1, 0)
    assert move(cluster, 3, 1, 2) == ()


def test_each_replica_has_its_directory_after_a_move(cluster):
    cluster.apply(move(cluster, 4, 2, 3))
    in_sync(cluster, 1, 2, 3, 4)
    assert cluster.partition().directories == tuple(Uuid(bytes([100 + n] * 16)) for n in (4, 2, 3))


def test_directory_is_left_open_where_a_broker_has_several(cluster, registers):
    from cotidal.core.cluster.decide.brokers import decide_register

    two = registers(4, life=1)._replace(log_dirs=(Uuid(b"a" * 16), Uuid(b"b" * 16)))
    cluster.apply(decide_register(cluster.controller, two, epoch=cluster.end_offset))
    cluster.apply(move(cluster, 1, 2, 3, 4))
    assert cluster.partition().directory(4) == ZERO_UUID


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ((), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 9), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((-1,), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_target_that_makes_no_sense_is_refused(cluster, target, error):
    assert error_of(move(cluster, *target)) is error


def test_partition_that_is_not_there_is_told(cluster):
    for topic, number in (("none", 0), ("orders", 9)):
        refused = decide_reassign(cluster.controller, topic, number, (1,))
        assert error_of(refused) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_number_of_replicas_stays_where_the_request_says_so(cluster):
    refused = move(cluster, 1, 2, may_change_factor=False)
    assert error_of(refused) is ErrorCode.INVALID_REPLICATION_FACTOR
    cluster.apply(move(cluster, 1, 2, 4, may_change_factor=False))
    refused = move(cluster, 1, 2, 4, 5, may_change_factor=False)
    assert error_of(refused) is ErrorCode.INVALID_REPLICATION_FACTOR, "of the origin: three"


def test_another_target_starts_from_the_origin(cluster):
    cluster.apply(move(cluster, 4, 5))
    in_sync(cluster, 1, 2, 3, 4)
    cluster.apply(move(cluster, 5, 6))
    assert shape(cluster) == ((5, 6, 1, 2, 3), (5, 6), (1, 2, 3))
    assert cluster.partition().isr == (1, 2, 3), "4 is wanted no more and leaves at once"
    assert cluster.partition().leader_epoch == 1
    cluster.apply(cancel(cluster))
    assert shape(cluster) == ((1, 2, 3), (), ())


def test_only_holder_stays_until_the_end_though_no_target_wants_it_any_more(cluster):
    cluster.apply(move(cluster, 4, 5))
    in_sync(cluster, 1, 2, 3, 4)
    for number in (2, 3, 1):
        cluster.apply(decide_fence(cluster.controller, number))
    assert cluster.partition().isr == (4,)
    cluster.apply(move(cluster, 5, 6))
    assert shape(cluster) == ((5, 6, 4, 1, 2, 3), (5, 6), (4, 1, 2, 3))
    assert cluster.partition().leader == 4
    in_sync(cluster, 4, 5, 6)
    assert shape(cluster) == ((5, 6), (), ())


def test_origin_as_target_ends_the_move(cluster):
    cluster.apply(move(cluster, 4, 5))
    cluster.apply(move(cluster, 1, 2, 3))
    assert shape(cluster) == ((1, 2, 3), (), ())


def test_cancelling_takes_away_what_was_being_added(cluster):
    cluster.apply(move(cluster, 3, 4))
    in_sync(cluster, 1, 2, 4)
    cluster.apply(cancel(cluster))
    assert shape(cluster) == ((3, 1, 2), (), ())
    after = cluster.partition()
    assert (after.isr, after.leader, after.leader_epoch) == ((1, 2), 1, 1)


def test_cancelling_hands_over_when_the_leader_was_being_added(cluster):
    cluster.apply(move(cluster, 4, 5))
    in_sync(cluster, 1, 2, 3, 4)
    cluster.apply(decide_fence(cluster.controller, 1))
    assert cluster.partition().leader == 4
    cluster.apply(cancel(cluster))
    assert (cluster.partition().leader, cluster.partition().isr) == (2, (2, 3))


def test_nothing_to_cancel_is_told(cluster):
    assert error_of(cancel(cluster)) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def only_added_in_sync(cluster):
    cluster.apply(move(cluster, 4, 5))
    in_sync(cluster, 1, 2, 3, 4)
    in_sync(cluster, 1, 4)
    cluster.apply(decide_fence(cluster.controller, 1))
    cluster.apply(decide_fence(cluster.controller, 2))
    assert (cluster.partition().leader, cluster.partition().isr) == (4, (4,))


def test_cancelling_that_would_empty_the_isr_is_refused(cluster):
    only_added_in_sync(cluster)
    assert error_of(cancel(cluster)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_cancelling_that_would_lose_the_last_eligible_one_is_refused(scene):
    cluster = scene(brokers=4)
    cluster.create("orders", (1, 2), min_insync_replicas="2")
    cluster.apply(move(cluster, 3, 4))
    in_sync(cluster, 1, 2, 3)
    for number in (1, 2):
        cluster.register(number, life=1)
    cluster.apply(decide_fence(cluster.controller, 3))
    assert (cluster.partition().isr, cluster.partition().elr) == ((), (3,))
    assert error_of(cancel(cluster)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize("elr", [True, False])
def test_unclean_cancelling_elects_whoever_is_left_where_that_is_allowed(scene, elr):
    cluster = scene(brokers=6, elr=elr)
    cluster.create(
        "orders", (1, 2, 3), min_insync_replicas="1", unclean_leader_election_enable="true"
    )
    only_added_in_sync(cluster)
    cluster.apply(cancel(cluster))
    after = cluster.partition()
    assert shape(cluster) == ((1, 2, 3), (), ())
    assert (after.leader, after.isr, after.recovery_state) == (3, (3,), RECOVERING)


@pytest.mark.parametrize("elr", [True, False])
def test_unclean_cancelling_needs_somebody_who_is_left(scene, elr):
    cluster = scene(brokers=6, elr=elr)
    cluster.create("orders", (1, 2, 3), unclean_leader_election_enable="true")
    only_added_in_sync(cluster)
    cluster.apply(decide_fence(cluster.controller, 3))
    assert error_of(cancel(cluster)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_move_of_a_partition_without_leader_waits_for_it(cluster):
    for number in (1, 2, 3):
        cluster.apply(decide_fence(cluster.controller, number))
    cluster.apply(move(cluster, 1, 2))
    assert (cluster.partition().leader, cluster.partition().reassigning) == (NO_NODE, True)


def test_those_under_way_are_listed(cluster):
    cluster.create("other", (1,), (2,))
    cluster.apply(move(cluster, 3, 4))
    cluster.apply(decide_reassign(cluster.controller, "other", 1, (5, 2)))
    orders = Ongoing("orders", 0, (3, 4, 1, 2), (4,), (1, 2))
    other = Ongoing("other", 1, (5, 2), (5,), ())
    assert list(reassignments(cluster.image)) == [orders, other]
    assert list(reassignments(cluster.image, (("other", (0, 1, 7)), ("none", (0,))))) == [other]
    assert list(reassignments(cluster.image, ())) == []


def test_somebody_eligible_stands_in_for_a_last_known_leader_that_leaves(scene):
    """Otherwise nobody is left to wait for when that one restarts uncleanly."""
    cluster = scene(brokers=4)
    cluster.create("orders", (1, 2), min_insync_replicas="2")
    cluster.apply(move(cluster, 1, 2, 3))
    in_sync(cluster, 1, 2)
    cluster.apply(move(cluster, 3, 4))
    in_sync(cluster, 1, 2, 3)
    for number in (1, 2, 3):
        cluster.apply(decide_fence(cluster.controller, number))
    assert (cluster.partition().elr, cluster.partition().last_known_elr) == ((3, 2), (3,))
    cluster.apply(cancel(cluster))
    assert (cluster.partition().elr, cluster.partition().last_known_elr) == ((2,), (2,))
    cluster.join(2, life=1)
    assert cluster.partition().leader == 2
