from __future__ import annotations

import pytest

from cotidal.core.cluster.decide.brokers import Heartbeat, decide_controlled_shutdown, decide_fence
from cotidal.core.cluster.sessions import (
    Probe,
    Sessions,
    decide_beat,
    decide_refused,
    decide_registration,
)
from cotidal.errors import ErrorCode, Refusal

TIMEOUT = 3000


class Term:
    """A controller's term over a scene, with a clock that a test moves."""

    def __init__(self, cluster) -> None:
        self.cluster = cluster
        self.now = 10_000
        self.sessions = Sessions(TIMEOUT)
        self.probes = self.sessions.activate(cluster.image, self.now, end_offset=cluster.end_offset)

    def beat(self, number, *, offset=None, fence=False, shutdown=False, epoch=None):
        decided = decide_beat(
            self.cluster.controller,
            self.sessions,
            Heartbeat(
                number,
                self.cluster.epoch(number) if epoch is None else epoch,
                self.cluster.end_offset - 1 if offset is None else offset,
                fence,
                shutdown,
            ),
            now=self.now,
            end_offset=self.cluster.end_offset,
        )
        if not isinstance(decided, Refusal):
            self.cluster.apply(decided.records)
        return decided

    def register(self, asked):
        decided = decide_registration(
            self.cluster.controller,
            self.sessions,
            asked,
            now=self.now,
            end_offset=self.cluster.end_offset,
        )
        if not isinstance(decided, Refusal):
            self.cluster.apply(decided)
        return decided

    def refused(self, number, epoch=None):
        probe = Probe(number, self.cluster.epoch(number) if epoch is None else epoch)
        records = decide_refused(self.cluster.controller, self.sessions, probe)
        return self.cluster.apply(records)

    def fenced(self, number):
        return self.cluster.image.brokers[number].fenced


@pytest.fixture
def term(scene):
    cluster = scene()
    cluster.create("orders", (1, 2, 3))
    return Term(cluster)


def test_new_controller_gives_everyone_a_fresh_session_and_a_probe(scene):
    cluster = scene()
    cluster.apply(decide_fence(cluster.controller, 3))
    term = Term(cluster)
    assert term.probes == (Probe(1, cluster.epoch(1)), Probe(2, cluster.epoch(2)))
    assert term.sessions.expired(cluster.image, term.now + TIMEOUT - 1) is None
    assert term.sessions.expired(cluster.image, term.now + TIMEOUT) in (1, 2)


def test_silent_broker_expires_and_one_that_speaks_does_not(term):
    term.now += 2_000
    for number in (1, 3):
        term.beat(number)
    assert term.sessions.next_deadline(term.cluster.image) == 10_000 + TIMEOUT
    assert term.sessions.expired(term.cluster.image, 13_000) == 2
    term.cluster.apply(decide_fence(term.cluster.controller, 2))
    assert term.sessions.expired(term.cluster.image, 13_000) is None
    assert term.sessions.next_deadline(term.cluster.image) == 12_000 + TIMEOUT


def test_nobody_to_expire_has_no_deadline(scene):
    cluster = scene(brokers=0)
    term = Term(cluster)
    assert term.sessions.next_deadline(cluster.image) is None
    assert term.sessions.expired(cluster.image, 99_999) is None


def test_heartbeat_of_another_life_keeps_nobody_alive(term):
    term.now += 2_000
    refused = term.beat(2, epoch=0)
    assert refused.error is ErrorCode.STALE_BROKER_EPOCH
    assert term.sessions.expired(term.cluster.image, 13_000) is not None


def test_refused_connection_fences_at_once(term):
    term.refused(1)
    assert term.fenced(1)
    assert term.cluster.partition().leader == 2


def test_refusal_fences_also_whoever_has_spoken_in_this_term(term):
    term.beat(1)
    term.refused(1)
    assert term.fenced(1)


def test_refusal_of_an_older_life_says_nothing(term, registers):
    old = term.cluster.epoch(1)
    term.refused(1)
    term.register(registers(1, life=1))
    term.beat(1)
    assert not term.fenced(1)
    assert term.refused(1, epoch=old) == ()
    assert not term.fenced(1)


