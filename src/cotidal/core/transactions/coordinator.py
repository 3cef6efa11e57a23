"""The coordinator of the transactions of one partition of __transaction_state. Pure.

A replicated machine (core/coordinator.py). Its records are Kafka's own. Rules T10 to T18 of
docs/spec/transactions.md:

  TXN_DECIDED_ONCE  markers are ordered when the Prepare that decides is committed, not before; a
                    coordinator that loads one orders them again
  TXN_FENCED        whoever asks with another epoch than the last one given is refused

What is soft, and empty after a move: which markers are still missing, who waits for them, since
when each transaction has been seen open, and the epoch before the last, by which a repeated
InitProducerId is known (KIP-360).
"""

from __future__ import annotations

from typing import Final, NamedTuple, assert_never

from cotidal.core.coordinator import Acts, Await, KeyedRecord, Moment, Order, Tell, Waiter, Write
from cotidal.core.transactions import ending
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
from cotidal.core.transactions.ending import BUSY, FENCED, Begin, Done
from cotidal.core.transactions.transaction import (
    IDLE,
    PREPARED,
    Status,
    Transaction,
    record_of,
    transaction_of,
)
from cotidal.errors import ErrorCode, Refusal
from cotidal.limits import TRANSACTION_WAITING_MAX
from cotidal.messages.records.transaction import TransactionLogKey, TransactionLogValue
from cotidal.values import (
    NO_PRODUCER_ID,
    Millis,
    ProducerEpoch,
    ProducerId,
    TopicPartition,
    WallMillis,
)


class TransactionRules(NamedTuple):
    timeout_max_ms: int = 900_000
    """transaction.max.timeout.ms."""
    expiration_ms: int = 604_800_000
    """transactional.id.expiration.ms."""
    timeout_check_ms: int = 10_000
    """transaction.abort.timed.out.transaction.cleanup.interval.ms."""
    version: int = 2
    """Of transactions, as the cluster speaks them: for ends that no client asked for."""


class Decided(NamedTuple):
    """The end of a transaction is committed: its markers may go out."""

    transactional_id: str
    prepared: Transaction


PATIENCE_MS: Final = 500
"""A producer's next transaction waits for the markers of its last one: milliseconds, if nothing is
wrong. A client that is told to come again stays away for 20 ms at least."""


class Waiting(NamedTuple):
    """A partition for the next transaction, while the last one is not finished."""

    ask: AddPartitions
    waiter: Waiter
    until: Millis


class Open(NamedTuple):
    """A transaction as it was seen here, and since when."""

    started_at: WallMillis
    seen_at: Millis


