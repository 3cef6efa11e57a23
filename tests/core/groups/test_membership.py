"""Joining, heartbeating and leaving (rules J and M of docs/spec/groups.md)."""

from __future__ import annotations

import pytest

from cotidal.core.groups.asks import (
    Beat,
    Joined,
    JoinRefused,
    Leave,
    Leaver,
    Left,
    Protocol,
)
from cotidal.errors import ErrorCode, Refusal
from group_bench import RULES, GroupBench, join, subscription, sync


def test_a_new_member_is_given_its_id_before_it_joins():
    bench = GroupBench()
    given = bench.ask(join())
    assert given.error is ErrorCode.MEMBER_ID_REQUIRED
    assert given.member_id.startswith("c-")
    waiter = bench.joining(given.member_id)
    bench.advance(0)
    assert bench.answers[waiter].member_id == given.member_id


def test_older_clients_join_at_once():
    bench = GroupBench()
    waiter = bench.joining(takes_member_id=False)
    bench.advance(0)
    answer = bench.answers[waiter]
    assert isinstance(answer, Joined)
    assert answer.leader == answer.member_id
    assert answer.generation == 1


def test_the_leader_alone_learns_who_the_members_are():
    bench = GroupBench()
    one, two = bench.stable(2)
    leader, other = (one, two) if one.leader == one.member_id else (two, one)
    assert {each.member_id for each in leader.members} == {one.member_id, two.member_id}
    assert all(each.metadata == subscription("t") for each in leader.members)
    assert other.members == ()


@pytest.mark.parametrize("timeout_ms", [RULES.session_min_ms - 1, RULES.session_max_ms + 1])
def test_a_session_out_of_bounds_is_refused(timeout_ms):
    answer = GroupBench().ask(join(session_timeout_ms=timeout_ms))
    assert answer.error is ErrorCode.INVALID_SESSION_TIMEOUT


def test_a_member_of_a_group_that_is_not_there_is_unknown_and_leaves_no_group_behind():
    bench = GroupBench()
    assert bench.ask(join("ghost")).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.state() is ErrorCode.GROUP_ID_NOT_FOUND


def test_an_unknown_member_is_refused():
    bench = GroupBench()
    bench.stable()
    assert bench.ask(join("ghost")).error is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    "fields",
    [
        {"protocol_type": "connect"},
        {"protocols": (Protocol("sticky", b""),)},
        {"protocols": ()},
    ],
)
def test_protocols_that_the_others_do_not_have_are_refused(fields):
    bench = GroupBench()
    bench.stable()
    assert bench.ask(join(**fields)).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_group_needs_a_protocol():
    assert GroupBench().ask(join(protocols=())).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_protocol_that_all_have_and_most_like_is_chosen():
    bench = GroupBench()
    a, b, c = (Protocol(name, name.encode()) for name in "abc")
    joins = [bench.join_new(protocols=liked) for liked in ((a, b, c), (b, c), (c, b))]
    bench.advance(0)
    told = {bench.answers[each].protocol for each in joins}
    assert told == {"b"}
    (leader,) = [bench.answers[each] for each in joins if bench.answers[each].members]
    assert [each.metadata for each in leader.members] == [b"b", b"b", b"b"]


def test_a_full_group_takes_nobody_more():
    bench = GroupBench(RULES._replace(members_max=2))
    bench.stable(2)
    assert bench.ask(join()).error is ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.plain
def test_a_storm_of_joins_is_bounded_and_passes_with_its_sessions(monkeypatch):
    """Ids are asked for, and nobody ever joins with one."""
    monkeypatch.setattr("cotidal.core.groups.membership.GROUP_PENDING_MAX", 5)
    bench = GroupBench()
    errors = [bench.ask(join()).error for _ in range(7)]
    assert errors == [ErrorCode.MEMBER_ID_REQUIRED] * 5 + [ErrorCode.GROUP_MAX_SIZE_REACHED] * 2
    bench.advance(join().session_timeout_ms)
    assert bench.ask(join()).error is ErrorCode.MEMBER_ID_REQUIRED


@pytest.mark.plain
def test_groups_of_ever_new_names_are_bounded_and_go_when_nobody_joins(monkeypatch):
    monkeypatch.setattr("cotidal.core.groups.membership.GROUPS_MAX", 3)
    bench = GroupBench()
    errors = [bench.ask(join(group_id=f"g{number}")).error for number in range(5)]
    assert errors == [ErrorCode.MEMBER_ID_REQUIRED] * 3 + [ErrorCode.GROUP_MAX_SIZE_REACHED] * 2
    bench.advance(join().session_timeout_ms)
    assert bench.ask(join(group_id="g9")).error is ErrorCode.MEMBER_ID_REQUIRED


def test_heartbeats_say_what_is_wrong():
    bench = GroupBench()
    assert bench.ask(Beat("g", 1, "x", None)) == Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
    (member,) = bench.stable()
    assert bench.beat(member) is ErrorCode.NONE
    assert bench.beat(member, generation=7) is ErrorCode.ILLEGAL_GENERATION
    assert bench.beat(member, member_id="x") is ErrorCode.UNKNOWN_MEMBER_ID
    bench.join_new()
    assert bench.beat(member) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_stays_silent_is_removed_and_the_others_rebalance():
    bench = GroupBench()
    one, two = bench.stable(2)
    for _ in range(3):
        bench.advance(4_000)
        answer = bench.beat(one)
    assert answer is ErrorCode.REBALANCE_IN_PROGRESS
    again = bench.joining(one.member_id)
    assert bench.answers[again].generation == one.generation + 1
    assert bench.beat(two) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_heartbeats_in_time_stays():
    bench = GroupBench()
    (member,) = bench.stable()
    for _ in range(20):
        bench.advance(9_000)
        assert bench.beat(member) is ErrorCode.NONE
    assert bench.state() == "Stable"


