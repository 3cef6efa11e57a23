from __future__ import annotations

import pytest

from cotidal.core.cluster.decide.brokers import (
    Heartbeat,
    decide_fence,
    decide_heartbeat,
    decide_register,
    decide_unfence,
)
from cotidal.core.cluster.decide.directories import Housed, decide_assign, decide_directories
from cotidal.core.cluster.image import Broker
from cotidal.core.cluster.registered import LOST_DIRECTORY, MIGRATING_DIRECTORY
from cotidal.errors import ErrorCode, Refusal
from cotidal.values import NO_NODE, ZERO_UUID, Uuid

LEFT, RIGHT, NEW = Uuid(b"l" * 16), Uuid(b"r" * 16), Uuid(b"n" * 16)


@pytest.fixture
def cluster(scene, registers):
    """Broker 1 has two directories; orders-0 is in the left one."""
    made = scene()
    two = registers(1, life=1)._replace(log_dirs=(LEFT, RIGHT))
    made.apply(decide_register(made.controller, two, epoch=made.end_offset))
    made.apply(decide_unfence(made.controller, 1))
    made.create("orders", (1, 2, 3), min_insync_replicas="2")
    assign(made, LEFT)
    return made


def assign(cluster, directory, node_id=1, number=0):
    housed = Housed(cluster.image.topics["orders"].topic_id, number, directory)
    decided = decide_assign(cluster.controller, node_id, housed)
    if decided is not None and not isinstance(decided, Refusal):
        cluster.apply((decided,))
    return decided


def directories(cluster, **more):
    broker = cluster.image.brokers[1]
    return cluster.apply(decide_directories(cluster.controller, broker, **more))


def test_broker_says_where_it_keeps_a_partition(cluster):
    assert cluster.partition().directory(1) == LEFT
    assert cluster.partition().directory(2) != LEFT
    assert cluster.partition().leader_epoch == 0
    assert assign(cluster, LEFT) is None, "it is known"


def test_moving_between_directories_that_are_online_keeps_the_isr(cluster):
    assign(cluster, RIGHT)
    assert (cluster.partition().directory(1), cluster.partition().isr) == (RIGHT, (1, 2, 3))