def test_refusal_is_not_believed_again_when_the_broker_speaks_after_it(term):
    term.refused(1)
    term.beat(1)
    assert not term.fenced(1), "it lives, and is caught up"
    assert term.refused(1) == ()
    assert not term.fenced(1)
    term.now += TIMEOUT
    for number in (2, 3):
        term.beat(number)
    assert term.sessions.expired(term.cluster.image, term.now) == 1, "silence is believed"


def test_refusal_by_a_broker_that_nobody_knows_says_nothing(term):
    assert term.refused(9, epoch=1) == ()


def test_second_incarnation_is_refused_while_the_first_lives(term, registers):
    term.beat(1)
    refused = term.register(registers(1, life=1, disk=9))
    assert refused.error is ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_second_incarnation_is_refused_while_nothing_is_known_of_the_first(term, registers):
    refused = term.register(registers(1, life=1, disk=9))
    assert refused.error is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert Probe(1, term.cluster.epoch(1)) in term.sessions.unheard(term.cluster.image)


def test_second_incarnation_is_welcome_when_the_listener_of_the_first_refuses(term, registers):
    term.refused(1)
    assert not term.sessions.is_alive(1, term.now)
    assert not isinstance(term.register(registers(1, life=1)), Refusal)


def test_new_life_has_a_session_of_its_own(term, registers):
    term.beat(1, offset=50)
    term.refused(1)
    term.register(registers(1, life=1))
    session = term.sessions.of[1]
    assert (session.epoch, session.metadata_offset) == (term.cluster.epoch(1), -1)
    assert not session.refusals_lie, "it was another one that was refused"
    term.beat(1)
    assert not term.fenced(1)
    term.refused(1)
    assert term.fenced(1)


def test_second_incarnation_is_welcome_when_the_session_of_the_first_is_over(term, registers):
    """Regression script 20: before its fencing has been decided."""
    term.beat(1)
    term.now += TIMEOUT
    assert not isinstance(term.register(registers(1, life=1)), Refusal)
    assert term.cluster.partition().isr == (2, 3)


def test_second_incarnation_is_welcome_when_the_first_is_shutting_down(term, registers):
    term.beat(1, shutdown=True)
    assert term.cluster.image.brokers[1].in_controlled_shutdown
    assert not isinstance(term.register(registers(1, life=1)), Refusal)


def test_same_incarnation_may_register_again(term, registers):
    term.beat(1)
    epoch = term.cluster.epoch(1)
    assert not isinstance(term.register(registers(1)), Refusal)
    assert (term.cluster.epoch(1), term.sessions.of[1].epoch) == (epoch, epoch)


def test_broker_that_shuts_down_waits_until_every_active_one_knows(term):
    for number in (1, 2, 3):
        term.beat(number)
    before = term.cluster.end_offset
    assert not term.beat(1, shutdown=True).should_shut_down
    last = term.cluster.end_offset - 1
    assert last >= before
    assert not term.beat(1, shutdown=True).should_shut_down
    term.beat(2, offset=last)
    term.beat(3, offset=last - 1)
    assert not term.beat(1, shutdown=True).should_shut_down, "3 lacks the last record"
    term.beat(3, offset=last)
    told = term.beat(1, shutdown=True)
    assert (told.should_shut_down, told.fenced) == (True, True)


def test_broker_that_nobody_waits_for_need_not_know(term):
    term.beat(2)
    term.beat(1, shutdown=True)
    term.cluster.apply(decide_fence(term.cluster.controller, 3))
    term.beat(2, offset=term.cluster.end_offset - 1)
    assert term.beat(1, shutdown=True).should_shut_down


def test_shutdown_goes_on_under_a_new_controller(scene):
    cluster = scene()
    cluster.create("orders", (1, 2, 3))
    cluster.apply(decide_controlled_shutdown(cluster.controller, 1))
    term = Term(cluster)
    known = cluster.end_offset - 1
    assert not term.beat(1).should_shut_down, "nobody has said how far it is"
    for number in (2, 3):
        term.beat(number, offset=known)
    assert term.beat(1).should_shut_down


def test_offsets_that_are_known_do_not_go_back(term):
    term.beat(2, offset=50)
    term.beat(2, offset=40)
    assert term.sessions.of[2].metadata_offset == 50


def test_shutting_down_broker_expires_too(term):
    term.beat(1, shutdown=True)
    term.now += TIMEOUT
    for number in (2, 3):
        term.beat(number)
    assert term.sessions.expired(term.cluster.image, term.now) == 1
