"""Transactions in a partition: rules T1 to T8 of docs/spec/transactions.md, by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotidal.core.partition.effects import PartitionEffect, RememberAborted, RememberProducers
from cotidal.core.partition.follower import Answered, on_answered, question
from cotidal.core.partition.follower import on_appended as follower_appended
from cotidal.core.partition.leader import (
    Admitted,
    MarkerAsk,
    WriteRules,
    admit_batch,
    admit_marker,
    needs_verification,
    on_appended,
)
from cotidal.core.partition.producer_state import Producers
from cotidal.core.partition.reading import latest_offset
from cotidal.core.partition.replica import Replica, on_log_opened, on_rolled
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.batch import CONTROL_BIT, TRANSACTIONAL_BIT, Batches, BatchHeader, Marker
from cotidal.messages.producers import AbortedTransaction, ProducerSnapshot
from cotidal.values import (
    LeaderEpoch,
    Millis,
    Offset,
    ProducerEpoch,
    ProducerId,
    Sequence,
    WallMillis,
)
from headers import header
from replicas import fetched, following, leading, opened

RULES = WriteRules(10_000, 100_000, 3_600_000, stamps_time=False)
NOW = Millis(0)
WALL = WallMillis(1_000)
SEVEN = ProducerId(7)


class Leader:
    """A leader with followers 2 and 3, and the log as it would be on disk."""

    def __init__(self) -> None:
        self.replica = leading(end=0, epochs=())
        self.headers: list[BatchHeader] = []
        self.markers: list[Marker] = []
        self.sequences: dict[tuple[int, int], int] = {}
        self.effects: list[PartitionEffect] = []

    def write(
        self,
        producer: int = 7,
        *,
        epoch: int = 0,
        transactional: bool = True,
        verified: bool = True,
    ) -> Admitted | Refusal:
        sequence = self.sequences.get((producer, epoch), 0)
        batch = header(
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
            attributes=TRANSACTIONAL_BIT if transactional else 0,
        )
        guard = None
        if verified:
            transactions = self.replica.producers.transactions
            guard = transactions.guard(
                ProducerId(producer), ProducerEpoch(epoch), Sequence(sequence)
            )
        verdict = admit_batch(
            self.replica, Batches((batch,), bytes(100)), acks=1, rules=RULES, wall=WALL, guard=guard
        )
        if isinstance(verdict, Admitted):
            self.sequences[producer, epoch] = sequence + 1
            self.headers.append(batch._replace(base_offset=verdict.base_offset))
            self._written()
        return verdict

    def end(
        self,
        producer: int = 7,
        *,
        epoch: int = 0,
        commit: bool = True,
        coordinator: int = 3,
        raises_epoch: bool = False,
    ) -> Admitted | Refusal:
        ask = MarkerAsk(
            ProducerId(producer), ProducerEpoch(epoch), commit, coordinator, raises_epoch
        )
        verdict = admit_marker(self.replica, ask, WALL)
        if isinstance(verdict, Admitted) and verdict.write:
            self.headers.append(
                header(
                    base_offset=verdict.base_offset,
                    producer_id=producer,
                    producer_epoch=epoch,
                    attributes=CONTROL_BIT | TRANSACTIONAL_BIT,
                )
            )
            self.markers.append(Marker(verdict.base_offset, commit, coordinator))
            self._written()
        return verdict

    def replicate(self, up_to: int | None = None) -> None:
        """Both followers have everything below."""
        offset = self.replica.end_offset if up_to is None else up_to
        for node in (2, 3):
            self.effects += fetched(self.replica, node, offset)

    @property
    def stable(self) -> int:
        self.replica.check()
        return self.replica.last_stable_offset

    @property
    def aborted(self) -> list[AbortedTransaction]:
        found = [each for each in self.effects if isinstance(each, RememberAborted)]
        return [transaction for each in found for transaction in each.transactions]

    def _written(self) -> None:
        self.effects += on_appended(self.replica, self.replica.next_offset, NOW)


def refused(verdict: Admitted | Refusal) -> ErrorCode:
    assert isinstance(verdict, Refusal)
    return verdict.error


# T1, T2


def test_what_is_stable_ends_where_the_first_open_transaction_begins() -> None:
    leader = Leader()
    leader.write(-1, epoch=-1, transactional=False, verified=False)
    leader.write()
    leader.write(8)
    leader.write()
    leader.replicate()
    assert (leader.replica.high_watermark, leader.stable) == (4, 1)
    leader.end()
    leader.replicate()
    assert leader.stable == 2
    leader.end(8)
    leader.replicate()
    assert leader.stable == leader.replica.high_watermark == 6


def test_a_marker_that_is_not_committed_holds_what_is_stable_back() -> None:
    leader = Leader()
    leader.write()
    leader.replicate()
    leader.end()
    assert leader.stable == 0
    leader.replicate(1)
    assert leader.stable == 0
    leader.replicate(2)
    assert leader.stable == 2


def test_read_committed_is_served_up_to_what_is_stable() -> None:
    leader = Leader()
    leader.write()
    leader.replicate()
    assert latest_offset(leader.replica, isolation_level=0) == 1
    assert latest_offset(leader.replica, isolation_level=1) == 0


# T3


def test_an_abort_is_entered_in_the_index_once_its_marker_is_written() -> None:
    leader = Leader()
    leader.write()
    leader.write(8)
    leader.write()
    assert leader.aborted == []
    leader.end(commit=False)
    assert leader.aborted == [AbortedTransaction(SEVEN, Offset(0), Offset(3), Offset(1))]
    leader.end(8, commit=False)
    assert leader.aborted[1:] == [
        AbortedTransaction(ProducerId(8), Offset(1), Offset(4), Offset(5))
    ]


def test_a_commit_and_a_marker_without_a_transaction_enter_nothing() -> None:
    leader = Leader()
    leader.write()
    leader.end()
    leader.end(commit=False)
    leader.end(9, commit=False)
    assert leader.aborted == []
    assert leader.replica.end_offset == 4


def test_a_marker_of_a_new_epoch_forgets_the_sequences_of_the_old_one() -> None:
    leader = Leader()
    leader.write()
    leader.end(epoch=1)
    assert refused(leader.write(epoch=0)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert isinstance(leader.write(epoch=1), Admitted)


# T4


def test_a_marker_of_a_coordinator_that_was_deposed_is_refused() -> None:
    leader = Leader()
    leader.write()
    leader.end(coordinator=3)
    leader.write()
    assert refused(leader.end(coordinator=2)) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert isinstance(leader.end(coordinator=3), Admitted)


def test_the_coordinator_is_remembered_over_a_new_epoch_of_its_producer() -> None:
    leader = Leader()
    leader.write()
    leader.end(coordinator=3)
    leader.write(epoch=1)
    verdict = leader.end(epoch=1, coordinator=2)
    assert refused(verdict) is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_marker_of_an_older_epoch_is_refused() -> None:
    leader = Leader()
    leader.write(epoch=2)
    assert refused(leader.end(epoch=1)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_late_marker_of_the_transaction_before_cannot_end_this_one() -> None:
    """Version 2: the marker has the epoch that this transaction's records have."""
    leader = Leader()
    leader.write(epoch=0)
    leader.end(epoch=1, raises_epoch=True)
    leader.write(epoch=1)
    late = leader.end(epoch=1, raises_epoch=True)
    assert refused(late) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert isinstance(leader.end(epoch=2, raises_epoch=True), Admitted)


