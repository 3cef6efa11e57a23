"""Offsets of consumer groups (rules O of docs/spec/groups.md)."""

from __future__ import annotations

from consumer_bench import Consumer, consumers, described, error_of, settle
from cotidal.core.groups.asks import DeleteGroup, DeleteOffsets, FetchOffsets, ListGroups
from cotidal.errors import ErrorCode
from cotidal.values import TopicPartition
from group_bench import GroupBench, Topics, committing

T0 = TopicPartition("t", 0)


def commit(bench, member_id="", epoch=-1, partition=0, **fields):
    asked = committing(5, partition=partition, **fields)
    answer = bench.ask(asked._replace(member_id=member_id, generation=epoch))
    return error_of(answer)


def fetch(bench, member_id, epoch):
    return error_of(bench.ask(FetchOffsets("g", (T0,), member_id=member_id, epoch=epoch)))


def test_a_member_commits_and_fetches_in_its_epoch():
    bench = consumers()
    member = Consumer(bench, "a")
    settle(member)
    assert commit(bench, "a", 1) is ErrorCode.NONE
    assert fetch(bench, "a", 1) is ErrorCode.NONE
    assert bench.offset() == 5
    assert commit(bench, "a", 2) is fetch(bench, "a", 2) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(bench, "b", 1) is fetch(bench, "b", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(bench) is ErrorCode.UNKNOWN_MEMBER_ID, "nobody commits from outside"
    assert commit(bench, "a", 1, knows_epochs=False) is ErrorCode.UNSUPPORTED_VERSION


def test_one_that_has_not_heard_of_its_epoch_commits_what_it_held_before():
    bench = consumers()
    member = Consumer(bench, "a")
    settle(member)
    bench.topics.set("t", 5)
    settle(member)
    assert member.epoch == 2
    assert commit(bench, "a", 1, partition=0) is ErrorCode.NONE
    assert commit(bench, "a", 1, partition=4) is ErrorCode.STALE_MEMBER_EPOCH, "since epoch 2"
    assert commit(bench, "a", 1, partition=7) is ErrorCode.STALE_MEMBER_EPOCH
    assert fetch(bench, "a", 1) is ErrorCode.STALE_MEMBER_EPOCH


def test_what_is_to_be_given_up_can_still_be_committed():
    bench = consumers()
    one, two = Consumer(bench, "a"), Consumer(bench, "b")
    settle(one)
    two.beat()
    had = one.numbers
    one.beat()
    for partition in had:
        assert commit(bench, "a", 1, partition=partition) is ErrorCode.NONE


def test_anybody_commits_while_nobody_is_in_the_group():
    bench = consumers()
    member = Consumer(bench, "a")
    settle(member)
    member.leave()
    assert commit(bench) is ErrorCode.NONE


def test_offsets_of_topics_that_somebody_subscribes_to_are_not_deleted():
    bench = GroupBench(topics=Topics(t=1, u=1))
    member = Consumer(bench, "a")
    settle(member)
    commit(bench, "a", 1)
    deleted = bench.ask(DeleteOffsets("g", (T0, TopicPartition("u", 0))))
    assert deleted.errors == (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE)
    member.leave()
    assert bench.ask(DeleteOffsets("g", (T0,))).errors == (ErrorCode.NONE,)
    assert bench.offset() is None


def test_a_group_is_deleted_when_it_is_empty_and_nothing_is_left():
    bench = consumers()
    member = Consumer(bench, "a", topics=("t",), regex="t")
    settle(member)
    commit(bench, "a", 1)
    assert error_of(bench.ask(DeleteGroup("g"))) is ErrorCode.NON_EMPTY_GROUP
    member.leave()
    assert error_of(bench.ask(DeleteGroup("g"))) is ErrorCode.NONE
    after = bench.move()
    assert error_of(described(after)) is ErrorCode.GROUP_ID_NOT_FOUND
    assert after.ask(ListGroups()).groups == ()
    left = {record.key: record.value for record in bench.committed}
    assert set(left.values()) == {None}, "a tombstone for everything that was written"


def test_offsets_expire_when_nobody_subscribes_and_the_empty_group_with_them():
    bench = consumers()
    member = Consumer(bench, "a")
    settle(member)
    commit(bench, "a", 1)
    for _ in range(30):
        bench.advance(5_000)
        member.beat()
    assert bench.offset() == 5
    member.leave()
    bench.advance(20_000)
    assert bench.offset() is None
    assert error_of(described(bench)) is ErrorCode.GROUP_ID_NOT_FOUND


def test_groups_are_listed_with_their_kind():
    bench = consumers()
    settle(Consumer(bench, "a"))
    (listed,) = bench.ask(ListGroups()).groups
    assert listed == ("g", "consumer", "Stable", "consumer")
    assert bench.state() is ErrorCode.GROUP_ID_NOT_FOUND, "it is not a classic group"
