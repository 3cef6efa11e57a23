"""Committed offsets (rules O and E of docs/spec/groups.md)."""

from __future__ import annotations

import pytest

from cotidal.core.coordinator import KeyedRecord, Write
from cotidal.core.groups.asks import (
    DeleteGroup,
    DeleteOffsets,
    FetchOffsets,
    ForgetTopics,
    GroupDeleted,
    GroupListed,
    ListGroups,
    Protocol,
)
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.group import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
)
from cotidal.values import TopicPartition, Uuid
from cotidal.wire.record_framing import encode_value
from group_bench import RULES, GroupBench, committing, join, subscription


def test_a_member_commits_and_finds_it_again_wherever_the_coordinator_is():
    bench = GroupBench()
    (member,) = bench.stable()
    assert bench.commit_offset(5, joined=member, metadata="note") is ErrorCode.NONE
    assert bench.offset() == 5
    assert bench.move().offset() == 5
    assert bench.offset(partition=1) is None


def test_all_offsets_of_a_group_are_found():
    bench = GroupBench()
    bench.commit_offset(1)
    bench.commit_offset(2, topic="u", partition=3)
    found = bench.ask(FetchOffsets("g", None)).offsets
    assert {partition: value.offset for partition, value in found} == {("t", 0): 1, ("u", 3): 2}


def test_a_commit_is_told_when_it_is_committed():
    bench = GroupBench()
    bench.holds = True
    waiter = bench.begin(committing(5))
    assert waiter not in bench.answers
    bench.commit()
    assert bench.answers[waiter].errors == (ErrorCode.NONE,)


def test_who_may_commit():
    bench = GroupBench()
    (member,) = bench.stable()
    assert bench.commit_offset(1) is ErrorCode.UNKNOWN_MEMBER_ID
    stale = member._replace(generation=0)
    assert bench.commit_offset(1, joined=stale) is ErrorCode.ILLEGAL_GENERATION
    ghost = member._replace(member_id="x")
    assert bench.commit_offset(1, joined=ghost) is ErrorCode.UNKNOWN_MEMBER_ID
    fenced = bench.commit_offset(1, joined=member, instance_id="i")
    assert fenced is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.offset() is None


@pytest.mark.parametrize("error", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND])
def test_a_member_of_a_group_that_is_not_there_is_told_in_the_words_of_its_version(error):
    bench = GroupBench()
    assert bench.commit_offset(1, generation=3, without_group=error) is error


def test_members_may_commit_while_the_others_join_but_not_before_they_know_what_is_theirs():
    bench = GroupBench()
    (member,) = bench.stable()
    new = bench.join_new()
    assert bench.commit_offset(1, joined=member) is ErrorCode.NONE
    again = bench.joining(member.member_id)
    joined = bench.answers[again]
    assert bench.commit_offset(2, joined=joined) is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.answers[new].generation == joined.generation


def test_a_commit_keeps_a_member_alive():
    bench = GroupBench()
    (member,) = bench.stable()
    for offset in range(5):
        bench.advance(9_000)
        assert bench.commit_offset(offset, joined=member) is ErrorCode.NONE


def test_texts_that_are_too_long_are_refused_alone():
    bench = GroupBench()
    long = committing(1, metadata="x" * 65).commits[0]
    good = committing(2, partition=1).commits[0]
    answer = bench.ask(committing(0, commits=(long, good)))
    assert answer.errors == (ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE)
    assert (bench.offset(0), bench.offset(1)) == (None, 2)


def test_a_commit_that_cannot_be_written_is_refused_and_not_found():
    bench = GroupBench()
    bench.refuses = Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert bench.commit_offset(5) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.offset() is None


# Expiry


def test_offsets_of_an_empty_group_expire_after_it_became_empty():
    bench = GroupBench()
    (member,) = bench.stable()
    bench.commit_offset(5, joined=member)
    for _ in range(30):
        bench.advance(9_000)
        assert bench.beat(member) is ErrorCode.NONE
    bench.leave(member.member_id)
    bench.advance(RULES.retention_ms - 1)
    assert bench.offset() == 5
    bench.advance(RULES.expiry_interval_ms + 1)
    assert bench.offset() is None
    assert bench.state() is ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.move().state() is ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_a_simple_group_expire_after_they_were_committed():
    bench = GroupBench()
    bench.commit_offset(5)
    bench.advance(60_000)
    bench.commit_offset(6, partition=1)
    bench.advance(60_000)
    assert (bench.offset(0), bench.offset(1)) == (None, 6)


def test_an_expiry_of_its_own_counts():
    bench = GroupBench()
    bench.commit_offset(5, retention_ms=5_000)
    bench.advance(RULES.expiry_interval_ms + 1)
    assert bench.offset() is None