class TransactionCoordinator:
    """Implements ``core.coordinator.Coordinator``."""

    __slots__ = (
        "_check_at",
        "_last_epochs",
        "_missing",
        "_open",
        "_patience_ends_at",
        "_rules",
        "_waiting",
        "transactions",
    )

    def __init__(self, rules: TransactionRules) -> None:
        self._rules = rules
        self.transactions: dict[str, Transaction] = {}
        self._missing: dict[str, dict[TopicPartition, None]] = {}
        """Partitions whose markers were ordered and are not written yet."""
        self._waiting: dict[str, tuple[Waiting, ...]] = {}
        """By transactional id, in the order in which they came."""
        self._patience_ends_at: Millis | None = None
        """Of the one that waits longest, or waited: looking then may be in vain."""
        self._last_epochs: dict[str, ProducerEpoch] = {}
        """The epoch before the current one, if its holder has raised it itself."""
        self._open: dict[str, Open] = {}
        """Those that were under way when all were last looked at."""
        self._check_at: Millis | None = None

    def replay(self, record: KeyedRecord, producer_id: ProducerId = NO_PRODUCER_ID) -> None:
        assert isinstance(record.key, TransactionLogKey)
        id_ = record.key.transactional_id
        if record.value is None:
            self.transactions.pop(id_, None)
            self._last_epochs.pop(id_, None)
            return
        assert isinstance(record.value, TransactionLogValue)
        self.transactions[id_] = transaction_of(record.value)

    def replay_end(self, producer_id: ProducerId, *, committed: bool) -> None:
        """Nobody writes to __transaction_state in a transaction."""

    def on_loaded(self, at: Moment) -> Acts:
        """T15, T18: whatever was decided and not finished. What was loaded may not be committed."""
        self._check_at = Millis(at.now + self._rules.timeout_check_ms)
        return tuple(
            Await(Decided(id_, each))
            for id_, each in self.transactions.items()
            if each.status in PREPARED
        )

    def ask(self, ask: object, waiter: Waiter, at: Moment) -> Acts:
        question: Ask = ask  # type: ignore[assignment]  # the node puts no others here
        match question:
            case AddPartitions():
                return self._add(question, waiter, at)
            case EndTransaction():
                return self._end(question, waiter, at.wall)
            case MarkersWritten():
                return self._on_markers(question, at.wall)
            case InitProducer():
                return self._init(question, waiter, at.wall)
            case DescribeTransaction(id_):
                found = self.transactions.get(id_)
                unknown = Refusal(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
                return (Tell(waiter, unknown if found is None else Listed(id_, found)),)
            case ListTransactions():
                return (Tell(waiter, TransactionsListed(self._list(question, at.wall))),)
            case _:
                assert_never(question)

    def on_committed(self, then: object, at: Moment) -> Acts:
        assert isinstance(then, Decided)
        id_, prepared = then
        if self.transactions.get(id_) != prepared:
            return ()  # ordered before, and finished since
        self._missing[id_] = dict.fromkeys(prepared.partitions)
        if not prepared.partitions:
            return self._complete(id_, prepared, at.wall)
        producer = Producer(prepared.producer_id, prepared.epoch)
        commit = prepared.status is Status.PREPARE_COMMIT
        order = SendMarkers(id_, producer, commit, prepared.partitions, prepared.version)
        return (Order(order),)

    def on_refused(self, then: object, refusal: Refusal, at: Moment) -> Acts:
        raise AssertionError(then)  # nothing comes back but Decided, and that waits for ever

    def on_ticked(self, at: Moment) -> Acts:
        acts = self._give_up_waiting(at.now)
        if self._check_at is not None and at.now < self._check_at:
            return acts
        self._check_at = Millis(at.now + self._rules.timeout_check_ms)
        return acts + self._look_round(at)

    def _look_round(self, at: Moment) -> Acts:
        """T16, T17."""
        acts: Acts = ()
        self._open = {
            id_: self._seen(id_, each, at.now)
            for id_, each in self.transactions.items()
            if each.status is Status.ONGOING
        }
        for id_, each in tuple(self.transactions.items()):
            if id_ in self._open:
                if _open_for_ms(self._open[id_], at) > each.timeout_ms:
                    acts += self._abort_over_its_head(id_, each, at.wall)
            elif each.status in PREPARED and id_ not in self._missing:
                acts += (Await(Decided(id_, each)),)  # its completion could not be written
            elif each.status in IDLE and at.wall - each.changed_at >= self._rules.expiration_ms:
                acts += (Write((record_of(id_, None),), None),)
        return acts

    def _seen(self, id_: str, transaction: Transaction, now: Millis) -> Open:
        before = self._open.get(id_)
        if before is None or before.started_at != transaction.started_at:
            return Open(transaction.started_at, now)
        return before

    def next_deadline(self) -> Millis | None:
        if self._patience_ends_at is None or self._check_at is None:
            return self._check_at
        return min(self._patience_ends_at, self._check_at)

    # T10

    def _init(self, ask: InitProducer, waiter: Waiter, wall: WallMillis) -> Acts:
        id_ = ask.transactional_id
        if not 0 < ask.timeout_ms <= self._rules.timeout_max_ms:
            refused = Refusal(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"a transaction's time-out is above 0 and at most {self._rules.timeout_max_ms} ms",
            )
            return (Tell(waiter, refused),)
        held = self.transactions.get(id_)
        if held is None:
            if ask.fresh is None:
                return (Tell(waiter, NeedsProducerId()),)
            return self._begin_anew(id_, Producer(ask.fresh, ProducerEpoch(0)), ask, waiter, wall)
        if ask.current is not None and not _is_known(held, ask.current):
            return (Tell(waiter, FENCED),)
        if held.status in PREPARED:
            return (Tell(waiter, BUSY),)
        if held.status is Status.ONGOING:
            return (*self._abort_over_its_head(id_, held, wall), Tell(waiter, BUSY))
        current = ask.current
        if held.is_exhausted and (current is None or current.epoch == held.epoch):
            if ask.fresh is None:
                return (Tell(waiter, NeedsProducerId()),)
            return self._begin_anew(id_, Producer(ask.fresh, ProducerEpoch(0)), ask, waiter, wall)
        if current is None or current.epoch == held.epoch:
            raised = Producer(held.producer_id, ProducerEpoch(held.epoch + 1))
            return self._begin_anew(id_, raised, ask, waiter, wall)
        if current.epoch == self._last_epochs.get(id_):
            return (Tell(waiter, Producer(held.producer_id, held.epoch)),)
        return (Tell(waiter, FENCED),)

    def _begin_anew(
        self, id_: str, producer: Producer, ask: InitProducer, waiter: Waiter, wall: WallMillis
    ) -> Acts:
        held = self.transactions.get(id_)
        if ask.current is None:
            self._last_epochs.pop(id_, None)
        else:
            self._last_epochs[id_] = ask.current.epoch
        after = Transaction(producer.producer_id, producer.epoch, ask.timeout_ms, changed_at=wall)
        if held is not None:
            is_rotated = held.producer_id != producer.producer_id
            previous = held.producer_id if is_rotated else held.previous_id
            after = after._replace(previous_id=previous, version=held.version)
        return (Write((record_of(id_, after),), Tell(waiter, producer)),)

    # T11, T12

    def _add(self, ask: AddPartitions, waiter: Waiter, at: Moment) -> Acts:
        id_ = ask.transactional_id
        held = self.transactions.get(id_)
        before = self._waiting.get(id_, ())
        is_ending = held is not None and held.status in PREPARED and _may_wait(held, ask)
        if is_ending and len(before) < TRANSACTION_WAITING_MAX:
            waiting = Waiting(ask, waiter, Millis(at.now + PATIENCE_MS))
            self._waiting[id_] = (*before, waiting)
            if self._patience_ends_at is None:
                self._patience_ends_at = waiting.until
            return ()
        _, acts = _added(held, ask, waiter, at.wall)
        return acts

    def _give_up_waiting(self, now: Millis) -> Acts:
        if self._patience_ends_at is None or now < self._patience_ends_at:
            return ()
        waiting = [(id_, each) for id_, all_ in self._waiting.items() for each in all_]
        self._waiting = {}
        for id_, each in waiting:
            if each.until > now:
                self._waiting[id_] = (*self._waiting.get(id_, ()), each)
        left = [each.until for _, each in waiting if each.until > now]
        self._patience_ends_at = min(left, default=None)
        return tuple(Tell(each.waiter, BUSY) for _, each in waiting if each.until <= now)

    # T13 to T16

    def _end(self, ask: EndTransaction, waiter: Waiter, wall: WallMillis) -> Acts:
        id_ = ask.transactional_id
        held = self.transactions.get(id_)
        if held is None:
            return (Tell(waiter, Refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING)),)
        judged = ending.judge(held, ask, wall)
        match judged:
            case Begin(prepared):
                after = prepared.completed(wall)
                answer = Tell(waiter, Producer(after.producer_id, after.epoch))
                return self._prepare(id_, prepared, answer)
            case Done(producer):
                return (Tell(waiter, producer),)
            case NeedsProducerId() | Refusal():
                return (Tell(waiter, judged),)
            case _:
                assert_never(judged)

    def _abort_over_its_head(self, id_: str, held: Transaction, wall: WallMillis) -> Acts:
        self._last_epochs.pop(id_, None)
        return self._prepare(id_, ending.fenced(held, wall, version=self._rules.version), None)

    def _prepare(self, id_: str, prepared: Transaction, then: object) -> Acts:
        return (Write((record_of(id_, prepared),), then), Await(Decided(id_, prepared)))

    # T15

    def _on_markers(self, told: MarkersWritten, wall: WallMillis) -> Acts:
        id_ = told.transactional_id
        held = self.transactions.get(id_)
        missing = self._missing.get(id_)
        if held is None or missing is None or held.status not in PREPARED:
            return ()
        if told.producer != (held.producer_id, held.epoch):
            return ()
        for partition in told.partitions:
            missing.pop(partition, None)
        return () if missing else self._complete(id_, held, wall)

    def _complete(self, id_: str, prepared: Transaction, wall: WallMillis) -> Acts:
        """And those that wait for it go on: with what it will be, once that is written."""
        self._missing.pop(id_, None)
        held: Transaction | None = prepared.completed(wall)
        acts: Acts = (Write((record_of(id_, held),), None),)
        for ask, waiter, _ in self._waiting.pop(id_, ()):
            held, more = _added(held, ask, waiter, wall)
            acts += more
        return acts

    def _list(self, asked: ListTransactions, wall: WallMillis) -> tuple[Listed, ...]:
        return tuple(
            Listed(id_, each)
            for id_, each in self.transactions.items()
            if (asked.statuses is None or each.status in asked.statuses)
            and (asked.producer_ids is None or each.producer_id in asked.producer_ids)
            and (asked.open_for_ms < 0 or _open_for(each, wall) > asked.open_for_ms)
        )


