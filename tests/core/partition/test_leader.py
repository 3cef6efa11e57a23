"""The leader's rules with one replica."""

from __future__ import annotations

import pytest

from cotidal.core.partition.effects import (
    CompleteAcks,
    EndMoved,
    LeadershipLost,
    Readable,
    RememberEpochs,
)
from cotidal.core.partition.leader import (
    ACKS_ALL,
    Admitted,
    WriteRules,
    acks_outcome,
    admit_batch,
    admit_delete,
    become_leader,
    on_appended,
    on_partition_changed,
    stop_leading,
)
from cotidal.core.partition.replica import Appointment, Replica, on_log_failed, on_log_opened
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.batch import CONTROL_BIT, TRANSACTIONAL_BIT, Batches
from cotidal.values import (
    ZERO_UUID,
    EpochEntry,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
    PartitionEpoch,
    TopicPartition,
    WallMillis,
)
from headers import one_batch

RULES = WriteRules(1_000, 2_000, 3_600_000, stamps_time=False)


def opened(*, start: int = 0, end: int = 0, checkpoint: int = 0) -> Replica:
    replica = Replica(TopicPartition("orders", 0), ZERO_UUID)
    on_log_opened(
        replica,
        start_offset=Offset(start),
        end_offset=Offset(end),
        high_watermark=Offset(checkpoint),
        epochs=(),
        producers=None,
        headers_after=(),
    )
    return replica


def appointment(*, isr: int = 1, min_isr: int = 1) -> Appointment:
    return Appointment(
        node_id=NodeId(0),
        epoch=LeaderEpoch(5),
        partition_epoch=PartitionEpoch(9),
        replicas=tuple(NodeId(n) for n in range(max(isr, min_isr))),
        isr=tuple(NodeId(n) for n in range(isr)),
        min_isr=min_isr,
    )


def leading(*, end: int = 0, isr: int = 1, min_isr: int = 1) -> Replica:
    replica = opened(end=end)
    become_leader(replica, appointment(isr=isr, min_isr=min_isr), Millis(0))
    return replica


def admit(replica: Replica, batches: Batches, acks: int = ACKS_ALL) -> Admitted | Refusal:
    return admit_batch(replica, batches, acks=acks, rules=RULES, wall=WallMillis(1_000))


def refusal(replica: Replica, batches: Batches, acks: int = ACKS_ALL) -> ErrorCode:
    verdict = admit(replica, batches, acks)
    assert isinstance(verdict, Refusal)
    return verdict.error


def test_a_new_leader_enters_its_epoch_before_it_writes() -> None:
    replica = opened(end=12)
    effects = become_leader(replica, appointment(), Millis(0))
    assert effects == (
        RememberEpochs((EpochEntry(LeaderEpoch(5), Offset(12)),)),
        Readable(Offset(12), Offset(12)),
        CompleteAcks(Offset(12)),
    )


def test_batches_get_consecutive_offsets_before_they_are_written() -> None:
    replica = leading(end=10)
    assert admit(replica, one_batch(records=3)) == Admitted(Offset(10), Offset(13), True)
    assert admit(replica, one_batch(records=1)) == Admitted(Offset(13), Offset(14), True)
    assert (replica.end_offset, replica.high_watermark) == (10, 10)


def test_the_high_watermark_follows_what_is_written() -> None:
    replica = leading(end=10)
    admit(replica, one_batch(records=3))
    assert on_appended(replica, Offset(13), Millis(0)) == (
        EndMoved(Offset(13)),
        Readable(Offset(13), Offset(13)),
        CompleteAcks(Offset(13)),
    )


def test_the_log_may_not_report_more_than_it_was_given() -> None:
    with pytest.raises(AssertionError):
        on_appended(leading(end=10), Offset(11), Millis(0))


def test_below_min_isr_nothing_is_written_for_acks_all() -> None:
    replica = leading(isr=1, min_isr=2)
    assert refusal(replica, one_batch()) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert replica.next_offset == 0
    assert isinstance(admit(replica, one_batch(), acks=1), Admitted)


def test_below_min_isr_the_high_watermark_stands_still() -> None:
    replica = leading(isr=1, min_isr=2)
    admit(replica, one_batch(), acks=1)
    assert on_appended(replica, Offset(1), Millis(0)) == (EndMoved(Offset(1)),)
    assert replica.high_watermark == 0


