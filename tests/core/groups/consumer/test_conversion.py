"""Groups change their protocol while their members go on (rules U of docs/spec/groups.md)."""

from __future__ import annotations

from typing import Any

from consumer_bench import Consumer, beating, consumers, described, error_of, settle
from cotidal.core.groups.asks import Beat, Joined, JoinRefused, Protocol, Synced
from cotidal.core.groups.state import ConsumerRules
from cotidal.core.groups.subscription import (
    Subscription,
    read_assignment,
    read_subscription,
    write_assignment,
)
from cotidal.errors import ErrorCode, Refusal
from cotidal.values import TopicPartition
from group_bench import RULES, GroupBench, join, subscription, sync


def said(*owned: int) -> bytes:
    """What a cooperative consumer says of a topic ``t``, in the second version."""
    first = b"\x00\x01" + subscription("t")[2:]
    numbers = b"".join(each.to_bytes(4, "big") for each in owned)
    partitions = b"\x00\x01t" + len(owned).to_bytes(4, "big") + numbers
    return first + (1 if owned else 0).to_bytes(4, "big") + (partitions if owned else b"")


class Classic:
    """A member of the classic protocol, cooperative: it keeps what it has while it joins again."""

    def __init__(self, bench: GroupBench, **fields: Any) -> None:
        self.bench = bench
        self.fields = fields
        self.id = ""
        self.generation = -1
        self.owned: list[int] = []
        self.waiter = 0

    def join(self) -> None:
        protocols = (Protocol("cooperative-sticky", said(*self.owned)),)
        fields = {"protocols": protocols, **self.fields}
        if not self.id:
            self.id = self.bench.ask(join("", **fields)).member_id
        self.waiter = self.bench.joining(self.id, **fields)

    def sync(self, *given: tuple[str, bytes]) -> Any:
        joined = self.bench.answers[self.waiter]
        assert isinstance(joined, Joined), joined
        self.generation = joined.generation
        waiter = self.bench.begin(sync(joined, assignments=given))
        return self.bench.answers.get(waiter)

    def rejoin(self) -> Any:
        """Join and sync in a group of the consumer protocol; the answer to the latter."""
        self.join()
        answer = self.sync()
        if isinstance(answer, Synced):
            self.owned = [partition for _, partition in read_assignment(answer.assignment)]
        return answer

    def beat(self) -> ErrorCode:
        return error_of(self.bench.ask(Beat("g", self.generation, self.id, None)))

    def live(self) -> None:
        """As a client does: heartbeat, and join again when that is asked."""
        if self.beat() is ErrorCode.REBALANCE_IN_PROGRESS:
            self.rejoin()


def classic_group(bench: GroupBench) -> Classic:
    """One member, that has the four partitions of ``t``."""
    member = Classic(bench)
    member.join()
    bench.advance(0)
    mine = write_assignment(1, [TopicPartition("t", each) for each in range(4)])
    member.sync((member.id, mine))
    member.owned = [0, 1, 2, 3]
    assert member.beat() is ErrorCode.NONE
    return member


def upgraded() -> tuple[GroupBench, Classic, Consumer]:
    bench = consumers()
    old, new = classic_group(bench), Consumer(bench, "new")
    answer = new.beat()
    assert (answer.epoch, new.owned) == (2, ()), "everything is the old one's"
    return bench, old, new


def test_a_consumer_that_joins_upgrades_the_group_and_nobody_loses_anything():
    bench, old, new = upgraded()
    told = described(bench)
    assert (told.state, told.epoch) == ("Reconciling", 2)
    assert [len(each.assignment) for each in told.members] == [4, 0]
    assert [each.is_classic for each in told.members] == [True, False]
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert new.beat().assignment is None
    assert isinstance(old.rejoin(), Synced)
    assert len(old.owned) == 2
    assert new.beat().assignment is None, "it has not said yet that it gave up the rest"
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS, "to say so"
    old.rejoin()
    assert old.beat() is ErrorCode.NONE
    assert len(new.beat().assignment) == 2
    assert sorted(old.owned + new.numbers) == [0, 1, 2, 3]
    assert described(bench).state == "Stable"


