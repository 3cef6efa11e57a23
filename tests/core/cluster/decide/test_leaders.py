"""One test for each rule of an election and of the ELR (KIP-631, KIP-966, KIP-704)."""

from __future__ import annotations

from cotidal.core.cluster.decide.brokers import (
    decide_controlled_shutdown,
    decide_fence,
    decide_unfence,
)
from cotidal.core.cluster.decide.leaders import (
    Assignment,
    Election,
    Rules,
    acceptable_in,
    change,
    elect_leaderless,
)
from cotidal.core.cluster.image import LEADER_UNCHANGED, RECOVERED, RECOVERING, Partition, changed
from cotidal.messages.records.metadata import ConfigRecord, PartitionChangeRecord
from cotidal.values import NO_NODE, Uuid

TOPIC_ID = Uuid(b"t" * 16)
WITH_ELR = Rules(min_isr=2, elr_enabled=True, unclean_allowed=False)
WITHOUT_ELR = Rules(min_isr=2, elr_enabled=False, unclean_allowed=False)


def partition(**fields):
    given = {
        "replicas": (1, 2, 3),
        "isr": (1, 2, 3),
        "leader": 1,
        "leader_epoch": 5,
        "partition_epoch": 9,
        **fields,
    }
    return Partition(**given)


def changes(before, *, alive=(1, 2, 3), rules=WITH_ELR, **wanted):
    record = change(TOPIC_ID, 0, before, rules, lambda node: node in alive, **wanted)
    return before if record is None else changed(before, record)


def assigned(*replicas, adding=(), removing=()):
    return Assignment(replicas, adding, removing, ())


def test_leader_in_isr_keeps_leading_and_its_epoch():
    after = changes(partition(), isr=(1, 2))
    assert (after.leader, after.leader_epoch) == (1, 5)
    assert after.partition_epoch == 10


def test_nothing_to_change_gives_no_record():
    assert change(TOPIC_ID, 0, partition(), WITH_ELR, lambda _: True) is None


def test_first_replica_in_isr_takes_over_with_a_new_epoch():
    after = changes(partition(replicas=(3, 2, 1)), isr=(2, 1), alive=(1, 2), rules=WITH_ELR)
    assert after.leader == 1  # it leads already and stays
    after = changes(partition(replicas=(3, 2, 1), leader=3), isr=(1, 2), alive=(1, 2))
    assert (after.leader, after.leader_epoch, after.partition_epoch) == (2, 6, 10)


def test_preferred_election_prefers_the_first_replica_to_the_leader():
    after = changes(partition(leader=2), election=Election.PREFERRED)
    assert (after.leader, after.leader_epoch) == (1, 6)


def test_preferred_election_leaves_the_leader_when_the_first_replica_is_out():
    before = partition(leader=2, isr=(2, 3))
    assert changes(before, election=Election.PREFERRED) == before


def test_eligible_replica_does_not_lead_while_somebody_is_in_sync():
    before = partition(leader=2, isr=(2,), elr=(1,))
    assert changes(before, election=Election.PREFERRED) == before


def test_below_min_isr_whoever_leaves_the_isr_is_eligible():
    after = changes(partition(isr=(1, 2)), isr=(1,))
    assert (after.isr, after.elr) == ((1,), (2,))


def test_at_min_isr_nobody_is_eligible():
    after = changes(partition(isr=(1,), elr=(2, 3)), isr=(1, 2))
    assert (after.isr, after.elr) == ((1, 2), ())


def test_min_isr_counts_no_more_than_there_are_replicas():
    after = changes(partition(replicas=(1,), isr=(), elr=(1,), leader=NO_NODE))
    assert (after.leader, after.isr, after.elr) == (1, (1,), ())


def test_unclean_restart_leaves_the_elr():
    after = changes(partition(isr=(1,), elr=(2, 3)), unclean_restarted=(2,))
    assert after.elr == (3,)