@pytest.mark.parametrize(
    ("node_id", "number", "topic_id", "error"),
    [
        (1, 0, Uuid(b"?" * 16), ErrorCode.UNKNOWN_TOPIC_ID),
        (1, 9, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (4, 0, None, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_assignment_that_makes_no_sense_is_refused(cluster, node_id, number, topic_id, error):
    housed = Housed(topic_id or cluster.image.topics["orders"].topic_id, number, LEFT)
    refused = decide_assign(cluster.controller, node_id, housed)
    assert isinstance(refused, Refusal)
    assert refused.error is error


def test_directory_that_fails_takes_its_partitions_out_of_sync(cluster):
    cluster.create("other", (1, 2))
    directories(cluster, offline=(LEFT,))
    assert cluster.image.brokers[1].log_dirs == (RIGHT,)
    after = cluster.partition()
    assert (after.leader, after.isr) == (2, (2, 3))
    assert cluster.partition("other").leader == 1, "nobody said that it is on the left"
    assert directories(cluster, offline=(LEFT,)) == ()


def test_replica_on_a_failed_directory_is_not_elected(cluster):
    directories(cluster, offline=(LEFT,))
    for number in (2, 3):
        cluster.apply(decide_fence(cluster.controller, number))
    assert cluster.partition().leader == NO_NODE
    cluster.apply(decide_fence(cluster.controller, 1))
    cluster.apply(decide_unfence(cluster.controller, 1))
    assert cluster.partition().leader == NO_NODE


def test_replica_that_is_new_in_another_directory_is_not_eligible(cluster):
    for number in (2, 3):
        cluster.apply(decide_fence(cluster.controller, number))
    directories(cluster, offline=(LEFT,))
    assert (cluster.partition().leader, cluster.partition().elr) == (NO_NODE, (1, 3))
    assign(cluster, RIGHT)
    assert (cluster.partition().leader, cluster.partition().elr) == (NO_NODE, (3,))


def test_last_known_leader_with_an_empty_directory_is_not_elected(cluster, registers):
    for number in (2, 3):
        cluster.apply(decide_fence(cluster.controller, number))
        cluster.register(number, life=1)
    again = registers(1, life=2)._replace(log_dirs=(RIGHT,))
    cluster.apply(decide_register(cluster.controller, again, epoch=cluster.end_offset))
    cluster.apply(decide_unfence(cluster.controller, 1))
    assert cluster.partition().last_known_elr == (1,)
    assign(cluster, RIGHT)
    after = cluster.partition()
    assert (after.leader, after.last_known_elr, after.directory(1)) == (NO_NODE, (), RIGHT)


def test_replica_that_is_lost_hands_over_and_comes_back_as_one_without_what_was_acknowledged(
    cluster,
):
    cluster.apply(decide_fence(cluster.controller, 3))
    assign(cluster, LOST_DIRECTORY)
    lost = cluster.partition()
    assert (lost.leader, lost.isr, lost.elr) == (2, (2,), (1,))
    assign(cluster, LEFT)
    back = cluster.partition()
    assert (back.leader, back.isr, back.elr) == (2, (2,), ())


def test_last_known_leader_that_was_lost_leads_again_when_it_is_back(cluster):
    """Its log is the one that it had: nobody else has more."""
    for number in (2, 3):
        cluster.apply(decide_fence(cluster.controller, number))
        cluster.register(number, life=1)
        cluster.apply(decide_fence(cluster.controller, number))
    assign(cluster, LOST_DIRECTORY)
    lost = cluster.partition()
    assert (lost.leader, lost.isr, lost.last_known_elr) == (NO_NODE, (), (1,))
    assign(cluster, LEFT)
    back = cluster.partition()
    assert (back.leader, back.isr, back.last_known_elr) == (1, (1,), ())


def test_partition_that_is_put_on_a_failed_directory_leaves_the_isr(cluster):
    directories(cluster, offline=(RIGHT,))
    assign(cluster, RIGHT)
    assert (cluster.partition().leader, cluster.partition().isr) == (2, (2, 3))


def test_last_directory_is_never_written_down_as_failed(cluster):
    assert directories(cluster, offline=(LEFT, RIGHT)) == ()
    assert cluster.image.brokers[1].log_dirs == (LEFT, RIGHT)


def test_cordoned_directories_are_kept(cluster):
    directories(cluster, cordoned=(RIGHT,))
    assert cluster.image.brokers[1].cordoned_log_dirs == (RIGHT,)
    assert directories(cluster, cordoned=(RIGHT,)) == ()
    assert directories(cluster) == ()


def beat(cluster, **fields):
    asked = Heartbeat(1, cluster.epoch(1), cluster.end_offset, False, False)._replace(**fields)
    return decide_heartbeat(cluster.controller, asked, everyone_knows=False)


def test_heartbeat_tells_of_failed_directories(cluster):
    cluster.apply(beat(cluster, offline_log_dirs=(LEFT,)).records)
    assert cluster.partition().leader == 2


def test_directories_wait_for_the_next_heartbeat_when_this_one_fences(cluster):
    cluster.apply(beat(cluster, offline_log_dirs=(LEFT,), want_fence=True).records)
    assert cluster.image.brokers[1].log_dirs == (LEFT, RIGHT)
    cluster.apply(beat(cluster, offline_log_dirs=(LEFT,), want_fence=True).records)
    assert cluster.image.brokers[1].log_dirs == (RIGHT,)


def test_reserved_directories_are_told_apart():
    broker = Broker(1, 1, Uuid(b"i" * 16), (), None, False, False, log_dirs=(LEFT,))
    online = [broker.has_online(each) for each in (LEFT, RIGHT, ZERO_UUID, MIGRATING_DIRECTORY)]
    assert online == [True, False, True, True]
    assert not broker.has_online(LOST_DIRECTORY)
    silent = broker._replace(log_dirs=())
    assert silent.has_online(NEW)
    assert not silent.has_online(LOST_DIRECTORY)


def test_without_elr_the_last_member_leads_from_whichever_directory_it_has(scene, registers):
    made = scene(elr=False)
    two = registers(1, life=1)._replace(log_dirs=(LEFT, RIGHT))
    made.apply(decide_register(made.controller, two, epoch=made.end_offset))
    made.apply(decide_unfence(made.controller, 1))
    made.create("orders", (1,))
    assign(made, LEFT)
    directories(made, offline=(LEFT,))
    assert (made.partition().leader, made.partition().isr) == (NO_NODE, (1,))
    assign(made, RIGHT)
    assert (made.partition().leader, made.partition().isr) == (1, (1,))