def test_what_a_member_waits_for_makes_it_join_again():
    bench, old, new = upgraded()
    for _ in range(4):
        old.live()
        new.beat()
    new.leave()
    other = Consumer(bench, "other")
    other.beat()
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    old.live()
    other.beat()
    assert old.beat() is ErrorCode.NONE
    assert sorted(old.owned + other.numbers) == [0, 1, 2, 3]


def test_an_eager_member_gives_up_everything_as_it_joins():
    _, old, new = upgraded()
    old.owned = []
    old.rejoin()
    assert len(old.owned) == 2
    assert len(new.beat().assignment) == 2


def test_the_last_consumer_that_leaves_makes_it_a_classic_group():
    bench, old, new = upgraded()
    for _ in range(4):
        old.live()
        new.beat()
    other = Classic(bench)
    other.rejoin()
    generation = described(bench).epoch
    new.leave()
    assert bench.state() == "PreparingRebalance"
    assert error_of(described(bench)) is ErrorCode.GROUP_ID_NOT_FOUND
    old.join()
    other.join()
    answers = [bench.answers[each.waiter] for each in (old, other)]
    assert {each.generation for each in answers} == {generation + 1}
    assert {each.leader for each in answers} <= {old.id, other.id}
    left = {record.key: record.value for record in bench.committed if "Consumer" in str(record.key)}
    assert set(left.values()) == {None}


def test_a_consumer_whose_session_ends_downgrades_too_and_the_next_coordinator_knows():
    bench, old, new = upgraded()
    for _ in range(4):
        old.live()
        new.beat()
    for _ in range(3):
        bench.advance(4_000)
        old.beat()
    assert bench.state() == "PreparingRebalance"
    after = bench.move()
    assert after.state() == "Stable", "with what was last written"


def test_no_downgrade_where_the_policy_has_none():
    bench = consumers(rules=RULES._replace(consumers=ConsumerRules(downgrades=False)))
    old, new = classic_group(bench), Consumer(bench, "new")
    new.beat()
    new.leave()
    assert error_of(described(bench)) is ErrorCode.NONE
    old.live()
    old.live()
    assert old.owned == [0, 1, 2, 3]


def test_no_upgrade_where_the_policy_has_none():
    bench = consumers(rules=RULES._replace(consumers=ConsumerRules(upgrades=False)))
    old = classic_group(bench)
    refused = bench.ask(beating("new"))
    assert error_of(refused) is ErrorCode.GROUP_ID_NOT_FOUND
    assert "migration.policy" in refused.text
    assert old.beat() is ErrorCode.NONE


def test_no_upgrade_of_what_is_not_a_group_of_consumers():
    bench = consumers()
    bench.stable(protocol_type="connect", protocols=(Protocol("x", b""),))
    assert error_of(bench.ask(beating("new"))) is ErrorCode.GROUP_ID_NOT_FOUND


def test_an_upgrade_in_the_middle_of_a_rebalance_sends_everybody_back():
    bench = consumers()
    old = classic_group(bench)
    late = Classic(bench)
    late.join()
    assert late.waiter not in bench.answers, "it waits for the other to join"
    Consumer(bench, "new").beat()
    assert bench.answers[late.waiter] == JoinRefused(ErrorCode.REBALANCE_IN_PROGRESS, "")
    assert isinstance(late.rejoin(), Synced)
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_an_upgrade_that_cannot_be_written_leaves_the_classic_group():
    bench = consumers()
    old = classic_group(bench)
    bench.refuses = Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert error_of(bench.ask(beating("new"))) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.refuses = None
    assert old.beat() is ErrorCode.NONE
    assert bench.state() == "Stable"


def test_the_next_coordinator_goes_on_with_a_group_of_both_kinds():
    bench, old, new = upgraded()
    old.live()
    old.bench = new.bench = after = bench.move()
    for _ in range(4):
        old.live()
        new.beat()
    assert sorted(old.owned + new.numbers) == [0, 1, 2, 3]
    assert described(after).state == "Stable"


def test_a_classic_member_that_does_not_join_again_in_time_is_removed():
    bench, old, new = upgraded()
    for _ in range(4):
        assert old.beat() in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID)
        new.beat()
        bench.advance(1_500)
    assert old.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    new.beat()
    assert new.numbers == [0, 1, 2, 3]


