"""Rebalances: who waits for whom, and how long (rules R and A of docs/spec/groups.md)."""

from __future__ import annotations

from cotidal.core.groups.asks import Joined, JoinRefused, Protocol, Synced
from cotidal.errors import ErrorCode, Refusal
from group_bench import RULES, GroupBench, join, subscription, sync


def test_a_new_group_waits_for_more_members():
    bench = GroupBench(RULES._replace(initial_delay_ms=3_000))
    one = bench.join_new()
    bench.advance(2_000)
    two = bench.join_new()
    bench.advance(1_000)
    assert not {one, two} & bench.answers.keys(), "somebody came: the wait begins again"
    bench.advance(3_000)
    assert bench.answers[one].generation == bench.answers[two].generation == 1


def test_a_new_group_does_not_wait_for_ever():
    bench = GroupBench(RULES._replace(initial_delay_ms=3_000))
    first = bench.join_new()
    for _ in range(5):
        bench.advance(1_000)
        bench.join_new()
    assert first in bench.answers, "the rebalance time-out of 5 s has passed"


def test_a_rebalance_ends_when_all_have_joined_again():
    bench = GroupBench()
    one, two = bench.stable(2)
    three = bench.join_new()
    again = [bench.joining(one.member_id)]
    assert three not in bench.answers
    again.append(bench.joining(two.member_id))
    generations = {bench.answers[each].generation for each in (three, *again)}
    assert generations == {one.generation + 1}


def test_a_rebalance_ends_without_those_who_do_not_join_in_time():
    bench = GroupBench()
    one, two = bench.stable(2)
    three = bench.join_new()
    bench.joining(one.member_id)
    bench.advance(4_999)
    assert three not in bench.answers
    bench.advance(1)
    assert bench.answers[three].generation == one.generation + 1
    assert bench.beat(two) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leader_that_does_not_join_again_leads_no_more():
    bench = GroupBench()
    one, two = bench.stable(2)
    leader, other = (one, two) if one.leader == one.member_id else (two, one)
    bench.join_new()
    again = bench.joining(other.member_id)
    bench.advance(5_000)
    assert bench.answers[again].leader == other.member_id
    assert leader.member_id not in {each.member_id for each in bench.answers[again].members}


def test_assignments_are_handed_out_when_they_are_committed():
    bench = GroupBench()
    joins = [bench.join_new() for _ in range(2)]
    bench.advance(0)
    joined = [bench.answers[each] for each in joins]
    bench.holds = True
    assert bench.sync_all(joined) == [None, None]
    assert bench.state() == "CompletingRebalance"
    bench.commit()
    assert bench.state() == "Stable"
    for each in joined:
        told = bench.ask(sync(each))
        assert told == Synced("consumer", "range", each.member_id.encode())


def test_an_assignment_that_cannot_be_written_is_refused_and_all_join_again():
    bench = GroupBench()
    joins = [bench.join_new() for _ in range(2)]
    bench.advance(0)
    joined = [bench.answers[each] for each in joins]
    bench.refuses = Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    told = bench.sync_all(joined)
    assert told == [Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)] * 2
    assert bench.beat(joined[0]) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_of_an_assignment_that_comes_late_changes_nothing():
    bench = GroupBench()
    joins = [bench.join_new() for _ in range(2)]
    bench.advance(0)
    joined = [bench.answers[each] for each in joins]
    bench.holds = True
    bench.sync_all(joined)
    bench.join_new()
    bench.commit()
    assert bench.state() == "PreparingRebalance"
    assert bench.ask(sync(joined[0])) == Refusal(ErrorCode.REBALANCE_IN_PROGRESS)


def test_those_who_wait_for_assignments_are_told_of_a_new_rebalance():
    bench = GroupBench()
    joins = [bench.join_new() for _ in range(2)]
    bench.advance(0)
    joined = [bench.answers[each] for each in joins]
    follower = next(each for each in joined if each.leader != each.member_id)
    waiting = bench.begin(sync(follower))
    bench.join_new()
    assert bench.answers[waiting] == Refusal(ErrorCode.REBALANCE_IN_PROGRESS)