def test_an_expiry_past_the_end_of_time_is_the_end_of_time():
    bench = GroupBench()
    bench.commit_offset(5, retention_ms=2**63 - 1)
    (record,) = bench.committed
    assert encode_value(record.value), "it can be written down"
    bench.advance(RULES.expiry_interval_ms + 1)
    assert bench.offset() == 5


def test_a_stable_group_keeps_the_offsets_of_topics_that_it_subscribes_to():
    bench = GroupBench()
    bench.commit_offset(5)
    bench.commit_offset(6, topic="u")
    (member,) = bench.stable()
    for _ in range(15):
        bench.advance(9_000)
        bench.beat(member)
    assert (bench.offset(topic="t"), bench.offset(topic="u")) == (5, None)


def test_an_empty_group_without_offsets_is_forgotten():
    bench = GroupBench()
    (member,) = bench.stable()
    bench.leave(member.member_id)
    bench.advance(RULES.expiry_interval_ms)
    assert bench.state() is ErrorCode.GROUP_ID_NOT_FOUND


# Deletion


def test_offsets_are_deleted_unless_the_group_subscribes_to_their_topic():
    bench = GroupBench()
    bench.commit_offset(5)
    bench.commit_offset(6, topic="u")
    bench.stable()
    wanted = (TopicPartition("t", 0), TopicPartition("u", 0), TopicPartition("u", 9))
    deleted = bench.ask(DeleteOffsets("g", wanted))
    subscribed = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert deleted.errors == (subscribed, ErrorCode.NONE, ErrorCode.NONE)
    assert (bench.offset(topic="t"), bench.offset(topic="u")) == (5, None)
    assert bench.move().offset(topic="u") is None


def test_offsets_of_other_groups_are_deleted_only_when_they_are_empty():
    bench = GroupBench()
    bench.stable(protocol_type="connect", protocols=(Protocol("v", b""),))
    asked = DeleteOffsets("g", (TopicPartition("t", 0),))
    assert bench.ask(asked) == Refusal(ErrorCode.NON_EMPTY_GROUP)
    assert bench.ask(asked._replace(group_id="x")) == Refusal(ErrorCode.GROUP_ID_NOT_FOUND)


def test_an_empty_group_is_deleted_with_its_offsets():
    bench = GroupBench()
    (member,) = bench.stable()
    bench.commit_offset(5, joined=member)
    assert bench.ask(DeleteGroup("g")) == Refusal(ErrorCode.NON_EMPTY_GROUP)
    bench.leave(member.member_id)
    assert bench.ask(DeleteGroup("g")) == GroupDeleted()
    for each in (bench, bench.move()):
        assert each.offset() is None
        assert each.ask(DeleteGroup("g")) == Refusal(ErrorCode.GROUP_ID_NOT_FOUND)


def test_a_group_whose_deletion_cannot_be_written_is_still_there():
    bench = GroupBench()
    (member,) = bench.stable()
    bench.leave(member.member_id)
    bench.refuses = Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert bench.ask(DeleteGroup("g")) == bench.refuses
    assert bench.state() == "Empty"


def test_offsets_in_a_deleted_topic_are_forgotten():
    bench = GroupBench()
    gone, here = Uuid(b"g" * 16), Uuid(b"h" * 16)
    for topic, topic_id in (("t", gone), ("u", here)):
        commit = committing(5, topic=topic).commits[0]._replace(topic_id=topic_id)
        bench.ask(committing(0, commits=(commit,)))
    bench.begin(ForgetTopics((gone,)))
    assert (bench.offset(topic="t"), bench.offset(topic="u")) == (None, 5)


# Telling


def test_groups_are_listed_with_their_states():
    bench = GroupBench()
    bench.commit_offset(1, group_id="simple")
    bench.stable()
    assert bench.ask(ListGroups()).groups == (
        GroupListed("g", "consumer", "Stable"),
        GroupListed("simple", "", "Empty"),
    )
    assert bench.state("simple") == "Empty"


def test_what_older_brokers_wrote_is_read_and_what_newer_ones_write_is_stepped_over():
    old = KeyedRecord(LegacyOffsetCommitKey("g", "t", 0), LegacyOffsetCommitValue(7, "m", 1))
    new = KeyedRecord(ConsumerGroupMetadataKey("n"), ConsumerGroupMetadataValue(3))
    bench = GroupBench(log=(Write((old, new), None),))
    assert bench.offset() == 7
    assert bench.state("n") is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_subscription_that_cannot_be_read_keeps_all_offsets():
    bench = GroupBench()
    bench.commit_offset(5)
    broken = subscription("t")[:7]
    (member,) = bench.stable(protocols=(Protocol("range", broken),))
    for _ in range(15):
        bench.advance(9_000)
        bench.beat(member)
    assert bench.offset() == 5
    deleted = bench.ask(DeleteOffsets("g", (TopicPartition("t", 0),)))
    assert deleted.errors == (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,)
    assert bench.ask(join("ghost")).error is ErrorCode.UNKNOWN_MEMBER_ID
