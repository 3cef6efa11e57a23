"""Whether a cluster is well, in one sentence."""

from cotidal.client.health import Severity, health_of
from cotidal.client.metadata import Metadata, Partition
from cotidal.client.replicas import Eligible, Held, Led, Registered, Told
from cotidal.client.standing import Scene, stand
from cotidal.client.status import Status
from cotidal.values import LeaderEpoch, NodeId, Offset, TopicPartition

HELD = Held(Offset(0), Offset(10), Offset(10), ())


def status(*partitions, fenced=(), silent=(), brokers=3, min_isr=2, elr=()):
    """``partitions``: leader, replicas and ISR of each, all of topic orders."""
    nodes = [NodeId(node) for node in range(1, brokers + 1)]
    metadata = [
        Partition(number, NodeId(leader), LeaderEpoch(3), tuple(replicas), tuple(isr), ())
        for number, (leader, replicas, isr) in enumerate(partitions)
    ]
    at = [TopicPartition("orders", each.partition) for each in metadata]
    away = {*fenced, *silent}
    told = {
        node: Told(
            dict.fromkeys(at, HELD),
            {one: Led(min_isr, {}) for one, each in zip(at, metadata, strict=True)
             if each.leader == node},
            dict.fromkeys(fenced, 12_000),
        )
        for node in nodes if node not in away
    }  # fmt: skip
    scene = Scene(told, dict.fromkeys(silent, "gone"), frozenset(fenced), frozenset(nodes))
    eligible = Eligible(tuple(elr), ())
    standing = [
        stand(one, each, scene, eligible=eligible) for one, each in zip(at, metadata, strict=True)
    ]
    return Status(
        Metadata("id", NodeId(1), (), ()),
        tuple(Registered(node, "h", 1, None, node in fenced) for node in nodes),
        {},
        standing,
        scene,
    )


def test_a_cluster_that_is_well_says_how_much_there_is():
    health = health_of(status(*[(1, (1, 2, 3), (1, 2, 3))] * 12))
    assert health.severity is Severity.GOOD
    assert health.sentence == "All well: 3 brokers, 12 partitions, all in sync."
    assert health_of(status(brokers=1)).sentence == "All well: 1 broker, 0 partitions."


def test_under_min_isr_says_what_is_refused_and_who_must_come_back():
    health = health_of(status((1, (1, 2, 3), (1,)), fenced=(2, 3)))
    assert health.severity is Severity.BAD
    assert health.sentence == (
        "orders-0 is under min ISR: writes with acks=all are refused until broker 2 or 3 is back"
        " in sync."
    )


def test_when_several_must_come_back_all_are_named():
    health = health_of(status((1, (1, 2, 3), (1,)), fenced=(2, 3), min_isr=3))
    assert "until brokers 2 and 3 are back in sync." in health.sentence


def test_a_minimum_that_cannot_be_reached_is_said_to_be_one():
    health = health_of(status((1, (1, 2), (1, 2)), min_isr=3))
    assert health.sentence.endswith("because it has fewer replicas than its min ISR of 3.")


def test_a_partition_without_a_leader_comes_first():
    parts = [(1, (1, 2, 3), (1,)), (-1, (2, 3), ()), (-1, (2, 3), ())]
    health = health_of(status(*parts, fenced=(2, 3), elr=(2,)))
    assert health.sentence == (
        "orders-1 has no leader: nobody can read or write it until broker 2 is back"
        " (and 1 more partition)."
    )
    assert [each.partitions for each in health.troubles] == [2, 1, 0, 3]


def test_where_nobody_is_known_to_hold_everything_it_says_so():
    health = health_of(status((-1, (2, 3), ()), fenced=(2,)))
    assert "no replica is known to hold every record" in health.sentence


def test_a_replica_that_is_out_of_sync_is_a_warning_with_its_reason():
    health = health_of(status((1, (1, 2, 3), (1, 2)), fenced=(3,)))
    assert health.severity is Severity.WARN
    assert [each.sentence for each in health.troubles] == [
        "Broker 3 does not serve: fenced for 12.0 s.",
        "orders-0 lacks broker 3 in sync: fenced for 12.0 s.",
    ]


def test_brokers_that_do_not_answer_are_named():
    health = health_of(status(silent=(2, 3)))
    assert health.sentence == "Brokers 2 and 3 do not serve."
    assert health_of(status(silent=(2,))).sentence == "Broker 2 does not serve: it does not answer."