def test_a_repeated_marker_is_acknowledged_with_its_original_and_not_written() -> None:
    leader = Leader()
    leader.write(epoch=0)
    leader.end(epoch=1, raises_epoch=True)
    again = leader.end(epoch=1, raises_epoch=True)
    assert isinstance(again, Admitted)
    assert not again.write
    assert again.next_offset == leader.replica.end_offset, "as far as its original and no less"


def test_a_marker_needs_as_many_in_sync_replicas_as_acks_all_does() -> None:
    leader = Leader()
    leader.write()
    assert leader.replica.leadership is not None
    leader.replica.leadership.min_isr = 4
    assert refused(leader.end()) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert leader.replica.producers.transactions.is_open(SEVEN)


# T5


def test_a_plain_batch_within_a_transaction_is_refused() -> None:
    leader = Leader()
    leader.write()
    assert refused(leader.write(transactional=False)) is ErrorCode.INVALID_TXN_STATE


# T6


def test_a_batch_that_would_open_a_transaction_must_be_confirmed() -> None:
    leader = Leader()
    assert refused(leader.write(verified=False)) is ErrorCode.INVALID_TXN_STATE
    assert leader.replica.next_offset == 0
    leader.write()
    assert isinstance(leader.write(verified=False), Admitted), "one within it need not be"


