"""The coordinator of transactions: rules T10 to T18 of docs/spec/transactions.md, by name."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotidal.core.coordinator import (
    NOBODY,
    Acts,
    Await,
    KeyedRecord,
    Moment,
    Order,
    Tell,
    Waiter,
    Write,
)
from cotidal.core.transactions.asks import (
    AddPartitions,
    Ask,
    DescribeTransaction,
    EndTransaction,
    InitProducer,
    Listed,
    ListTransactions,
    MarkersWritten,
    NeedsProducerId,
    PartitionsAdded,
    Producer,
    SendMarkers,
    TransactionsListed,
)
from cotidal.core.transactions.coordinator import (
    PATIENCE_MS,
    TransactionCoordinator,
    TransactionRules,
)
from cotidal.core.transactions.transaction import (
    EPOCH_LAST,
    EPOCH_MAX,
    Status,
    Transaction,
    record_of,
    transaction_of,
)
from cotidal.errors import ErrorCode, Refusal
from cotidal.limits import TRANSACTION_WAITING_MAX
from cotidal.values import Millis, ProducerEpoch, ProducerId, TopicPartition, WallMillis

RULES = TransactionRules(timeout_max_ms=60_000, expiration_ms=1_000_000, timeout_check_ms=1)
ID = "shop"
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


class World:
    """One coordinator, and its log: what is appended, and how much of it is committed."""

    def __init__(self, log: Iterable[KeyedRecord] = ()) -> None:
        self.log = list(log)
        self.committed = len(self.log)
        self.wall = 1_000_000
        self.ahead_ms = 0
        """How wrong the wall clock is."""
        self.machine = TransactionCoordinator(RULES)
        self.orders: list[SendMarkers] = []
        self.refuses: Refusal | None = None
        self._waits: list[tuple[int, object]] = []
        self.answers: dict[Waiter, object] = {}
        self._waiter = 0
        self._next_id = 1_000
        for record in self.log:
            self.machine.replay(record)
        self._obey(self.machine.on_loaded(self.now))

    @property
    def now(self) -> Moment:
        return Moment(Millis(self.wall), WallMillis(self.wall + self.ahead_ms))

    def put(self, ask: Ask) -> Waiter:
        """Whose answer comes in its time."""
        self._waiter += 1
        waiter = Waiter(self._waiter)
        self._obey(self.machine.ask(ask, waiter, self.now))
        return waiter

    def ask(self, ask: Ask) -> object:
        """The answer, or None while it waits for its records."""
        waiter = self.put(ask)
        answer = self.answers.get(waiter)
        if isinstance(answer, NeedsProducerId):
            assert isinstance(ask, InitProducer | EndTransaction)
            self._next_id += 1
            return self.ask(ask._replace(fresh=ProducerId(self._next_id)))
        return answer

    def commit(self) -> None:
        """Everything that was appended."""
        while self.committed < len(self.log) or self._waits:
            self.committed = len(self.log)
            due, self._waits = self._waits, []
            for _, then in due:
                if isinstance(then, Tell):
                    self.answers[then.waiter] = then.answer
                else:
                    self._obey(self.machine.on_committed(then, self.now))

    def done(self, ask: Ask) -> object:
        """Asked and committed."""
        answer = self.ask(ask)
        self.commit()
        return self.answers[Waiter(max(self.answers))] if answer is None else answer

    def marked(self, order: SendMarkers, *partitions: TopicPartition) -> None:
        told = MarkersWritten(
            order.transactional_id, order.producer, partitions or order.partitions
        )
        self._obey(self.machine.ask(told, NOBODY, self.now))
        self.commit()

    def pass_time(self, ms: int) -> None:
        self.wall += ms
        self._obey(self.machine.on_ticked(self.now))
        self.commit()

    @property
    def held(self) -> Transaction:
        return self.machine.transactions[ID]

    def _obey(self, acts: Acts) -> None:
        for act in acts:
            match act:
                case Tell(waiter, answer):
                    self.answers[waiter] = answer
                case Write(records, then):
                    if self.refuses is not None:
                        if isinstance(then, Tell):
                            self.answers[then.waiter] = self.refuses
                        continue
                    self.log += records
                    for record in records:
                        self.machine.replay(record)
                    if then is not None:
                        self._waits.append((len(self.log), then))
                case Await(then):
                    self._waits.append((len(self.log), then))
                case Order(order):
                    assert isinstance(order, SendMarkers)
                    self.orders.append(order)


def init(world: World, current: Producer | None = None, timeout_ms: int = 30_000) -> Producer:
    got = world.done(InitProducer(ID, timeout_ms, current))
    assert isinstance(got, Producer), got
    return got


def added(
    world: World, producer: Producer, *partitions: TopicPartition, version: int = 0
) -> object:
    return world.done(AddPartitions(ID, producer, partitions, version=version))


def end(world: World, producer: Producer, *, commit: bool = True, version: int = 0) -> object:
    return world.done(EndTransaction(ID, producer, commit, version))


def code(answer: object) -> ErrorCode:
    assert isinstance(answer, Refusal), answer
    return answer.error


def next_epoch(producer: Producer, by: int = 1) -> Producer:
    return producer._replace(epoch=ProducerEpoch(producer.epoch + by))


def in_state(status: Status, *, version: int = 2, epoch: int = 5) -> World:
    """A coordinator that was left with this, and whose markers are not written."""
    held = Transaction(
        ProducerId(9),
        ProducerEpoch(epoch),
        30_000,
        status,
        (P0,) if status in (Status.ONGOING, Status.PREPARE_COMMIT, Status.PREPARE_ABORT) else (),
        started_at=WallMillis(999_000),
        changed_at=WallMillis(999_000),
        version=version,
    )
    return World([record_of(ID, held)])


# T10


def test_a_new_id_gets_a_fresh_producer() -> None:
    world = World()
    assert init(world) == (1_001, 0)
    assert world.held.status is Status.EMPTY


def test_nothing_is_told_before_it_is_committed() -> None:
    world = World()
    assert world.ask(InitProducer(ID, 30_000)) is None
    world.commit()
    assert world.held.epoch == 0


def test_the_next_holder_fences_the_one_before() -> None:
    world = World()
    old = init(world)
    assert init(world) == next_epoch(old)
    assert code(added(world, old, P0)) is ErrorCode.PRODUCER_FENCED
    assert code(end(world, old)) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("timeout_ms", [0, -1, 60_001])
def test_a_time_out_has_bounds(timeout_ms: int) -> None:
    answer = World().ask(InitProducer(ID, timeout_ms))
    assert code(answer) is ErrorCode.INVALID_TRANSACTION_TIMEOUT


@pytest.mark.parametrize("version", [0, 2])
def test_the_next_holder_aborts_what_was_going_on_and_asks_again(version: int) -> None:
    world = World()
    old = init(world)
    added(world, old, P0, P1, version=version)
    assert code(world.done(InitProducer(ID, 30_000))) is ErrorCode.CONCURRENT_TRANSACTIONS
    (order,) = world.orders
    assert (order.commit, order.partitions) == (False, (P0, P1))
    assert order.producer.epoch > old.epoch
    assert code(world.done(InitProducer(ID, 30_000))) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.marked(order)
    assert init(world).epoch > order.producer.epoch


def test_whoever_was_fenced_is_not_given_the_epoch_that_fenced_it() -> None:
    """Its EndTxn, late or repeated, must not look like a repetition of the abort."""
    world = World()
    old = init(world)
    added(world, old, P0, version=2)
    world.done(InitProducer(ID, 30_000))
    for commit in (False, True):
        told = end(world, old, commit=commit, version=2)
        assert code(told) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.marked(world.orders[0])
    for commit in (False, True):
        assert code(end(world, old, commit=commit, version=2)) is ErrorCode.PRODUCER_FENCED


def test_epochs_that_are_used_up_make_a_fresh_producer() -> None:
    world = in_state(Status.COMPLETE_COMMIT, epoch=EPOCH_LAST)
    fresh = init(world)
    assert fresh == (1_001, 0)
    assert world.held.previous_id == 9


def test_a_producer_that_goes_on_after_an_error_raises_its_own_epoch() -> None:
    world = World()
    first = init(world)
    second = init(world, first)
    assert second == next_epoch(first)
    assert init(world, first) == second, "the answer was lost, and it asks again"
    assert init(world, second) == next_epoch(second)
    refused = world.done(InitProducer(ID, 30_000, first))
    assert code(refused) is ErrorCode.PRODUCER_FENCED


def test_a_producer_that_was_replaced_cannot_go_on() -> None:
    world = World()
    old = init(world)
    init(world)
    refused = world.done(InitProducer(ID, 30_000, old))
    assert code(refused) is ErrorCode.PRODUCER_FENCED
    stranger = Producer(ProducerId(77), ProducerEpoch(0))
    assert code(world.done(InitProducer(ID, 30_000, stranger))) is ErrorCode.PRODUCER_FENCED


# T11


def test_partitions_are_added_once() -> None:
    world = World()
    producer = init(world)
    assert added(world, producer, P0) == PartitionsAdded()
    assert added(world, producer, P0, P1) == PartitionsAdded()
    before = len(world.log)
    assert added(world, producer, P1, P0) == PartitionsAdded()
    assert len(world.log) == before
    assert world.held.partitions == (P0, P1)


def test_only_whoever_holds_the_id_adds_partitions() -> None:
    world = World()
    producer = init(world)
    stranger = producer._replace(producer_id=ProducerId(77))
    assert code(added(world, stranger, P0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    unknown = world.done(AddPartitions("other", producer, (P0,)))
    assert code(unknown) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code(added(world, next_epoch(producer), P0)) is ErrorCode.PRODUCER_FENCED


def test_verifying_changes_nothing_and_names_what_is_missing() -> None:
    world = World()
    producer = init(world)
    added(world, producer, P0)
    before = len(world.log)
    verified = world.done(AddPartitions(ID, producer, (P0, P1), verify_only=True))
    assert verified == PartitionsAdded(missing=(P1,))
    assert len(world.log) == before


def test_what_was_part_of_the_last_transaction_is_not_part_of_the_next() -> None:
    world = World()
    producer = init(world)
    added(world, producer, P0)
    end(world, producer)
    world.marked(world.orders[0])
    verified = world.done(AddPartitions(ID, producer, (P0,), verify_only=True))
    assert verified == PartitionsAdded(missing=(P0,))
    added(world, producer, P1)
    assert world.held.partitions == (P1,)


def ending(partitions: tuple[TopicPartition, ...] = (P0,)) -> tuple[World, Producer]:
    """A producer whose transaction is decided, and whose markers are not written."""
    world = World()
    producer = init(world)
    added(world, producer, *partitions)
    end(world, producer)
    return world, producer


def test_the_next_transaction_waits_for_the_markers_of_the_last() -> None:
    world, producer = ending()
    first = world.put(AddPartitions(ID, producer, (P1,)))
    second = world.put(AddPartitions(ID, producer, (P0,)))
    world.commit()
    assert not world.answers.keys() & {first, second}
    world.marked(world.orders[0])
    assert [world.answers[each] for each in (first, second)] == [PartitionsAdded()] * 2
    assert world.held.partitions == (P1, P0)
    told = [transaction_of(each.value).status for each in world.log[-3:]]  # type: ignore[arg-type]
    assert told == [Status.COMPLETE_COMMIT, Status.ONGOING, Status.ONGOING]


def test_the_next_transaction_does_not_wait_for_ever() -> None:
    world, producer = ending()
    first = world.put(AddPartitions(ID, producer, (P1,)))
    world.pass_time(1)
    second = world.put(AddPartitions(ID, producer, (P1,)))
    world.pass_time(PATIENCE_MS - 2)
    assert not world.answers.keys() & {first, second}
    assert world.machine.next_deadline() == world.wall + 1
    world.pass_time(1)
    assert second not in world.answers
    assert code(world.answers[first]) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.pass_time(1)
    assert code(world.answers[second]) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.marked(world.orders[0])
    assert world.held.status is Status.COMPLETE_COMMIT, "whoever was sent away has added nothing"


def test_a_producer_that_asks_too_often_is_told_to_come_again_at_once() -> None:
    world, producer = ending()
    asked = [
        world.put(AddPartitions(ID, producer, (P1,))) for _ in range(TRANSACTION_WAITING_MAX + 1)
    ]
    assert code(world.answers[asked[-1]]) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.marked(world.orders[0])
    told = [world.answers[each] for each in asked[:-1]]
    assert told == [PartitionsAdded()] * TRANSACTION_WAITING_MAX


def test_a_stranger_does_not_wait_for_the_end_of_a_transaction() -> None:
    world, producer = ending()
    stranger = world.put(AddPartitions(ID, next_epoch(producer), (P1,)))
    assert code(world.answers[stranger]) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("verify_only", [True, False])
def test_the_question_of_another_broker_does_not_wait(verify_only: bool) -> None:
    """Those of other producers stand behind it."""
    world, producer = ending()
    asked = world.put(AddPartitions(ID, producer, (P1,), verify_only, version=2))
    assert code(world.answers[asked]) is ErrorCode.CONCURRENT_TRANSACTIONS


# T13


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_is_decided_then_marked_then_complete(commit: bool) -> None:
    world = World()
    producer = init(world)
    added(world, producer, P0, P1)
    assert world.ask(EndTransaction(ID, producer, commit)) is None
    assert world.orders == [], "markers wait until the decision is committed"
    world.commit()
    (order,) = world.orders
    assert (order.producer, order.commit, order.partitions) == (producer, commit, (P0, P1))
    assert code(end(world, producer, commit=commit)) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert code(end(world, producer, commit=not commit)) is ErrorCode.INVALID_TXN_STATE
    world.marked(order, P0)
    assert world.held.status in (Status.PREPARE_COMMIT, Status.PREPARE_ABORT)
    world.marked(order, P1)
    assert world.held.status is (Status.COMPLETE_COMMIT if commit else Status.COMPLETE_ABORT)
    assert end(world, producer, commit=commit) == producer, "repeated"
    assert code(end(world, producer, commit=not commit)) is ErrorCode.INVALID_TXN_STATE


def test_there_is_nothing_to_end_before_anything_was_added() -> None:
    world = World()
    producer = init(world)
    assert code(end(world, producer)) is ErrorCode.INVALID_TXN_STATE
    assert code(end(world, producer, commit=False)) is ErrorCode.INVALID_TXN_STATE


# T14


@pytest.mark.parametrize(
    ("status", "commit", "behind", "outcome"),
    [
        (Status.EMPTY, False, 1, ErrorCode.PRODUCER_FENCED),
        (Status.EMPTY, False, 0, "raise"),
        (Status.EMPTY, True, 1, ErrorCode.PRODUCER_FENCED),
        (Status.EMPTY, True, 0, ErrorCode.INVALID_TXN_STATE),
        (Status.COMPLETE_ABORT, False, 1, "done"),
        (Status.COMPLETE_ABORT, False, 0, "raise"),
        (Status.COMPLETE_ABORT, True, 1, ErrorCode.INVALID_TXN_STATE),
        (Status.COMPLETE_ABORT, True, 0, ErrorCode.INVALID_TXN_STATE),
        (Status.COMPLETE_COMMIT, False, 1, ErrorCode.INVALID_TXN_STATE),
        (Status.COMPLETE_COMMIT, False, 0, "raise"),
        (Status.COMPLETE_COMMIT, True, 1, "done"),
        (Status.COMPLETE_COMMIT, True, 0, ErrorCode.INVALID_TXN_STATE),
        (Status.PREPARE_ABORT, False, 1, ErrorCode.CONCURRENT_TRANSACTIONS),
        (Status.PREPARE_ABORT, False, 0, ErrorCode.CONCURRENT_TRANSACTIONS),
        (Status.PREPARE_ABORT, True, 1, ErrorCode.CONCURRENT_TRANSACTIONS),
        (Status.PREPARE_ABORT, True, 0, ErrorCode.CONCURRENT_TRANSACTIONS),
        (Status.PREPARE_COMMIT, False, 1, ErrorCode.CONCURRENT_TRANSACTIONS),
        (Status.PREPARE_COMMIT, False, 0, ErrorCode.CONCURRENT_TRANSACTIONS),
        (Status.PREPARE_COMMIT, True, 1, ErrorCode.CONCURRENT_TRANSACTIONS),
        (Status.PREPARE_COMMIT, True, 0, ErrorCode.CONCURRENT_TRANSACTIONS),
        (Status.ONGOING, True, 0, "raise"),
        (Status.ONGOING, False, 0, "raise"),
        (Status.ONGOING, True, 1, ErrorCode.PRODUCER_FENCED),
    ],
)
def test_with_version_2_the_epoch_tells_a_repetition_from_the_next_end(
    status: Status, commit: bool, behind: int, outcome: str | ErrorCode
) -> None:
    world = in_state(status)
    producer = Producer(ProducerId(9), ProducerEpoch(5 - behind))
    answer = end(world, producer, commit=commit, version=2)
    match outcome:
        case "raise":
            assert answer == (9, 6)
        case "done":
            assert answer == (9, 5)
        case _:
            assert code(answer) is outcome


def test_with_version_2_markers_carry_the_raised_epoch() -> None:
    world = World()
    producer = init(world)
    added(world, producer, P0, version=2)
    assert end(world, producer, version=2) == next_epoch(producer)
    assert world.orders[0].producer == next_epoch(producer)
    assert world.orders[0].version == 2
    world.marked(world.orders[0])
    assert added(world, next_epoch(producer), P1, version=2) == PartitionsAdded()


def test_an_abort_of_nothing_is_complete_at_once() -> None:
    world = World()
    producer = init(world)
    assert end(world, producer, commit=False, version=2) == next_epoch(producer)
    assert world.held.status is Status.COMPLETE_ABORT
    assert world.orders == []


def test_the_last_epoch_ends_with_a_fresh_producer() -> None:
    world = in_state(Status.ONGOING, epoch=EPOCH_LAST)
    last = Producer(ProducerId(9), ProducerEpoch(EPOCH_LAST))
    assert end(world, last, version=2) == (1_001, 0)
    (order,) = world.orders
    assert order.producer == (9, EPOCH_MAX)
    world.marked(order)
    assert (world.held.producer_id, world.held.epoch) == (1_001, 0)
    assert end(world, last, version=2) == (1_001, 0), "repeated"


# T15, T18


@pytest.mark.parametrize("status", [Status.PREPARE_COMMIT, Status.PREPARE_ABORT])
def test_whoever_takes_over_finishes_what_was_decided(status: Status) -> None:
    world = in_state(status)
    assert world.orders == [], "what was loaded may not be committed yet"
    world.commit()
    (order,) = world.orders
    assert order.commit is (status is Status.PREPARE_COMMIT)
    world.marked(order)
    assert world.held.status in (Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT)


def test_an_answer_about_an_earlier_end_says_nothing_of_this_one() -> None:
    world = World()
    producer = init(world)
    for version in (2, 2):
        added(world, producer, P0, version=version)
        end(world, producer, version=version)
        producer = next_epoch(producer)
        if len(world.orders) == 1:
            world.marked(world.orders[0])
    world.marked(world.orders[0])
    assert world.held.status is Status.PREPARE_COMMIT
    world.marked(world.orders[1])
    assert world.held.status is Status.COMPLETE_COMMIT


def test_a_completion_that_could_not_be_written_is_tried_again() -> None:
    world = World()
    producer = init(world)
    added(world, producer, P0)
    end(world, producer)
    world.refuses = Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    world.marked(world.orders[0])
    assert world.held.status is Status.PREPARE_COMMIT
    world.refuses = None
    world.pass_time(10_000)
    world.marked(world.orders[1])
    assert world.held.status is Status.COMPLETE_COMMIT


def test_a_decision_that_could_not_be_written_is_none() -> None:
    world = World()
    producer = init(world)
    added(world, producer, P0)
    world.refuses = Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert code(end(world, producer)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.held.status is Status.ONGOING
    assert world.orders == []


# T16, T17


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced() -> None:
    world = World()
    producer = init(world)
    added(world, producer, P0)
    world.pass_time(30_000)
    assert world.orders == []
    world.pass_time(1)
    (order,) = world.orders
    assert not order.commit
    assert code(end(world, producer)) is ErrorCode.PRODUCER_FENCED
    world.marked(order)
    assert world.held.status is Status.COMPLETE_ABORT


def test_a_transaction_that_began_by_a_clock_far_ahead_is_aborted_all_the_same() -> None:
    """Of its coordinator before, or of this one. It is seen when transactions are looked at."""
    before = World()
    before.ahead_ms = 1_000_000
    added(before, init(before), P0)
    world = World(before.log)
    world.pass_time(1_000)
    world.pass_time(30_000)
    assert world.orders == []
    world.pass_time(1)
    assert [order.commit for order in world.orders] == [False]


def test_the_next_transaction_of_a_producer_has_a_time_of_its_own() -> None:
    world = World()
    producer = init(world)
    added(world, producer, P0)
    world.pass_time(1)
    world.wall += 20_000
    end(world, producer)
    world.marked(world.orders.pop())
    added(world, Producer(producer.producer_id, world.held.epoch), P0)
    world.pass_time(30_000)
    assert world.orders == []
    world.pass_time(1)
    assert [order.commit for order in world.orders] == [False]


def test_an_id_that_nobody_has_used_for_long_is_forgotten() -> None:
    world = World()
    init(world)
    world.pass_time(999_999)
    assert ID in world.machine.transactions
    world.pass_time(1)
    assert ID not in world.machine.transactions
    assert world.log[-1].value is None


def test_a_transaction_that_is_going_on_or_ending_is_not_forgotten() -> None:
    world = in_state(Status.PREPARE_COMMIT)
    world.pass_time(10_000_000)
    assert ID in world.machine.transactions


# Operators


def test_operators_see_what_the_coordinator_knows() -> None:
    world = World()
    producer = init(world)
    added(world, producer, P0)
    assert world.done(DescribeTransaction(ID)) == Listed(ID, world.held)
    assert code(world.done(DescribeTransaction("no"))) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    world.wall += 500

    def listed(**which: object) -> int:
        answer = world.done(ListTransactions(**which))  # type: ignore[arg-type]
        assert isinstance(answer, TransactionsListed)
        return len(answer.found)

    assert listed() == 1
    assert listed(statuses=(Status.EMPTY,)) == 0
    assert listed(producer_ids=(ProducerId(1_001),)) == 1
    assert listed(open_for_ms=499) == 1
    assert listed(open_for_ms=500) == 0


def test_a_status_is_spelt_as_kafka_spells_it() -> None:
    assert [each.word for each in Status] == [
        *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")
    ]


# Laws


TRANSACTIONS = st.builds(
    Transaction,
    st.integers(0, 2**40).map(ProducerId),
    st.integers(0, EPOCH_MAX).map(ProducerEpoch),
    st.integers(1, 10**6),
    st.sampled_from([s for s in Status if s is not Status.EMPTY]),
    st.lists(
        st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 3)), unique=True
    ).map(lambda found: tuple(sorted(found))),
    st.integers(-1, 2**40).map(ProducerId),
    st.integers(-1, 2**40).map(ProducerId),
    st.integers(-1, 2**40).map(WallMillis),
    st.integers(-1, 2**40).map(WallMillis),
    st.integers(0, 2),
)


@given(TRANSACTIONS)
def test_a_record_says_all_there_is_to_a_transaction(transaction: Transaction) -> None:
    value = record_of(ID, transaction).value
    assert transaction_of(value) == transaction  # type: ignore[arg-type]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["init", "add", "commit", "abort", "mark", "wait", "move", "flush"]),
        st.integers(0, 2),
        st.sampled_from([0, 2]),
    ),
    max_size=30,
)


@given(STEPS)
def test_no_transaction_is_ever_ended_both_ways(steps: list[tuple[str, int, int]]) -> None:
    """TXN_DECIDED_ONCE, whatever clients do and however often the coordinator moves.

    A transaction is known by the producer that its markers carry and what was told of it."""
    world = World()
    known: list[Producer] = []
    ordered: dict[tuple[str, Producer, int], bool] = {}
    for verb, which, version in steps:
        producer = known[-1 - which] if which < len(known) else None
        match verb:
            case "init":
                got = world.done(InitProducer(ID, 30_000))
                if isinstance(got, Producer):
                    known.append(got)
            case "add" if producer is not None:
                world.ask(AddPartitions(ID, producer, (P0,), version=version))
            case "commit" | "abort" if producer is not None:
                got = world.ask(EndTransaction(ID, producer, verb == "commit", version))
                if isinstance(got, Producer):
                    known.append(got)
            case "mark" if world.orders:
                world.marked(world.orders[-1])
            case "wait":
                world.pass_time(31_000)
            case "flush":
                world.commit()
            case "move":
                orders = world.orders
                wall = world.wall
                world = World(world.log[: world.committed])
                world.wall = wall
                world.orders = orders
        for order in world.orders:
            started = (order.transactional_id, order.producer, order.version)
            if order.version >= 2:
                assert ordered.setdefault(started, order.commit) is order.commit
