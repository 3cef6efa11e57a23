"""What a fetcher may read, and the order in which it is told why not."""

from __future__ import annotations

import pytest

from cotidal.core.partition.leader import become_leader
from cotidal.core.partition.reading import (
    Diverged,
    Granted,
    admit_fetch,
    latest_offset,
)
from cotidal.core.partition.replica import Appointment, Replica, on_log_opened
from cotidal.errors import ErrorCode, Refusal
from cotidal.values import (
    NO_EPOCH,
    ZERO_UUID,
    EpochEntry,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
    PartitionEpoch,
    TopicPartition,
)


def leader(*, min_isr: int = 1) -> Replica:
    """Records 5-19; epoch 1 from 5, epoch 3 from 10, epoch 6 (ours) from 20."""
    replica = Replica(TopicPartition("orders", 0), ZERO_UUID)
    on_log_opened(
        replica,
        start_offset=Offset(5),
        end_offset=Offset(20),
        high_watermark=Offset(15),
        epochs=(EpochEntry(LeaderEpoch(1), Offset(5)), EpochEntry(LeaderEpoch(3), Offset(10))),
        producers=None,
        headers_after=(),
    )
    told = Appointment(
        node_id=NodeId(1),
        epoch=LeaderEpoch(6),
        partition_epoch=PartitionEpoch(0),
        replicas=(NodeId(1),),
        isr=(NodeId(1),),
        min_isr=min_isr,
    )
    become_leader(replica, told, Millis(0))
    return replica


def fetch(
    replica: Replica, offset: int, *, current: int = -1, last: int = -1
) -> Granted | Diverged | Refusal:
    return admit_fetch(
        replica,
        offset=Offset(offset),
        current_epoch=LeaderEpoch(current),
        last_fetched_epoch=LeaderEpoch(last),
        isolation_level=0,
    )


def error(verdict: Granted | Diverged | Refusal) -> ErrorCode:
    assert isinstance(verdict, Refusal)
    return verdict.error


def test_consumers_read_below_the_high_watermark() -> None:
    assert fetch(leader(min_isr=2), 5) == Granted(Offset(15))


def test_between_the_bound_and_the_end_there_is_nothing_to_read_yet() -> None:
    assert fetch(leader(min_isr=2), 18) == Granted(Offset(15))


@pytest.mark.parametrize("offset", [4, 21])
def test_outside_the_log_is_out_of_range(offset: int) -> None:
    assert error(fetch(leader(), offset)) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_leader_epoch_is_checked_first() -> None:
    assert error(fetch(leader(), 99, current=5)) is ErrorCode.FENCED_LEADER_EPOCH
    assert error(fetch(leader(), 99, current=7)) is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_below_the_log_start_beats_divergence() -> None:
    assert error(fetch(leader(), 4, last=0)) is ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(("offset", "last", "end"), [(12, 2, (1, 10)), (11, 1, (1, 10))])
def test_a_log_that_parted_from_ours_is_told_where(
    offset: int, last: int, end: tuple[int, int]
) -> None:
    verdict = fetch(leader(), offset, last=last)
    assert isinstance(verdict, Diverged)
    assert verdict.end == end


def test_a_fetch_past_our_end_in_an_older_epoch_is_a_divergence() -> None:
    verdict = fetch(leader(), 25, last=3)
    assert isinstance(verdict, Diverged)
    assert verdict.end == (3, 20)


def test_an_epoch_that_we_never_heard_of_is_out_of_range() -> None:
    assert error(fetch(leader(), 12, last=9)) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_latest_offset_is_unknown_until_the_high_watermark_reaches_the_epoch() -> None:
    verdict = latest_offset(leader(min_isr=2), isolation_level=0)
    assert isinstance(verdict, Refusal)
    assert verdict.error is ErrorCode.OFFSET_NOT_AVAILABLE
    assert latest_offset(leader(), isolation_level=0) == 20


def test_who_does_not_lead_serves_nothing() -> None:
    replica = Replica(TopicPartition("orders", 0), ZERO_UUID)
    assert error(fetch(replica, 0, current=NO_EPOCH)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