def test_a_confirmation_is_void_once_the_transaction_has_ended_meanwhile() -> None:
    leader = Leader()
    transactions = leader.replica.producers.transactions
    late = header(producer_id=7, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL_BIT)
    assert needs_verification(leader.replica, late)
    guard = transactions.guard(SEVEN, ProducerEpoch(0), Sequence(0))
    leader.end(commit=False)
    verdict = admit_batch(
        leader.replica, Batches((late,), bytes(100)), acks=1, rules=RULES, wall=WALL, guard=guard
    )
    assert refused(verdict) is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("was_open", [True, False])
def test_a_confirmation_for_the_next_transaction_outlives_the_end_of_the_last_one(
    was_open: bool,
) -> None:
    """Version 2: the producer is told of the end before the marker comes, and goes on with the
    raised epoch: its question may be on its way to the coordinator when the marker is written."""
    leader = Leader()
    if was_open:
        leader.write(epoch=0)
    transactions = leader.replica.producers.transactions
    early = header(producer_id=7, producer_epoch=1, base_sequence=0, attributes=TRANSACTIONAL_BIT)
    guard = transactions.guard(SEVEN, ProducerEpoch(1), Sequence(0))
    leader.end(epoch=1, raises_epoch=True)
    verdict = admit_batch(
        leader.replica, Batches((early,), bytes(100)), acks=1, rules=RULES, wall=WALL, guard=guard
    )
    assert isinstance(verdict, Admitted)


def test_an_end_that_raises_the_epoch_voids_what_was_asked_in_the_epoch_before() -> None:
    leader = Leader()
    transactions = leader.replica.producers.transactions
    guard = transactions.guard(SEVEN, ProducerEpoch(0), Sequence(0))
    leader.end(epoch=1, raises_epoch=True)
    assert transactions.guarded(SEVEN, guard) is None


def test_of_two_batches_that_wait_for_the_coordinator_the_second_cannot_be_first() -> None:
    leader = Leader()
    transactions = leader.replica.producers.transactions
    first, second = (
        header(producer_id=7, producer_epoch=0, base_sequence=n, attributes=TRANSACTIONAL_BIT)
        for n in (0, 1)
    )
    guards = [
        transactions.guard(SEVEN, ProducerEpoch(0), each.base_sequence) for each in (first, second)
    ]
    assert guards[0] == guards[1]
    verdict = admit_batch(
        leader.replica,
        Batches((second,), bytes(100)),
        acks=1,
        rules=RULES,
        wall=WALL,
        guard=guards[1],
    )
    assert refused(verdict) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_of_the_next_transaction_waits_until_the_last_one_has_ended_here() -> None:
    """Version 2: a client goes on with its new epoch as soon as the end is decided. Taken for a
    part of the open transaction, the batch would share its fate, and the marker would be late."""
    leader = Leader()
    leader.write(epoch=0)
    early = header(producer_id=7, producer_epoch=1, base_sequence=0, attributes=TRANSACTIONAL_BIT)
    assert needs_verification(leader.replica, early)
    assert refused(leader.write(epoch=1)) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert isinstance(leader.end(epoch=1, raises_epoch=True), Admitted)
    assert isinstance(leader.write(epoch=1), Admitted)


def test_a_guard_that_was_released_is_worth_nothing() -> None:
    transactions = Leader().replica.producers.transactions
    guard = transactions.guard(SEVEN, ProducerEpoch(0), Sequence(0))
    transactions.release(SEVEN, guard + 1)
    assert transactions.guarded(SEVEN, guard) is not None
    transactions.release(SEVEN, guard)
    assert transactions.guarded(SEVEN, guard) is None


def test_a_duplicate_needs_no_confirmation() -> None:
    leader = Leader()
    leader.write()
    again = leader.headers[0]
    leader.end()
    assert not needs_verification(leader.replica, again), "it is known, and was confirmed then"


# T8