def _open_for_ms(seen: Open, at: Moment) -> int:
    """By when it was begun, and at least as long as we have seen it: the clock of the coordinator
    that wrote down when may have been ahead of ours."""
    return max(at.wall - seen.started_at, at.now - seen.seen_at)


def _may_wait(held: Transaction, ask: AddPartitions) -> bool:
    """Not what another broker asks: there, the questions of other producers stand behind it."""
    producer = Producer(held.producer_id, held.epoch)
    return ask.version < ending.RAISES_EPOCH and not ask.verify_only and ask.producer == producer


def _added(
    held: Transaction | None, ask: AddPartitions, waiter: Waiter, wall: WallMillis
) -> tuple[Transaction | None, Acts]:
    """T11, T12: what the transaction is then, and what is to be done for it."""
    if held is None or held.producer_id != ask.producer.producer_id:
        return held, (Tell(waiter, Refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING)),)
    if held.epoch != ask.producer.epoch:
        return held, (Tell(waiter, FENCED),)
    if held.status in PREPARED:
        return held, (Tell(waiter, BUSY),)
    is_open = held.status is Status.ONGOING
    known = held.partitions if is_open else ()
    missing = tuple(each for each in ask.partitions if each not in known)
    if ask.verify_only:
        return held, (Tell(waiter, PartitionsAdded(missing)),)
    if is_open and not missing:
        return held, (Tell(waiter, PartitionsAdded()),)
    after = held._replace(
        status=Status.ONGOING,
        partitions=known + tuple(dict.fromkeys(missing)),
        started_at=held.started_at if is_open else wall,
        changed_at=wall,
        version=ask.version,
    )
    record = record_of(ask.transactional_id, after)
    return after, (Write((record,), Tell(waiter, PartitionsAdded())),)


def _open_for(transaction: Transaction, wall: WallMillis) -> int:
    is_open = transaction.status in (Status.ONGOING, *PREPARED)
    return wall - transaction.started_at if is_open else -1


def _is_known(held: Transaction, current: Producer) -> bool:
    """KIP-360: the one of now, or the one before it that had used up its epochs."""
    if current.producer_id == held.producer_id:
        return True
    used_up = Transaction(ProducerId(0), current.epoch, 0).is_exhausted
    return current.producer_id == held.previous_id and used_up