def test_a_classic_member_that_joins_and_never_asks_for_its_assignment_is_removed():
    bench, old, new = upgraded()
    old.join()
    for _ in range(4):
        new.beat()
        bench.advance(1_500)
    assert [each.member_id for each in described(bench).members] == ["new"]


def test_a_classic_member_leaves_as_it_always_did():
    bench, old, new = upgraded()
    assert bench.leave(old.id).errors == (ErrorCode.NONE,)
    assert bench.leave("new").errors == (ErrorCode.UNKNOWN_MEMBER_ID,), "it leaves otherwise"
    new.beat()
    assert new.numbers == [0, 1, 2, 3]


def test_what_classic_members_are_refused_in_a_consumer_group():
    bench, old, _ = upgraded()
    other = (Protocol("range", said()),)
    refusals = [
        bench.ask(join("x", protocols=other)),
        bench.ask(join("x", protocols=(Protocol("cooperative-sticky", b""),))),
        bench.ask(join("x", protocol_type="connect", protocols=other)),
    ]
    assert {each.error for each in refusals} == {ErrorCode.INCONSISTENT_GROUP_PROTOCOL}
    assert bench.ask(join("x", session_timeout_ms=1)).error is ErrorCode.INVALID_SESSION_TIMEOUT
    beats = [Beat("g", 1, "new", None), Beat("g", 1, "x", None), Beat("g", 7, old.id, None)]
    assert [error_of(bench.ask(each)) for each in beats] == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
    ]
    full = consumers(rules=RULES._replace(consumers=ConsumerRules(members_max=1)))
    settle(Consumer(full, "a"))
    refused = full.ask(join("x", protocols=(Protocol("range", said()),)))
    assert refused.error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_static_member_changes_its_protocol_in_its_place():
    bench = consumers()
    settle(Consumer(bench, "k"))
    protocols = (Protocol("cooperative-sticky", said()),)
    joined = bench.ask(join("", instance_id="i", protocols=protocols))
    assert joined.generation == 2
    new = Consumer(bench, "new", instance_id="i")
    assert error_of(new.beat()) is ErrorCode.NONE, "a classic member need not have left"
    assert [each.instance_id for each in described(bench).members] == [None, "i"]


def test_empty_groups_make_way_for_the_other_kind_and_offsets_stay():
    bench = consumers()
    member = Consumer(bench, "a")
    settle(member)
    member.leave()
    bench.commit_offset(7)
    assert bench.ask(join("ghost")).error is ErrorCode.UNKNOWN_MEMBER_ID
    (joined,) = bench.stable()
    assert (bench.state(), joined.generation) == ("Stable", 3), "it goes on from the epoch"
    assert error_of(described(bench)) is ErrorCode.GROUP_ID_NOT_FOUND
    bench.leave(joined.member_id)
    assert bench.state() == "Empty"
    other = Consumer(bench, "b")
    settle(other)
    assert other.epoch == 5, "and from the generation"
    assert bench.state() is ErrorCode.GROUP_ID_NOT_FOUND
    assert described(bench.move()).state == "Stable"
    assert bench.offset() == 7


def test_a_group_that_makes_way_is_there_until_the_other_one_is_written():
    bench = consumers()
    member = Consumer(bench, "a")
    settle(member)
    member.leave()
    joining = bench.join_new()
    assert joining not in bench.answers
    assert described(bench.move()).state == "Empty"


def test_subscriptions_are_read_in_all_versions():
    third = b"\x00\x03" + said(2)[2:] + b"\x00\x00\x00\x07" + b"\x00\x02r1"
    owned = (TopicPartition("t", 2),)
    assert read_subscription(subscription("t")) == Subscription(0, ("t",), (), None)
    assert read_subscription(said(2)) == Subscription(1, ("t",), owned, None)
    assert read_subscription(third) == Subscription(3, ("t",), owned, "r1")
    for length in range(len(third)):
        assert read_subscription(third[:length]) is None
    assert read_assignment(write_assignment(1, owned)) == owned
    assert read_assignment(b"\x00") == ()