def test_a_producer_with_an_open_transaction_is_not_forgotten() -> None:
    leader = Leader()
    leader.write()
    producers = leader.replica.producers
    producers.forget_before(WallMillis(9_999_999))
    assert len(producers) == 1
    leader.end()
    producers.forget_before(WallMillis(9_999_999))
    assert len(producers) == 0


# Followers, restarts, snapshots


def follow(leader: Leader) -> Replica:
    """A follower that has fetched everything that the leader has."""
    replica = following(end=0, epochs=())
    asked = question(replica, NOW)
    assert asked is not None
    batches = Batches(
        tuple(each._replace(leader_epoch=LeaderEpoch(5)) for each in leader.headers),
        bytes(100 * len(leader.headers)),
        markers=tuple(leader.markers),
    )
    answer = Answered(
        asked, ErrorCode.NONE, leader.replica.high_watermark, Offset(0), None, batches
    )
    on_answered(replica, answer, NOW)
    follower_appended(replica, replica.next_offset)
    return replica


def reopened(leader: Leader, snapshot: ProducerSnapshot | None, high_watermark: Offset) -> Replica:
    replica = opened()
    first = Offset(0) if snapshot is None else snapshot.offset
    on_log_opened(
        replica,
        start_offset=Offset(0),
        end_offset=leader.replica.end_offset,
        high_watermark=high_watermark,
        epochs=(),
        producers=snapshot,
        headers_after=tuple(each for each in leader.headers if each.base_offset >= first),
        markers=tuple(each for each in leader.markers if each.offset >= first),
    )
    return replica


def test_a_snapshot_waits_until_every_end_in_it_is_committed() -> None:
    leader = Leader()
    leader.write()
    leader.end()
    assert on_rolled(leader.replica) == (), "the marker may still be cut"
    leader.replicate(1)
    assert not any(isinstance(each, RememberProducers) for each in leader.effects)
    leader.replicate(2)
    saved = [each for each in leader.effects if isinstance(each, RememberProducers)]
    assert [each.snapshot.offset for each in saved] == [2]


def test_an_open_transaction_survives_in_a_snapshot() -> None:
    leader = Leader()
    leader.write(8)
    leader.write()
    snapshot = leader.replica.producers.snapshot(offset=Offset(2))
    again = Producers()
    again.load(snapshot)
    assert again.transactions.first_offset(SEVEN) == 1
    assert again.transactions.first_unstable == 0
    assert again.snapshot(offset=Offset(2)) == snapshot


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "commit", "abort", "replicate", "roll"]),
        st.integers(7, 9),
        st.integers(0, 3),
    ),
    max_size=40,
)


@given(STEPS)
def test_followers_and_whoever_restarts_know_the_same_transactions(
    steps: list[tuple[str, int, int]],
) -> None:
    """What is stable, and what was aborted, follows from the log alone, whatever came before."""
    leader = Leader()
    snapshots: list[ProducerSnapshot | None] = [None]
    for verb, producer, behind in steps:
        before = leader.stable
        match verb:
            case "write":
                leader.write(producer)
            case "replicate":
                leader.replicate(max(0, leader.replica.end_offset - behind))
            case "roll":
                leader.effects += on_rolled(leader.replica)
            case _:
                leader.end(producer, commit=verb == "commit")
        assert leader.stable >= before, "LSO_MONOTONIC"
        assert leader.stable == _stable_by_definition(leader)
    snapshots += [each.snapshot for each in leader.effects if isinstance(each, RememberProducers)]
    marks = leader.replica.high_watermark
    if leader.headers:
        follower = follow(leader)
        assert follower.high_watermark == marks
        assert follower.last_stable_offset == leader.stable
    for snapshot in snapshots:
        again = reopened(leader, snapshot, marks)
        assert again.last_stable_offset == leader.stable
        assert again.producers.describe() == leader.replica.producers.describe()


def _stable_by_definition(leader: Leader) -> int:
    """T2, from the whole log."""
    committed = leader.replica.high_watermark
    ends = {marker.offset for marker in leader.markers}
    open_: dict[int, int] = {}
    firsts: list[int] = []
    for each in leader.headers:
        if each.base_offset in ends:
            first = open_.pop(each.producer_id, None)
            if first is not None and each.base_offset >= committed:
                firsts.append(first)
        else:
            open_.setdefault(each.producer_id, each.base_offset)
    return min(committed, *firsts, *open_.values()) if firsts or open_ else committed