def test_members_leave_and_the_last_one_leaves_an_empty_group():
    bench = GroupBench()
    one, two = bench.stable(2)
    assert bench.leave(one.member_id) == Left((ErrorCode.NONE,))
    assert bench.beat(two) is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.leave(two.member_id, "ghost") == Left(
        (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID)
    )
    assert bench.state() == "Empty"
    assert bench.move().state() == "Empty"


def test_whoever_was_given_an_id_and_never_joins_leaves_no_trace():
    bench = GroupBench()
    given = bench.ask(join())
    assert bench.state() == "Empty"
    bench.advance(10_000)
    assert bench.ask(join(given.member_id)).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.state() is ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.committed == []


def test_an_id_that_was_given_can_be_given_back():
    bench = GroupBench()
    given = bench.ask(join())
    assert bench.leave(given.member_id) == Left((ErrorCode.NONE,))
    assert bench.state() is ErrorCode.GROUP_ID_NOT_FOUND


def test_leaving_a_group_that_is_not_there_is_refused():
    assert GroupBench().leave("x") == Refusal(ErrorCode.UNKNOWN_MEMBER_ID)


# Static members


def static(bench: GroupBench, instance_id: str = "i") -> Joined:
    waiter = bench.joining(instance_id=instance_id)
    bench.advance(0)
    joined = bench.answers[waiter]
    assert isinstance(joined, Joined)
    bench.begin(sync(joined, assignments=((joined.member_id, b"mine"),)))
    return joined


def test_a_static_member_that_comes_back_takes_its_place_without_a_rebalance():
    bench = GroupBench()
    before = static(bench)
    assert before.member_id.startswith("i-")
    after = bench.ask(join(instance_id="i"))
    assert after.generation == before.generation
    assert after.member_id != before.member_id
    assert after.skip_assignment, "it leads, and there is nothing to assign"
    assert bench.ask(sync(after, instance_id="i")).assignment == b"mine"
    assert bench.state() == "Stable"


def test_older_static_leaders_are_not_told_that_they_may_skip():
    bench = GroupBench()
    static(bench)
    assert not bench.ask(join(instance_id="i", may_skip_assignment=False)).skip_assignment


def test_the_old_life_of_a_static_member_is_fenced():
    bench = GroupBench()
    before = static(bench)
    bench.ask(join(instance_id="i"))
    assert bench.beat(before, instance_id="i") is ErrorCode.FENCED_INSTANCE_ID
    assert bench.beat(before) is ErrorCode.UNKNOWN_MEMBER_ID
    refused = bench.ask(join(before.member_id, instance_id="i"))
    assert refused.error is ErrorCode.FENCED_INSTANCE_ID
    (error,) = bench.ask(Leave("g", (Leaver(before.member_id, "i"),))).errors
    assert error is ErrorCode.FENCED_INSTANCE_ID


def test_the_new_life_of_a_static_member_is_told_when_it_is_committed():
    bench = GroupBench()
    static(bench)
    bench.holds = True
    waiter = bench.joining(instance_id="i")
    assert waiter not in bench.answers
    bench.commit()
    after = bench.answers[waiter]
    assert bench.move().beat(after, instance_id="i") is ErrorCode.NONE


@pytest.mark.parametrize("refusal", [None, Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)])
def test_a_new_life_has_a_session_from_its_answer_on_however_late_that_comes(refusal):
    bench = GroupBench()
    static(bench)
    bench.holds = True
    bench.joining(instance_id="i")
    bench.advance(RULES.session_max_ms)
    bench.refuses = refusal
    bench.commit()
    bench.holds, bench.refuses = False, None
    assert bench.state() == "Stable"
    bench.advance(RULES.session_max_ms)
    assert bench.state() is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_new_life_that_cannot_be_written_is_refused_and_can_try_again():
    bench = GroupBench()
    static(bench)
    bench.refuses = Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    refused = bench.ask(join(instance_id="i"))
    assert refused == JoinRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    bench.refuses = None
    assert isinstance(bench.ask(join(instance_id="i")), Joined)


def test_an_operator_removes_a_static_member_by_its_instance():
    bench = GroupBench()
    static(bench)
    left = bench.ask(Leave("g", (Leaver("", "i"), Leaver("", "other"), Leaver("", None))))
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert left.errors == (ErrorCode.NONE, unknown, unknown)
    assert bench.state() == "Empty"


def test_a_static_member_that_is_away_stays_through_a_rebalance_until_its_session_is_over():
    bench = GroupBench()
    away = static(bench)
    other = bench.join_new()
    bench.advance(5_000)
    joined = bench.answers[other]
    assert {each.member_id for each in joined.members} == {away.member_id, joined.member_id}
    assert joined.leader == joined.member_id, "whoever leads must be there"


def test_a_static_member_that_changes_the_protocol_causes_a_rebalance():
    bench = GroupBench()
    static(bench)
    same = (Protocol("range", b""), Protocol("sticky", b""))
    assert bench.answers[bench.joining(instance_id="i", protocols=same)].generation == 1
    other = (Protocol("sticky", b""), Protocol("range", b""))
    answer = bench.answers[bench.joining(instance_id="i", protocols=other)]
    assert (answer.generation, answer.protocol) == (2, "sticky")
