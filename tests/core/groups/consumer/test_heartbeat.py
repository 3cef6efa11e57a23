"""Members of the consumer protocol (rules N, G and V of docs/spec/groups.md)."""

from __future__ import annotations

import pytest

from consumer_bench import Consumer, T, beating, consumers, described, error_of, settle
from cotidal.core.groups.asks import ConsumerBeaten
from cotidal.core.groups.state import ConsumerRules
from cotidal.errors import ErrorCode, Refusal
from group_bench import RULES, GroupBench, Topics


def ruled(**fields):
    return RULES._replace(consumers=ConsumerRules(**fields))


# Joining


def test_a_lone_member_gets_everything_with_its_first_heartbeat():
    bench = consumers()
    member = Consumer(bench, "a")
    answer = member.beat()
    assert (answer.epoch, answer.heartbeat_interval_ms) == (1, 1_000)
    assert member.numbers == [0, 1, 2, 3]
    assert described(bench).state == "Stable"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"owned": None}, ErrorCode.INVALID_REQUEST),
        ({"owned": ((T, 0),)}, ErrorCode.INVALID_REQUEST),
        ({"topics": None}, ErrorCode.INVALID_REQUEST),
        ({"epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"assignor": "sticky"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"regex": "("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"epoch": 1}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_what_a_request_lacks_is_said(fields, error):
    bench = consumers()
    answer = bench.ask(beating("a")._replace(**fields))
    assert error_of(answer) is error
    assert answer.text
    assert error_of(described(bench)) is ErrorCode.GROUP_ID_NOT_FOUND, "no group is left behind"


def test_a_coordinator_that_does_not_serve_the_protocol_says_so():
    bench = consumers(rules=ruled(enabled=False))
    assert error_of(bench.ask(beating("a"))) is ErrorCode.UNSUPPORTED_VERSION


def test_a_member_of_the_first_version_is_given_its_id():
    answer = consumers().ask(beating(""))
    assert len(answer.member_id) == 36


def test_a_full_group_takes_nobody_more_and_keeps_whom_it_has():
    bench = consumers(rules=ruled(members_max=1))
    member = Consumer(bench, "a")
    member.beat()
    assert error_of(bench.ask(beating("b"))) is ErrorCode.GROUP_MAX_SIZE_REACHED
    member.epoch = 0
    assert error_of(member.beat()) is ErrorCode.NONE


def test_a_member_without_topics_is_one():
    bench = consumers()
    member = Consumer(bench, "a", topics=())
    assert error_of(member.beat()) is ErrorCode.NONE
    assert (member.owned, described(bench).state) == ((), "Stable")


def test_topics_that_are_not_there_are_waited_for():
    bench = consumers()
    member = Consumer(bench, "a", topics=("t", "later"))
    member.beat()
    assert member.numbers == [0, 1, 2, 3]
    bench.topics.set("later", 2)
    member.beat()
    assert (len(member.owned), member.epoch) == (6, 2)


# Reconciling


def test_what_moves_is_given_up_before_it_is_given():
    bench = consumers()
    one, two = Consumer(bench, "a"), Consumer(bench, "b")
    one.beat()
    joined = two.beat()
    assert (joined.epoch, two.owned) == (2, ()), "everything is still the other's"
    had = one.owned
    told = one.beat(owned=had)
    assert (told.epoch, len(told.assignment)) == (1, 2), "it is to give up two, in its old epoch"
    assert two.beat().assignment is None
    assert described(bench).state == "Reconciling"
    still = one.beat(owned=had)
    assert still.epoch == 1
    assert two.beat().assignment is None, "nobody has said that they are free"
    assert one.beat(owned=told.assignment).epoch == 2
    assert len(two.beat().assignment) == 2
    assert described(bench).state == "Stable"
    assert sorted(one.numbers + two.numbers) == [0, 1, 2, 3]


def test_a_member_that_says_nothing_of_what_it_owns_has_given_up_nothing():
    bench = consumers()
    one, two = Consumer(bench, "a"), Consumer(bench, "b")
    one.beat()
    two.beat()
    one.beat()
    for _ in range(3):
        assert one.beat(owned=None).epoch == 1
        assert two.beat().assignment is None


FULL = {"rebalance_timeout_ms": 5_000, "topics": ("t",)}


def test_what_a_member_was_told_and_has_not_yet_taken_is_nobody_elses():
    bench = consumers()
    one, two = Consumer(bench, "a"), Consumer(bench, "b")
    told = one.beat().assignment
    two.beat()
    less = one.beat(owned=(), **FULL).assignment
    assert len(less) == 2
    for _ in range(3):
        assert one.beat(owned=(), **FULL).epoch == 1, "what it was told first may wait in it still"
        assert two.beat().assignment is None
    one.beat(owned=told)
    assert two.beat().assignment is None, "and so it did"
    assert one.beat(owned=less, **FULL).epoch == 2
    assert sorted(two.beat().assignment) == sorted(set(told) - set(less))


def test_a_member_that_is_to_have_nothing_is_believed_that_it_has_nothing():
    bench = consumers(partitions=1)
    one, two = Consumer(bench, "a"), Consumer(bench, "b")
    one.beat()
    one.beat(topics=("other",))
    two.beat()
    one.beat(owned=(), rebalance_timeout_ms=5_000, topics=("other",))
    assert len(two.beat().assignment) == 1


def test_what_is_to_be_kept_and_was_deleted_since_is_not_waited_for():
    bench = GroupBench(RULES, topics=Topics(t=2, u=2))
    one, two = (Consumer(bench, each, topics=("t", "u")) for each in "ab")
    one.beat()
    two.beat()
    full = {"rebalance_timeout_ms": 5_000, "topics": ("t", "u")}
    assert {topic for topic, _ in one.beat(owned=(), **full).assignment} == {T}
    bench.topics.set("t", 0)
    assert one.beat(owned=(), **full).epoch > 1


def test_a_heartbeat_that_changes_nothing_writes_nothing():
    bench = consumers()
    member = Consumer(bench, "a")
    settle(member)
    written = len(bench.committed)
    for _ in range(5):
        assert member.beat(owned=None) == ConsumerBeaten("a", 1, 1_000, None)
    assert len(bench.committed) == written


def test_a_full_request_is_told_everything_again():
    bench = consumers()
    member = Consumer(bench, "a")
    member.beat()
    told = member.beat(rebalance_timeout_ms=5_000, topics=("t",))
    assert len(told.assignment) == 4


def test_a_changed_subscription_changes_what_a_member_has():
    bench = GroupBench(topics=Topics(t=2, u=3))
    member = Consumer(bench, "a")
    member.beat()
    assert len(member.beat(topics=("u",)).assignment) == 0
    assert len(member.beat().assignment) == 3
    assert member.epoch == 2


def test_the_assignor_that_most_ask_for_is_taken():
    bench = GroupBench(topics=Topics(t=2, u=2))
    both = ("t", "u")
    members = [
        Consumer(bench, "a", topics=both, assignor="range"),
        Consumer(bench, "b", topics=both, assignor="range"),
        Consumer(bench, "c", topics=both, assignor="uniform"),
    ]
    settle(*members)
    assert described(bench).assignor == "range"
    assert [each.numbers for each in members] == [[0, 0], [1, 1], []]


# Epochs


def test_an_epoch_that_is_ahead_or_long_ago_is_fenced():
    bench = consumers()
    one, two, three = (Consumer(bench, each) for each in "abc")
    settle(one)
    settle(one, two)
    settle(one, two, three)
    for epoch in (one.epoch + 1, one.epoch - 2):
        answer = bench.ask(beating("a", epoch, owned=()))
        assert error_of(answer) is ErrorCode.FENCED_MEMBER_EPOCH


def test_an_answer_that_was_lost_can_be_asked_for_again():
    bench = consumers()
    one = Consumer(bench, "a")
    one.beat()
    bench.topics.set("t", 6)
    before = one.owned
    bench.ask(beating("a", 1, owned=before))  # answered with epoch 2; it never came
    again = bench.ask(beating("a", 1, owned=before, rebalance_timeout_ms=5_000, topics=("t",)))
    assert (again.epoch, len(again.assignment)) == (2, 6)
    fenced = bench.ask(beating("a", 1, owned=((T, 9),)))
    assert error_of(fenced) is ErrorCode.FENCED_MEMBER_EPOCH, "it has what it was never given"
    assert error_of(bench.ask(beating("a", 1))) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_that_joins_again_has_given_up_everything():
    bench = consumers()
    one, two = Consumer(bench, "a"), Consumer(bench, "b")
    settle(one)
    two.beat()
    one.beat()
    assert described(bench).state == "Reconciling"
    one.epoch = 0
    one.beat()
    assert (one.epoch, len(one.owned)) == (2, 2)
    assert len(two.beat().assignment) == 2


def test_an_unknown_member_is_told_so():
    bench = consumers()
    Consumer(bench, "a").beat()
    assert error_of(bench.ask(beating("b", 1))) is ErrorCode.UNKNOWN_MEMBER_ID


# Time-outs


def test_a_silent_member_is_removed_and_the_others_get_what_it_had():
    bench = consumers()
    one, two = Consumer(bench, "a"), Consumer(bench, "b")
    settle(one, two)
    for _ in range(3):
        bench.advance(4_000)
        one.beat()
    one.beat()
    assert one.numbers == [0, 1, 2, 3]
    assert error_of(two.beat()) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_in_time_is_removed():
    bench = consumers()
    one, two = Consumer(bench, "a"), Consumer(bench, "b")
    settle(one)
    two.beat()
    had = one.owned
    assert one.beat(owned=had).epoch == 1
    for _ in range(3):
        bench.advance(1_500)
        assert error_of(one.beat(owned=had)) is ErrorCode.NONE
        two.beat()
    bench.advance(1_000)
    assert error_of(one.beat(owned=had)) is ErrorCode.UNKNOWN_MEMBER_ID
    two.beat()
    assert two.numbers == [0, 1, 2, 3]


def test_time_to_give_up_begins_anew_with_the_next_coordinator_and_sessions_too():
    bench = consumers()
    one, two = Consumer(bench, "a"), Consumer(bench, "b")
    settle(one)
    two.beat()
    had = one.owned
    one.beat(owned=had)
    bench.advance(4_000)
    after = bench.move()
    one.bench = two.bench = after
    after.advance(4_000)
    assert error_of(one.beat(owned=had)) is ErrorCode.NONE
    after.advance(1_500)
    assert error_of(one.beat(owned=had)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert error_of(two.beat()) is ErrorCode.NONE


def test_a_member_that_leaves_is_gone_at_once():
    bench = consumers()
    one, two = Consumer(bench, "a"), Consumer(bench, "b")
    settle(one, two)
    assert two.leave().epoch == -1
    assert described(bench).state == "Assigning"
    one.beat()
    assert one.numbers == [0, 1, 2, 3]
    assert error_of(two.leave()) is ErrorCode.UNKNOWN_MEMBER_ID


def silent_member_gives_room(bench, other):
    """In the time of a session and a little more, of which the other one makes use."""
    for _ in range(4):
        bench.advance(3_000)
        other.beat()
    other.beat()
    return other.numbers == [0, 1, 2, 3]


def test_a_silent_member_whose_removal_cannot_be_written_is_removed_when_it_can():
    bench = consumers()
    one, two = Consumer(bench, "a"), Consumer(bench, "b")
    settle(one, two)
    bench.refuses = Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert not silent_member_gives_room(bench, two)
    bench.refuses = None
    assert silent_member_gives_room(bench, two)


def test_a_member_whose_leaving_cannot_be_written_is_one_until_its_session_is_over():
    bench = consumers()
    one, two = Consumer(bench, "a"), Consumer(bench, "b")
    settle(one, two)
    bench.refuses = Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert error_of(one.leave()) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.refuses = None
    assert silent_member_gives_room(bench, two)


# Static members


def test_an_instance_whose_return_cannot_be_written_is_gone_when_its_session_is_over():
    bench = consumers()
    one, two = Consumer(bench, "a", instance_id="i"), Consumer(bench, "b")
    settle(one, two)
    one.leave(-2)
    bench.refuses = Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    again = Consumer(bench, "a2", instance_id="i")
    assert error_of(again.beat()) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.refuses = None
    assert silent_member_gives_room(bench, two)


def test_a_static_member_that_comes_back_has_what_it_had():
    bench = consumers()
    one = Consumer(bench, "a", instance_id="i")
    two = Consumer(bench, "b")
    settle(one, two)
    epoch, had = described(bench).epoch, one.owned
    assert one.leave(-2).epoch == -2
    again = Consumer(bench, "a2", instance_id="i")
    again.beat()
    assert (again.owned, described(bench).epoch) == (had, epoch), "nobody rebalances"
    assert error_of(one.beat()) is ErrorCode.FENCED_INSTANCE_ID
    assert error_of(two.beat()) is ErrorCode.NONE


def test_an_instance_that_has_not_left_keeps_its_place_until_its_session_is_over():
    bench = consumers()
    settle(Consumer(bench, "a", instance_id="i"))
    other = Consumer(bench, "b", instance_id="i")
    assert error_of(other.beat()) is ErrorCode.UNRELEASED_INSTANCE_ID
    bench.advance(10_000)
    assert error_of(other.beat()) is ErrorCode.NONE
    assert other.numbers == [0, 1, 2, 3]


def test_a_static_member_that_stays_away_is_removed():
    bench = consumers()
    one, two = Consumer(bench, "a", instance_id="i"), Consumer(bench, "b")
    settle(one, two)
    one.leave(-2)
    for _ in range(3):
        bench.advance(4_000)
        two.beat()
    two.beat()
    assert two.numbers == [0, 1, 2, 3]


def test_an_unknown_instance_is_told_so():
    bench = consumers()
    settle(Consumer(bench, "a"))
    answer = bench.ask(beating("a", 1, instance_id="i"))
    assert error_of(answer) is ErrorCode.UNKNOWN_MEMBER_ID


# Expressions


def test_an_expression_stands_for_what_it_matches():
    bench = GroupBench(topics=Topics(t1=1, t2=1, u=5))
    member = Consumer(bench, "a", topics=None, regex="t.*")
    member.beat()
    assert len(member.owned) == 2
    bench.advance(2_000)
    bench.topics.set("t3", 4)
    member.beat()
    assert (len(member.owned), member.epoch) == (6, 2)
    bench.topics.set("t1", 0)
    bench.advance(1_000)
    settle(member, rounds=2)
    assert len(member.owned) == 5


def test_names_and_an_expression_add_up_and_one_that_is_gone_leaves_no_record():
    bench = GroupBench(topics=Topics(t1=1, u=5))
    member = Consumer(bench, "a", topics=("u",), regex="t.*")
    member.beat()
    assert len(member.owned) == 6
    member.beat(regex="")
    assert len(member.beat().assignment or ()) == 0 or len(member.owned) == 5
    assert bench.machine.groups.image.consumers["g"].regexes == {}


def test_topics_are_matched_no_more_than_once_a_second():
    bench = GroupBench(topics=Topics(t1=1))
    member = Consumer(bench, "a", topics=None, regex="t.*")
    settle(member)
    for number in range(2, 5):
        bench.topics.set(f"t{number}", 1)
        member.beat()
    assert len(member.owned) == 1
    bench.advance(1_000)
    member.beat()
    assert len(member.owned) == 4


# Topics


def test_partitions_that_a_topic_gains_are_given_out():
    bench = consumers()
    member = Consumer(bench, "a")
    settle(member)
    bench.topics.set("t", 7)
    member.beat()
    assert (member.numbers, member.epoch) == ([0, 1, 2, 3, 4, 5, 6], 2)


def test_a_deleted_topic_is_nobodys():
    bench = GroupBench(topics=Topics(t=2, u=2))
    member = Consumer(bench, "a", topics=("t", "u"))
    settle(member)
    bench.topics.set("t", 0)
    settle(member, rounds=2)
    assert len(member.owned) == 2


def test_other_changes_of_metadata_change_nothing():
    bench = consumers()
    member = Consumer(bench, "a")
    settle(member)
    bench.topics.set("other", 7)
    written = len(bench.committed)
    member.beat()
    assert (member.epoch, len(bench.committed)) == (1, written)


# Failover


def test_the_next_coordinator_knows_everything():
    bench = consumers()
    members = [Consumer(bench, each, instance_id=f"i{each}") for each in "abc"]
    settle(*members)
    before = described(bench)
    after = bench.move()
    assert described(after) == before
    for member in members:
        member.bench = after
        assert member.beat(owned=None).assignment is None


def test_what_is_not_committed_is_told_to_nobody():
    bench = consumers()
    bench.holds = True
    waiter = bench.begin(beating("a"))
    assert waiter not in bench.answers
    bench.commit()
    assert bench.answers[waiter].epoch == 1


def test_what_cannot_be_written_changes_nothing():
    bench = consumers()
    bench.refuses = Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert error_of(bench.ask(beating("a"))) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.refuses = None
    assert error_of(described(bench)) is ErrorCode.GROUP_ID_NOT_FOUND
    member = Consumer(bench, "a")
    member.beat()
    bench.topics.set("t", 5)
    bench.refuses = Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert error_of(member.beat()) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.refuses = None
    member.beat()
    assert len(member.owned) == 5, "topics that have changed are looked at again"
