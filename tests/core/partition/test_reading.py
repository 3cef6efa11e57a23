"""What a fetcher may read, and the order in which it is told why not."""

from __future__ import annotations

import pytest

from cotidal.core.partition.leader import become_leader
from cotidal.core.partition.reading import (
    Diverged,
    Granted,
    admit_fetch,
    admit_replica_fetch,
    latest_offset,
)
from cotidal.core.partition.replica import (
    Appointment,
    Replica,
    on_log_failed,
    on_log_opened,
)
from cotidal.errors import ErrorCode, Refusal
from cotidal.values import (
    NO_EPOCH,
    ZERO_UUID,
    BrokerEpoch,
    EpochEntry,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
    PartitionEpoch,
    TopicPartition,
)
from replicas import following


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
        replicas=(NodeId(1), NodeId(2)),
        isr=(NodeId(1),),
        min_isr=min_isr,
        active={NodeId(2): BrokerEpoch(40)},
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


# --- replicas -----------------------------------------------------------------------------------


def replica_fetch(
    replica: Replica,
    offset: int,
    *,
    node: int = 2,
    broker_epoch: int = 40,
    current: int = 6,
    last: int = -1,
) -> Granted | Diverged | Refusal:
    return admit_replica_fetch(
        replica,
        node_id=NodeId(node),
        broker_epoch=BrokerEpoch(broker_epoch),
        offset=Offset(offset),
        current_epoch=LeaderEpoch(current),
        last_fetched_epoch=LeaderEpoch(last),
    )


def test_replicas_read_to_the_end_whatever_the_high_watermark() -> None:
    assert replica_fetch(leader(min_isr=2), 5, last=1) == Granted(Offset(20))


def test_a_follower_that_is_not_assigned_may_know_more_than_we_do() -> None:
    assert error(replica_fetch(leader(), 5, node=9)) is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_follower_of_an_earlier_incarnation_is_turned_away() -> None:
    assert error(replica_fetch(leader(), 5, broker_epoch=39)) is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("broker_epoch", [-1, 40, 41])
def test_a_follower_that_names_no_incarnation_or_a_later_one_is_served(broker_epoch: int) -> None:
    assert replica_fetch(leader(), 5, broker_epoch=broker_epoch) == Granted(Offset(20))


def test_each_check_of_a_replica_fetch_beats_all_that_come_after_it() -> None:
    """Epoch, leadership, assignment, log start, last epoch, divergence, end, incarnation."""
    wrong = {"offset": 99, "broker_epoch": 39, "node": 9}
    assert error(replica_fetch(leader(), current=5, **wrong)) is ErrorCode.FENCED_LEADER_EPOCH
    assert error(replica_fetch(leader(), current=7, **wrong)) is ErrorCode.UNKNOWN_LEADER_EPOCH
    idle = Replica(TopicPartition("orders", 0), ZERO_UUID)
    assert error(replica_fetch(idle, **wrong)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert error(replica_fetch(leader(), **wrong)) is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert (
        error(replica_fetch(leader(), 4, last=0, broker_epoch=39)) is ErrorCode.OFFSET_OUT_OF_RANGE
    )
    assert (
        error(replica_fetch(leader(), 5, last=9, broker_epoch=39)) is ErrorCode.OFFSET_OUT_OF_RANGE
    )
    assert isinstance(replica_fetch(leader(), 99, last=1, broker_epoch=39), Diverged)
    assert error(replica_fetch(leader(), 99, broker_epoch=39)) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert error(replica_fetch(leader(), 5, broker_epoch=39)) is ErrorCode.NOT_LEADER_OR_FOLLOWER


# --- followers that serve (KIP-392) --------------------------------------------------------------


def consume(replica: Replica, offset: int, *, current: int = -1) -> Granted | Diverged | Refusal:
    return admit_fetch(
        replica,
        offset=Offset(offset),
        current_epoch=LeaderEpoch(current),
        last_fetched_epoch=NO_EPOCH,
        isolation_level=0,
        followers_serve=True,
    )


def test_a_follower_serves_consumers_up_to_its_own_high_watermark() -> None:
    replica = following(end=10, hw=7)
    assert consume(replica, 3) == Granted(Offset(7))
    assert consume(replica, 9) == Granted(Offset(7))


def test_a_follower_serves_nobody_who_cannot_be_sent_to_one() -> None:
    assert error(fetch(following(end=10, hw=7), 3)) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_what_a_follower_has_not_got_is_not_available_there_and_only_its_leader_says_more() -> None:
    assert error(consume(following(end=10, hw=7), 11)) is ErrorCode.OFFSET_NOT_AVAILABLE
    assert consume(following(end=10, hw=7), 10) == Granted(Offset(7))
    assert error(consume(leader(), 99)) is ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(("current", "code"), [(4, 74), (6, 75)])
def test_a_follower_compares_epochs_as_a_leader_does(current: int, code: int) -> None:
    assert error(consume(following(epoch=5), 3, current=current)) == code
    assert error(fetch(following(epoch=5), 3, current=current)) == code


def test_a_follower_whose_log_is_being_cut_serves_nothing() -> None:
    replica = following(end=10, hw=7)
    replica.opened = False
    assert error(consume(replica, 3)) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_failed_log_says_so_before_anything_else() -> None:
    replica = leader()
    on_log_failed(replica, "disk full")
    assert consume(replica, 5, current=1) == Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "disk full")