def test_members_that_never_ask_for_their_assignment_are_removed():
    bench = GroupBench()
    joins = [bench.join_new(session_timeout_ms=60_000) for _ in range(2)]
    bench.advance(0)
    joined = [bench.answers[each] for each in joins]
    leader = next(each for each in joined if each.leader == each.member_id)
    silent = next(each for each in joined if each is not leader)
    bench.begin(sync(leader))
    bench.advance(5_000)
    assert bench.beat(silent) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.beat(leader) is ErrorCode.REBALANCE_IN_PROGRESS


def test_sync_says_what_is_wrong():
    bench = GroupBench()
    (member,) = bench.stable()
    assert bench.ask(sync(member, generation=9)) == Refusal(ErrorCode.ILLEGAL_GENERATION)
    assert bench.ask(sync(member, member_id="x")) == Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
    assert bench.ask(sync(member, group_id="x")) == Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
    inconsistent = Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    assert bench.ask(sync(member, protocol="other")) == inconsistent
    assert bench.ask(sync(member, protocol_type="other")) == inconsistent
    assert isinstance(bench.ask(sync(member, protocol="range")), Synced)


def test_a_leader_that_joins_a_stable_group_again_has_it_rebalance():
    bench = GroupBench()
    (leader,) = bench.stable()
    assert bench.ask(join(leader.member_id)).generation == leader.generation + 1


def test_a_member_that_lost_its_answer_gets_it_again():
    bench = GroupBench()
    one, two = bench.stable(2)
    follower = one if one.leader != one.member_id else two
    assert bench.ask(join(follower.member_id)).generation == follower.generation
    assert bench.state() == "Stable"


def test_a_member_with_another_subscription_has_the_group_rebalance():
    bench = GroupBench()
    one, two = bench.stable(2)
    follower = one if one.leader != one.member_id else two
    bench.joining(follower.member_id, protocols=(Protocol("range", subscription("u")),))
    assert bench.state() == "PreparingRebalance"


def test_of_two_joins_of_one_member_the_later_counts():
    bench = GroupBench()
    one, _ = bench.stable(2)
    bench.join_new()
    first = bench.joining(one.member_id)
    bench.joining(one.member_id)
    assert bench.answers[first] == JoinRefused(ErrorCode.UNKNOWN_MEMBER_ID, "")


def test_a_new_member_whose_client_has_gone_is_forgotten():
    bench = GroupBench(RULES._replace(session_max_ms=10**9))
    bench.stable(2, session_timeout_ms=10**8, rebalance_timeout_ms=10**8)
    waiting = bench.join_new()
    bench.advance(300_000)
    assert bench.answers[waiting] == JoinRefused(ErrorCode.UNKNOWN_MEMBER_ID, "")


# Moving


def test_a_coordinator_that_takes_over_knows_members_and_assignments():
    bench = GroupBench()
    members = bench.stable(3)
    after = bench.move()
    assert after.state() == "Stable"
    for member in members:
        assert after.beat(member) is ErrorCode.NONE
        assert after.ask(sync(member)).assignment == member.member_id.encode()


def test_sessions_begin_anew_with_a_new_coordinator():
    bench = GroupBench()
    (member,) = bench.stable()
    bench.advance(9_999)
    after = bench.move()
    after.advance(9_999)
    assert after.beat(member) is ErrorCode.NONE
    after.advance(10_000)
    assert after.beat(member) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_generation_that_was_never_assigned_is_not_found_by_the_next_coordinator():
    bench = GroupBench()
    one, two = bench.stable(2)
    bench.joining(one.member_id, protocols=(Protocol("range", subscription("u")),))
    joined = bench.answers[bench.joining(two.member_id)]
    assert isinstance(joined, Joined)
    after = bench.move()
    assert after.beat(joined) is ErrorCode.ILLEGAL_GENERATION
    assert after.beat(two) is ErrorCode.NONE


def test_a_group_that_is_too_large_for_a_new_bound_rebalances_when_loaded():
    bench = GroupBench()
    bench.stable(3)
    bench.rules = RULES._replace(members_max=2)
    after = bench.move()
    assert after.state() == "PreparingRebalance"


def test_other_kinds_of_clients_may_form_groups():
    bench = GroupBench()
    waiter = bench.join_new(protocol_type="connect", protocols=(Protocol("v1", b"\xff"),))
    bench.advance(0)
    joined = bench.answers[waiter]
    assert (joined.protocol_type, joined.protocol) == ("connect", "v1")