def test_eligible_replica_leads_when_the_isr_is_empty_and_becomes_the_isr():
    before = partition(isr=(1,), elr=(2,))
    after = changes(before, isr=(), alive=(2, 3))
    assert (after.leader, after.isr, after.leader_epoch) == (2, (2,), 6)
    assert after.elr == (1,), "the old leader holds everything too"
    assert after.recovery_state == RECOVERED


def test_replica_that_is_neither_in_sync_nor_eligible_does_not_lead():
    after = changes(partition(isr=(1,), elr=(2,)), isr=(), alive=(3,))
    assert (after.leader, after.isr, after.elr) == (NO_NODE, (), (1, 2))
    assert after.leader_epoch == 6, "nobody is an election too"


def test_leader_is_remembered_when_the_isr_becomes_empty():
    after = changes(partition(isr=(1,)), isr=(), alive=(), unclean_restarted=(1,))
    assert (after.elr, after.last_known_elr) == ((), (1,))


def test_last_known_leader_leads_when_isr_and_elr_are_empty_and_counts_as_unclean():
    before = partition(isr=(), elr=(), last_known_elr=(2,), leader=NO_NODE)
    after = changes(before, alive=(2, 3))
    assert (after.leader, after.isr, after.last_known_elr) == (2, (2,), ())
    assert after.recovery_state == RECOVERING


def test_last_known_leader_must_be_alive():
    before = partition(isr=(), elr=(), last_known_elr=(2,), leader=NO_NODE)
    assert changes(before, alive=(1, 3)) == before


def test_last_known_leader_waits_while_somebody_is_eligible():
    before = partition(isr=(), elr=(3,), last_known_elr=(2,), leader=NO_NODE)
    assert changes(before, alive=(2,)) == before


def test_unclean_election_takes_any_acceptable_replica_when_allowed():
    before = partition(isr=(), elr=(2,), leader=NO_NODE)
    after = changes(before, alive=(3,), rules=WITH_ELR._replace(unclean_allowed=True))
    assert (after.leader, after.isr, after.elr) == (3, (3,), ())
    assert after.recovery_state == RECOVERING


def test_clean_candidate_is_preferred_where_unclean_election_is_allowed():
    before = partition(isr=(), elr=(3,), leader=NO_NODE)
    after = changes(before, rules=WITH_ELR._replace(unclean_allowed=True))
    assert (after.leader, after.recovery_state) == (3, RECOVERED)


def test_without_elr_the_last_member_stays_in_the_isr_and_nobody_leads():
    after = changes(partition(isr=(1,)), isr=(), alive=(2, 3), rules=WITHOUT_ELR)
    assert (after.leader, after.isr, after.elr) == (NO_NODE, (1,), ())
    back = changes(after, rules=WITHOUT_ELR)
    assert (back.leader, back.isr, back.leader_epoch) == (1, (1,), 7)


def test_losing_a_replica_raises_the_leader_epoch_of_the_same_leader():
    after = changes(partition(), assignment=assigned(1, 2), isr=(1, 2))
    assert (after.leader, after.leader_epoch) == (1, 6)


def test_gaining_a_replica_does_not_raise_the_leader_epoch():
    after = changes(partition(replicas=(1, 2), isr=(1, 2)), assignment=assigned(1, 2, 3))
    assert (after.leader_epoch, after.partition_epoch) == (5, 10)


def test_record_names_no_leader_when_only_the_isr_changes():
    record = change(TOPIC_ID, 0, partition(), WITH_ELR, lambda _: True, isr=(1, 2))
    assert record is not None
    assert record.leader == LEADER_UNCHANGED
    assert record.isr == (1, 2)


def test_last_replica_standing_hands_over_to_an_eligible_one(scene):
    """Regression script 5: ISR 3 -> 2 -> 1, the leader loses its end and comes back."""
    cluster = scene()
    cluster.create("orders", (1, 2, 3), min_insync_replicas="2")
    cluster.apply(decide_fence(cluster.controller, 3))
    cluster.apply(decide_fence(cluster.controller, 2))
    assert (cluster.partition().isr, cluster.partition().elr) == ((1,), (2,))
    cluster.register(1, life=1)  # unclean: its log may have lost its end
    assert (cluster.partition().leader, cluster.partition().elr) == (NO_NODE, (2,))
    cluster.apply(decide_unfence(cluster.controller, 1))
    assert cluster.partition().leader == NO_NODE, "2 is eligible: wait for it"
    cluster.apply(decide_unfence(cluster.controller, 2))
    assert (cluster.partition().leader, cluster.partition().isr) == (2, (2,))


