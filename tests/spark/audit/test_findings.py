"""What is told of replicas that are not alike."""

from __future__ import annotations

from cotidal.spark.audit.copies import Copy, Subject, shares
from cotidal.spark.audit.findings import Doubt, Kind, judged, lag, parted, tail, unreachable
from cotidal.spark.audit.stretches import Line, Stretch


def subject(
    *, in_sync: tuple[int, ...] = (1, 2, 3), leader: int = 1, compacted: bool = False
) -> Subject:
    copies = tuple(Copy(each, f"node-{each}", True, each in in_sync) for each in (1, 2, 3))
    return Subject("orders", b"i" * 16, 0, leader, 0, 100, compacted, copies, ())


def stretch(broker: int, digest: bytes = b"same", **more: object) -> Stretch:
    whole = Stretch("orders", 0, broker, 0, 100, 10, 100, 1_000, 0, 100, 1, 1, digest)
    return whole._replace(**more)  # type: ignore[arg-type]


def line(base: int, epoch: int = 1, digest: bytes = b"x") -> Line:
    return Line(base, base + 9, epoch, 10, digest)


DOUBT = Doubt(0, 100, 2, 1)


def test_replicas_that_are_alike_leave_nothing_to_tell() -> None:
    assert judged(subject(), [stretch(1), stretch(2), stretch(3)]) == ([], [])


def test_a_replica_is_held_against_its_leader() -> None:
    _, doubts = judged(subject(leader=3), [stretch(1), stretch(2), stretch(3, b"other")])
    assert [(each.broker, each.against) for each in doubts] == [(1, 3), (2, 3)]


def test_a_damaged_leader_is_told_and_the_others_are_held_against_most_of_them() -> None:
    bad = stretch(1, b"", fault="the batch fails its checksum", fault_offset=40)
    findings, doubts = judged(subject(), [bad, stretch(2), stretch(3)])
    assert [(each.kind, each.broker, each.offset) for each in findings] == [(Kind.DAMAGED, 1, 40)]
    assert doubts == []


def test_what_cannot_be_read_is_told_and_is_no_fault() -> None:
    findings, doubts = judged(subject(), [stretch(1), stretch(2, unread="it is down")])
    assert [(each.kind, each.broker) for each in findings] == [(Kind.UNREAD, 2)]
    assert not findings[0].kind.is_fault
    assert doubts == []


def test_a_batch_that_is_another_one_is_named_by_its_offset() -> None:
    (found,) = parted(
        subject(), DOUBT, [line(0), line(10, digest=b"y")], [line(0), line(10), line(20)]
    )
    assert (found.kind, found.broker, found.offset, found.epoch) == (Kind.DIFFERS, 2, 10, 1)


def test_a_batch_of_another_epoch_says_so() -> None:
    (found,) = parted(subject(), DOUBT, [line(0), line(10, 2)], [line(0), line(10, 3)])
    assert found.sentence == "offset 10 is of epoch 2, at broker 1 of epoch 3"


def test_a_missing_batch_is_named_by_its_offsets() -> None:
    (found,) = parted(subject(), DOUBT, [line(0), line(20)], [line(0), line(10), line(20)])
    assert (found.kind, found.offset) == (Kind.MISSING, 10)
    assert found.sentence == "offsets 10 to 19 (epoch 1) are missing; broker 1 has them"


def test_the_end_that_a_replica_out_of_sync_lacks_is_its_lag() -> None:
    mine, theirs = [line(0)], [line(0), line(10)]
    assert parted(subject(), DOUBT, mine, theirs)[0].kind is Kind.MISSING
    assert parted(subject(in_sync=(1, 3)), DOUBT, mine, theirs) == []


def test_more_than_its_leader_has_is_a_tail() -> None:
    (found,) = parted(subject(), DOUBT, [line(0), line(10)], [line(0)])
    assert (found.kind, found.offset) == (Kind.TAIL, 10)


def test_above_the_high_watermark_a_follower_holds_the_beginning_of_its_leaders_tail() -> None:
    leader = [line(100), line(110)]
    assert tail(subject(), 2, [line(100)], leader) == []
    (other,) = tail(subject(), 2, [line(100), line(110, 0, b"y"), line(120, 0)], leader)
    assert (other.kind, other.offset) == (Kind.TAIL, 110)
    assert "offsets 110 to 129 (epoch 0)" in other.sentence
    (extra,) = tail(subject(), 2, [*leader, line(120)], leader)
    assert extra.offset == 120


def test_a_replica_that_ends_early_lags_or_has_lost_something() -> None:
    assert lag(subject(), 2, 100) is None
    lost = lag(subject(), 2, 90)
    lags = lag(subject(in_sync=(1, 3)), 2, 90)
    assert lost is not None
    assert lags is not None
    assert (lost.kind, lags.kind) == (Kind.MISSING, Kind.LAGS)


def test_a_broker_that_is_down_is_told() -> None:
    down = subject()._replace(unreachable=(3,))
    assert [(each.kind, each.broker) for each in unreachable(down)] == [(Kind.UNREAD, 3)]


def test_every_replica_is_cut_into_the_same_ranges() -> None:
    cut = list(shares(subject()._replace(start_offset=25), 40))
    assert [(each.broker, each.first, each.below) for each in cut] == [
        (broker, first, below)
        for first, below in ((25, 40), (40, 80), (80, 100))
        for broker in (1, 2, 3)
    ]
