from __future__ import annotations

import pytest

from cotidal.core.cluster import duties as duties_of_term
from cotidal.core.cluster.decide import elections
from cotidal.core.cluster.decide.brokers import decide_controlled_shutdown, decide_fence
from cotidal.core.cluster.decide.leaders import change, rules_of
from cotidal.core.cluster.duties import FULL_PASS_PAUSE_MS, begin, decide_due, next_deadline
from cotidal.messages.records.metadata import ConfigRecord
from cotidal.values import NO_NODE

START = 5_000


class Term:
    def __init__(self, cluster) -> None:
        self.cluster = cluster
        self.now = START
        self.duties, self.probes = begin(
            cluster.controller, self.now, end_offset=cluster.end_offset
        )

    def pass_time(self, ms: int, *, alive=(1, 2, 3)) -> list[str]:
        """Do what is due on the way; those who are alive speak all the time."""
        until, said = self.now + ms, []
        while True:
            for number in alive:
                if number in self.duties.sessions.of:
                    self.duties.sessions.of[number].last_contact = self.now
            deadline = next_deadline(self.cluster.controller, self.duties)
            if deadline > until:
                self.now = until
                return said
            self.now = max(self.now, deadline)
            for number in alive:
                if number in self.duties.sessions.of:
                    self.duties.sessions.of[number].last_contact = self.now
            due = decide_due(self.cluster.controller, self.duties, self.now)
            self.cluster.apply(due.records)
            assert bool(due.records) == bool(due.reply)
            if due.reply:
                said.append((self.now - START, due.reply))


def test_silent_brokers_are_fenced_one_by_one_each_seeing_the_one_before(scene):
    cluster = scene()
    cluster.create("orders", (1, 2, 3), min_insync_replicas="2")
    term = Term(cluster)
    assert next_deadline(cluster.controller, term.duties) == START + 3_000
    said = term.pass_time(3_500, alive=(3,))
    assert said == [
        (3_000, "fenced broker 1: it was silent for 3000 ms"),
        (3_000, "fenced broker 2: it was silent for 3000 ms"),
    ]
    assert (cluster.partition().leader, cluster.partition().isr) == (3, (3,))
    assert cluster.partition().elr == (2,)


def test_session_timeout_is_a_setting(scene):
    term = Term(scene(settings={"broker.session.timeout.ms": "500"}))
    assert next_deadline(term.cluster.controller, term.duties) == START + 500


def test_nothing_due_decides_nothing(scene):
    term = Term(scene())
    assert decide_due(term.cluster.controller, term.duties, START) == ((), "")


def led_by_second(scene, settings, partitions=3):
    cluster = scene(settings=settings)
    cluster.create("orders", *[(1, 2, 3)] * partitions)
    cluster.apply(decide_fence(cluster.controller, 1))
    cluster.join(1, life=1)
    topic = cluster.image.topics["orders"]
    for number, partition in topic.partitions.items():
        rules = rules_of(cluster.controller, "orders")
        isr = (2, 3, 1)
        record = change(topic.topic_id, number, partition, rules, cluster.image.is_active, isr=isr)
        cluster.apply((record,))
    return cluster


def test_preferred_leaders_get_back_what_they_lost_every_five_minutes(scene):
    cluster = led_by_second(scene, {})
    term = Term(cluster)
    assert term.pass_time(299_999) == []
    assert term.pass_time(2) == [(300_000, "gave back to their preferred leaders: 3 partitions")]
    assert cluster.partition().leader == 1
    assert term.pass_time(700_000) == []


def test_interval_of_the_check_is_a_setting(scene):
    cluster = led_by_second(scene, {"leader.imbalance.check.interval.seconds": "7"})
    assert [at for at, _ in Term(cluster).pass_time(8_000)] == [7_000]


def test_leaders_stay_where_they_are_when_rebalancing_is_off(scene):
    cluster = led_by_second(scene, {"auto.leader.rebalance.enable": "false"})
    assert Term(cluster).pass_time(700_000) == []
    assert cluster.partition().leader == 2


@pytest.mark.plain
def test_full_pass_is_followed_by_another_after_a_pause(scene, monkeypatch):
    monkeypatch.setattr(elections, "ELECTIONS_PER_PASS_MAX", 2)
    monkeypatch.setattr(duties_of_term, "ELECTIONS_PER_PASS_MAX", 2)
    said = Term(led_by_second(scene, {}, partitions=5)).pass_time(300_500)
    assert [at for at, _ in said] == [300_000 + FULL_PASS_PAUSE_MS * turn for turn in range(3)]


@pytest.mark.parametrize("interval", [300_000, 1_000])
def test_sweep_finds_leaders_where_unclean_election_is_allowed_by_now(scene, interval):
    cluster = scene(settings={"unclean.leader.election.interval.ms": str(interval)})
    cluster.create("orders", (1, 2))
    cluster.apply(decide_fence(cluster.controller, 2))
    cluster.apply(decide_controlled_shutdown(cluster.controller, 1))
    cluster.join(2, life=1)
    assert cluster.partition().leader == NO_NODE
    term = Term(cluster)
    assert term.pass_time(interval + 1) == []
    cluster.image.replay(ConfigRecord(2, "orders", "unclean.leader.election.enable", "true"))
    assert term.pass_time(interval) == [(2 * interval, "found a leader for: 1 partitions")]
    assert cluster.partition().leader == 2


def test_new_term_begins_its_clocks_anew(scene):
    cluster = scene()
    term = Term(cluster)
    term.pass_time(200_000)
    later, probes = begin(cluster.controller, term.now, end_offset=cluster.end_offset)
    assert later.next_balance == term.now + 300_000
    assert [probe.node_id for probe in probes] == [1, 2, 3]
