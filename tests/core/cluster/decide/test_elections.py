from __future__ import annotations

import pytest

from cotidal.core.cluster.decide import elections
from cotidal.core.cluster.decide.brokers import decide_controlled_shutdown, decide_fence
from cotidal.core.cluster.decide.elections import (
    decide_election,
    decide_leaderless,
    decide_preferred,
)
from cotidal.core.cluster.decide.leaders import Election, change, rules_of
from cotidal.core.cluster.decide.reassignment import decide_reassign
from cotidal.core.cluster.image import RECOVERING
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.metadata import ConfigRecord
from cotidal.values import NO_NODE


def elect(cluster, kind, topic="orders", number=0):
    return decide_election(cluster.controller, topic, number, kind)


def error_of(decided):
    assert isinstance(decided, Refusal), decided
    return decided.error


def back_in_sync(cluster, number):
    """A broker that was fenced comes back and joins every ISR again."""
    cluster.join(number, life=1, previous_epoch=cluster.epoch(number))
    for topic in cluster.image.topics.values():
        for index, partition in topic.partitions.items():
            if number in partition.replicas and number not in partition.isr:
                record = change(
                    topic.topic_id,
                    index,
                    partition,
                    rules_of(cluster.controller, topic.name),
                    cluster.image.is_active,
                    isr=(*partition.isr, number),
                )
                cluster.apply((record,))


def unbalanced(scene, partitions=10, away=10, **settings):
    """All of broker 1's partitions are led elsewhere, or ``away`` of them."""
    cluster = scene(settings=settings)
    cluster.create("orders", *[(1, 2, 3)] * partitions)
    cluster.apply(decide_fence(cluster.controller, 1))
    back_in_sync(cluster, 1)
    for number in range(away, partitions):
        cluster.apply(elect(cluster, Election.PREFERRED, number=number))
    return cluster


def led_by_first(cluster):
    return sum(
        partition.leader == partition.replicas[0]
        for partition in cluster.image.topics["orders"].partitions.values()
    )


def test_preferred_election_gives_leadership_back(scene):
    cluster = unbalanced(scene, 1)
    epoch = cluster.partition().leader_epoch
    cluster.apply(elect(cluster, Election.PREFERRED))
    assert (cluster.partition().leader, cluster.partition().leader_epoch) == (1, epoch + 1)


def test_preferred_leader_that_leads_needs_no_election(scene):
    cluster = scene()
    cluster.create("orders", (1, 2, 3))
    assert error_of(elect(cluster, Election.PREFERRED)) is ErrorCode.ELECTION_NOT_NEEDED


def test_preferred_leader_that_is_not_in_sync_is_not_available(scene):
    cluster = scene()
    cluster.create("orders", (1, 2, 3))
    cluster.join(1, life=1)
    refused = elect(cluster, Election.PREFERRED)
    assert error_of(refused) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


def test_unclean_election_by_hand_needs_no_permission(scene):
    cluster = scene()
    cluster.create("orders", (1, 2))
    cluster.apply(decide_fence(cluster.controller, 2))
    cluster.apply(decide_controlled_shutdown(cluster.controller, 1))
    cluster.join(2, life=1)
    assert cluster.partition().leader == NO_NODE
    cluster.apply(elect(cluster, Election.UNCLEAN))
    after = cluster.partition()
    assert (after.leader, after.isr, after.recovery_state) == (2, (2,), RECOVERING)


def test_partition_that_has_a_leader_needs_no_unclean_election(scene):
    cluster = scene()
    cluster.create("orders", (1, 2, 3))
    assert error_of(elect(cluster, Election.UNCLEAN)) is ErrorCode.ELECTION_NOT_NEEDED


def test_unclean_election_needs_an_active_replica(scene):
    cluster = scene()
    cluster.create("orders", (1, 2))
    for number in (1, 2):
        cluster.apply(decide_fence(cluster.controller, number))
    refused = elect(cluster, Election.UNCLEAN)
    assert error_of(refused) is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


def test_partition_that_is_not_there_is_told(scene):
    cluster = scene()
    cluster.create("orders", (1,))
    for topic, number in (("none", 0), ("orders", 9)):
        refused = elect(cluster, Election.PREFERRED, topic, number)
        assert error_of(refused) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_broker_past_the_threshold_gets_its_partitions_back(scene):
    cluster = unbalanced(scene, 10, away=2)
    assert led_by_first(cluster) == 8
    cluster.apply(decide_preferred(cluster.controller))
    assert led_by_first(cluster) == 10


def test_broker_at_the_threshold_is_left_alone(scene):
    cluster = unbalanced(scene, 10, away=1)
    assert decide_preferred(cluster.controller) == ()
    strict = unbalanced(scene, 10, away=1, **{"leader.imbalance.per.broker.percentage": "9"})
    assert len(decide_preferred(strict.controller)) == 1


def test_each_broker_is_measured_by_itself(scene):
    cluster = unbalanced(scene, 2)
    cluster.create("quiet", *[(2, 3)] * 100)
    assert len(decide_preferred(cluster.controller)) == 2


def test_broker_that_is_not_active_gets_nothing_back(scene):
    cluster = scene()
    cluster.create("orders", *[(1, 2, 3)] * 4)
    cluster.apply(decide_fence(cluster.controller, 1))
    assert elections.imbalanced(cluster.controller) == {}
    assert decide_preferred(cluster.controller) == ()


def test_partition_that_is_being_moved_does_not_count(scene):
    cluster = scene()
    cluster.create("orders", (1, 2))
    cluster.apply(decide_reassign(cluster.controller, "orders", 0, (3, 1)))
    assert elections.imbalanced(cluster.controller) == {}


@pytest.mark.plain
def test_one_pass_is_bounded_and_the_next_goes_on(scene, monkeypatch):
    monkeypatch.setattr(elections, "ELECTIONS_PER_PASS_MAX", 4)
    cluster = unbalanced(scene, 10)
    moved = []
    while records := decide_preferred(cluster.controller):
        moved.append(len(cluster.apply(records)))
    assert moved == [4, 4, 2]


@pytest.mark.parametrize("allowed", [True, False])
def test_sweep_elects_uncleanly_only_where_that_is_allowed(scene, allowed):
    cluster = scene()
    cluster.create("orders", (1, 2))
    cluster.apply(decide_fence(cluster.controller, 2))
    cluster.apply(decide_controlled_shutdown(cluster.controller, 1))
    cluster.join(2, life=1)
    cluster.image.replay(
        ConfigRecord(2, "orders", "unclean.leader.election.enable", str(allowed).lower())
    )
    assert len(decide_leaderless(cluster.controller)) == allowed