@pytest.mark.parametrize(
    ("batches", "error"),
    [
        (Batches((), b"", fault="crc"), ErrorCode.CORRUPT_MESSAGE),
        (Batches((), b""), ErrorCode.INVALID_RECORD),
        (one_batch(size_bytes=1_001), ErrorCode.MESSAGE_TOO_LARGE),
        (one_batch(timestamp=3_601_001), ErrorCode.INVALID_TIMESTAMP),
        (one_batch(attributes=CONTROL_BIT), ErrorCode.INVALID_RECORD),
        (one_batch(attributes=TRANSACTIONAL_BIT), ErrorCode.INVALID_RECORD),
        (
            one_batch(
                attributes=TRANSACTIONAL_BIT, producer_id=7, producer_epoch=0, base_sequence=0
            ),
            ErrorCode.INVALID_TXN_STATE,
        ),
        (one_batch()._replace(cut=True), ErrorCode.CORRUPT_MESSAGE),
        (one_batch(attributes=5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ],
)
def test_a_bad_batch_is_refused_and_changes_nothing(batches: Batches, error: ErrorCode) -> None:
    replica = leading()
    assert refusal(replica, batches) is error
    assert replica.next_offset == 0


def test_a_batch_above_the_segment_size_is_refused() -> None:
    rules = RULES._replace(segment_bytes=50)
    verdict = admit_batch(leading(), one_batch(), acks=1, rules=rules, wall=WallMillis(1_000))
    assert isinstance(verdict, Refusal)
    assert verdict.error is ErrorCode.RECORD_LIST_TOO_LARGE


def test_a_topic_that_stamps_its_own_time_takes_any_timestamp() -> None:
    rules = RULES._replace(stamps_time=True)
    batch = one_batch(timestamp=99_000_000_000)
    verdict = admit_batch(leading(), batch, acks=1, rules=rules, wall=WallMillis(1_000))
    assert isinstance(verdict, Admitted)


def test_a_duplicate_is_answered_with_its_original_and_not_written() -> None:
    replica = leading(end=10)
    batch = one_batch(records=2, producer_id=7, producer_epoch=0, base_sequence=0)
    first = admit(replica, batch)
    again = admit(replica, batch)
    assert first == Admitted(Offset(10), Offset(12), True)
    assert again == Admitted(Offset(10), Offset(12), False, WallMillis(1_000))
    assert replica.next_offset == 12


def test_whoever_does_not_lead_refuses() -> None:
    assert refusal(opened(), one_batch()) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_failed_log_says_why() -> None:
    replica = leading()
    on_log_failed(replica, "disk full")
    verdict = admit(replica, one_batch())
    assert verdict == Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "disk full")


def test_giving_up_leadership_is_told_once() -> None:
    replica = leading()
    assert stop_leading(replica, "moved") == (LeadershipLost("moved"),)
    assert stop_leading(replica, "moved") == ()


@pytest.mark.parametrize(("checkpoint", "watermark"), [(0, 5), (7, 7), (99, 10)])
def test_a_checkpointed_high_watermark_is_moved_into_the_log(
    checkpoint: int, watermark: int
) -> None:
    assert opened(start=5, end=10, checkpoint=checkpoint).high_watermark == watermark


def test_records_are_deleted_up_to_the_high_watermark_only() -> None:
    replica = leading(end=10)
    assert admit_delete(replica, Offset(4)) == 4
    assert admit_delete(replica, Offset(-1)) == 10
    for wrong in (11, -2):
        verdict = admit_delete(replica, Offset(wrong))
        assert isinstance(verdict, Refusal)
        assert verdict.error is ErrorCode.OFFSET_OUT_OF_RANGE


# --- what acks=all is told ----------------------------------------------------------------------


def test_acks_all_waits_until_the_high_watermark_has_passed_it() -> None:
    replica = leading(end=10)
    admit(replica, one_batch(records=3))
    assert acks_outcome(replica, next_offset=Offset(13)) is False
    on_appended(replica, Offset(13), Millis(0))
    assert acks_outcome(replica, next_offset=Offset(13)) is True


def test_an_isr_that_fell_short_after_the_commit_is_told() -> None:
    replica = leading(end=10, isr=2, min_isr=1)
    replica.high_watermark = Offset(10)
    raised = appointment(isr=1, min_isr=2)._replace(partition_epoch=PartitionEpoch(10))
    on_partition_changed(replica, raised, Millis(0))
    verdict = acks_outcome(replica, next_offset=Offset(10))
    assert isinstance(verdict, Refusal)
    assert verdict.error is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert "1 of min 2" in verdict.text


def test_leadership_lost_fails_what_waits() -> None:
    replica = leading(end=10)
    stop_leading(replica, "moved")
    verdict = acks_outcome(replica, next_offset=Offset(10))
    assert isinstance(verdict, Refusal)
    assert verdict.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_duplicate_of_what_is_not_committed_waits_with_its_original() -> None:
    replica = leading(end=10, isr=2, min_isr=2)
    batch = one_batch(records=2, producer_id=7, producer_epoch=0, base_sequence=0)
    admit(replica, batch)
    on_appended(replica, Offset(12), Millis(0))
    again = admit(replica, batch)
    assert isinstance(again, Admitted)
    assert (again.next_offset, again.write) == (12, False)
    assert acks_outcome(replica, next_offset=again.next_offset) is False


def test_an_epoch_of_the_same_leader_begins_after_what_is_still_being_written() -> None:
    replica = leading(end=10)
    admit(replica, one_batch(records=3))
    become_leader(replica, appointment()._replace(epoch=LeaderEpoch(6)), Millis(0))
    assert replica.epochs.entries[-1] == (6, 13)


# --- edges --------------------------------------------------------------------------------------


def test_a_batch_of_exactly_the_limits_is_taken() -> None:
    rules = WriteRules(100, 100, 3_600_000, stamps_time=False)
    batch = one_batch(size_bytes=100, timestamp=3_601_000)
    verdict = admit_batch(leading(), batch, acks=1, rules=rules, wall=WallMillis(1_000))
    assert isinstance(verdict, Admitted)


def test_the_very_first_producer_id_is_a_producer_id() -> None:
    replica = leading()
    batch = one_batch(producer_id=0, producer_epoch=0, base_sequence=0)
    admit(replica, batch)
    again = admit(replica, batch)
    assert isinstance(again, Admitted)
    assert not again.write


def test_deleting_nothing_is_allowed() -> None:
    assert admit_delete(leading(end=10), Offset(0)) == 0
