"""Offsets committed in transactions (T20 to T22 of docs/spec/transactions.md)."""

from __future__ import annotations

import pytest

from cotidal.core.groups.asks import (
    DeleteGroup,
    DeleteOffsets,
    FetchOffsets,
    ForgetTopics,
    GroupDeleted,
    ListGroups,
)
from cotidal.errors import ErrorCode, Refusal
from cotidal.values import TopicPartition, Uuid
from group_bench import RULES, GroupBench, committing, in_transaction

PLACE = TopicPartition("t", 0)


def pend(bench: GroupBench, offset: int, producer_id: int = 7, **fields) -> ErrorCode:
    return bench.commit_offset(offset, transaction=in_transaction(producer_id), **fields)


def stable(bench: GroupBench, *partitions: TopicPartition) -> list[int | ErrorCode | None]:
    """What somebody is told who may not be told of what is open."""
    asked = FetchOffsets("g", partitions or (PLACE,), require_stable=True)
    return [
        value.error if isinstance(value, Refusal) else value and value.offset
        for _, value in bench.ask(asked).offsets
    ]


@pytest.mark.parametrize("moves", [False, True], ids=["stays", "moves"])
@pytest.mark.parametrize("committed", [False, True], ids=["abort", "commit"])
def test_what_is_pending_counts_when_its_transaction_is_committed(moves, committed):
    bench = GroupBench()
    bench.commit_offset(5)
    assert pend(bench, 8) is ErrorCode.NONE
    if moves:
        bench = bench.move()
    assert bench.offset() == 5
    assert stable(bench) == [ErrorCode.UNSTABLE_OFFSET_COMMIT]
    bench.end(7, committed=committed)
    if moves:
        bench = bench.move()
    assert stable(bench) == [bench.offset()] == [8 if committed else 5]


def test_other_partitions_and_other_producers_ends_are_of_no_concern():
    bench = GroupBench()
    pend(bench, 8)
    bench.end(8)
    other = TopicPartition("t", 1)
    assert stable(bench, PLACE, other) == [ErrorCode.UNSTABLE_OFFSET_COMMIT, None]
    found = bench.ask(FetchOffsets("g", None, require_stable=True)).offsets
    assert found == (), "it has none that could be told"


def test_the_commit_that_was_written_last_counts_whichever_transaction_ends_first():
    bench = GroupBench()
    pend(bench, 10, producer_id=1)
    pend(bench, 20, producer_id=2)
    bench.end(2)
    assert stable(bench) == [ErrorCode.UNSTABLE_OFFSET_COMMIT], "one is open still"
    bench.end(1)
    assert stable(bench) == [20]

    bench = GroupBench()
    pend(bench, 10, producer_id=1)
    pend(bench, 20, producer_id=2)
    bench.end(1)
    assert bench.offset() == 10
    bench.end(2)
    assert bench.offset() == 20


def test_a_later_commit_in_the_same_transaction_takes_the_place_of_the_earlier():
    bench = GroupBench()
    pend(bench, 10, producer_id=1)
    pend(bench, 20, producer_id=2)
    pend(bench, 30, producer_id=1)
    bench.end(1)
    bench.end(2)
    assert bench.offset() == 30


def test_a_commit_outside_of_transactions_overtakes_what_was_pending():
    bench = GroupBench()
    pend(bench, 10)
    bench.commit_offset(3)
    assert stable(bench) == [ErrorCode.UNSTABLE_OFFSET_COMMIT]
    bench.end(7)
    assert stable(bench) == [3]


def test_who_may_commit_in_a_transaction():
    bench = GroupBench()
    (member,) = bench.stable()
    assert pend(bench, 1) is ErrorCode.NONE, "clients from before KIP-447 do not say who they are"
    assert pend(bench, 1, joined=member) is ErrorCode.NONE
    stale = member._replace(generation=member.generation - 1)
    assert pend(bench, 1, joined=stale) is ErrorCode.ILLEGAL_GENERATION
    ghost = member._replace(member_id="x")
    assert pend(bench, 1, joined=ghost) is ErrorCode.UNKNOWN_MEMBER_ID
    assert pend(bench, 1, joined=member, instance_id="i") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_may_commit_in_a_transaction_before_it_knows_what_is_its_own():
    bench = GroupBench()
    waiting = bench.join_new()
    bench.advance(1)
    joined = bench.answers[waiting]
    assert bench.commit_offset(1, joined=joined) is ErrorCode.REBALANCE_IN_PROGRESS
    assert pend(bench, 1, joined=joined) is ErrorCode.NONE


def test_a_commit_in_a_transaction_keeps_nobody_alive():
    bench = GroupBench()
    (member,) = bench.stable()
    bench.advance(9_000)
    pend(bench, 1, joined=member)
    bench.advance(2_000)
    assert bench.beat(member) is ErrorCode.UNKNOWN_MEMBER_ID


def test_nothing_expires_while_a_transaction_may_replace_it():
    bench = GroupBench()
    bench.commit_offset(5)
    pend(bench, 8)
    bench.advance(RULES.retention_ms + RULES.expiry_interval_ms)
    assert bench.offset() == 5
    bench.end(7, committed=False)
    bench.advance(RULES.expiry_interval_ms)
    assert bench.offset() is None


def test_a_group_that_was_left_is_kept_while_a_transaction_may_give_it_offsets():
    bench = GroupBench()
    (member,) = bench.stable()
    pend(bench, 8, joined=member)
    bench.leave(member.member_id)
    bench.advance(RULES.retention_ms + RULES.expiry_interval_ms)
    assert bench.state() == "Empty"
    bench.end(7, committed=False)
    bench.advance(RULES.expiry_interval_ms)
    assert bench.state() is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_that_has_pending_offsets_alone_is_there():
    bench = GroupBench()
    pend(bench, 8)
    assert bench.state() == "Empty"
    assert [each.group_id for each in bench.ask(ListGroups()).groups] == ["g"]


@pytest.mark.parametrize("earlier", [False, True], ids=["pending alone", "committed too"])
def test_what_is_deleted_does_not_come_back_with_the_end_of_a_transaction(earlier):
    for delete in (
        DeleteOffsets("g", (PLACE,)),
        DeleteGroup("g"),
        ForgetTopics((Uuid(b"i" * 16),)),
    ):
        bench = GroupBench()
        commit = committing(8, transaction=in_transaction())
        commit = commit._replace(commits=(commit.commits[0]._replace(topic_id=Uuid(b"i" * 16)),))
        if earlier:
            bench.ask(commit._replace(transaction=None))
        bench.ask(commit)
        bench.begin(delete)
        bench.end(7)
        assert stable(bench) == [None], delete
        assert stable(bench.move()) == [None], delete


def test_a_group_with_pending_offsets_is_deleted_as_any_other():
    bench = GroupBench()
    pend(bench, 8)
    assert bench.ask(DeleteGroup("g")) == GroupDeleted()
    assert bench.state() is ErrorCode.GROUP_ID_NOT_FOUND