def test_whole_cluster_killed_gets_its_last_leaders_back(scene):
    """Regression script 22."""
    cluster = scene()
    cluster.create("orders", (1, 2, 3), (2, 3, 1), (3, 1, 2), min_insync_replicas="2")
    leaders = [cluster.partition(number=number).leader for number in range(3)]
    for number in (1, 2, 3):
        cluster.register(number, life=1)
    for number in (1, 2, 3):
        assert cluster.partition(number=number - 1).leader == NO_NODE
    for number in (1, 2, 3):
        cluster.apply(decide_unfence(cluster.controller, number))
    after = [cluster.partition(number=number).leader for number in range(3)]
    assert NO_NODE not in after
    # The last of each ISR was 3, whatever led at first; it is the last known leader of all.
    assert leaders == [1, 2, 3]
    assert after == [3, 3, 3]


def test_sweep_elects_where_unclean_election_has_been_allowed(scene):
    cluster = scene()
    cluster.create("orders", (1, 2))
    cluster.apply(decide_fence(cluster.controller, 2))
    cluster.apply(decide_controlled_shutdown(cluster.controller, 1))
    cluster.apply(decide_unfence(cluster.controller, 2))
    assert cluster.partition().leader == NO_NODE
    assert tuple(elect_leaderless(cluster.controller)) == ()
    cluster.image.replay(
        ConfigRecord(
            resource_type=2,
            resource_name="orders",
            name="unclean.leader.election.enable",
            value="true",
        )
    )
    records = cluster.apply(tuple(elect_leaderless(cluster.controller)))
    assert [type(record) for record in records] == [PartitionChangeRecord]
    assert (cluster.partition().leader, cluster.partition().isr) == (2, (2,))


def test_setting_does_not_let_a_replica_lead_that_is_only_being_added():
    before = partition(replicas=(4, 1), adding=(4,), isr=(), elr=(1,), leader=NO_NODE)
    allowed = WITH_ELR._replace(unclean_allowed=True)
    assert changes(before, alive=(4,), rules=allowed) == before
    by_hand = changes(before, alive=(4,), election=Election.UNCLEAN)
    assert (by_hand.leader, by_hand.recovery_state) == (4, RECOVERING)
    both = changes(before._replace(elr=(), replicas=(4, 1, 2)), alive=(2, 4), rules=allowed)
    assert both.leader == 2


def test_reassignment_ends_with_the_change_that_brings_its_target_in_sync():
    before = partition(replicas=(3, 4, 1, 2), adding=(4,), removing=(1, 2))
    during = changes(before, isr=(1, 2, 4), alive=(1, 2, 3, 4))
    assert during.replicas == (3, 4, 1, 2)
    after = changes(during, isr=(1, 2, 3, 4), alive=(1, 2, 3, 4))
    assert (after.replicas, after.isr, after.adding, after.removing) == ((3, 4), (3, 4), (), ())
    assert (after.leader, after.leader_epoch) == (3, 6)


def test_replica_whose_directory_is_not_online_is_not_acceptable(scene):
    cluster = scene()
    cluster.create("orders", (1, 2))
    elsewhere = cluster.partition()._replace(directories=(Uuid(b"?" * 16), Uuid(bytes(16))))
    acceptable = acceptable_in(cluster.image, elsewhere)
    assert [acceptable(node) for node in (1, 2, 9)] == [False, True, False]
    assert not acceptable_in(cluster.image, elsewhere, leaving=2)(2)
    cluster.apply(decide_fence(cluster.controller, 2))
    assert not acceptable_in(cluster.image, elsewhere)(2)
    assert acceptable_in(cluster.image, elsewhere, joining=2)(2)
