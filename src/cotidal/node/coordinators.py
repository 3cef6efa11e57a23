"""Coordinators: a machine for each partition of a coordinator's topic that is led here. Pure.

    led here      -> Loading   the log is read piece by piece and replayed; questions wait for a
                               moment, then are told COORDINATOR_LOAD_IN_PROGRESS
                  -> Active    asks are answered; what is decided is appended to that very log, as
                               any producer's records with acks=all, and replayed
    led no more   -> gone      whoever waits is told NOT_COORDINATOR and looks for the next one

  DURABLE_BEFORE_TOLD  an answer leaves when the high watermark has passed all that was appended
                       before it. What takes longer than offsets.commit.timeout.ms is refused, and
                       may be committed all the same.

Which machine it is, is the topic's matter: node/groups.py, node/transactions.py.
Owns of the state: coordinators, coordinators_due.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, Protocol, assert_never

from cotidal.core.coordinator import (
    NOBODY,
    Acts,
    Await,
    Coordinator,
    InTransaction,
    KeyedRecord,
    Moment,
    Order,
    Tell,
    Waiter,
    Write,
    partition_of,
)
from cotidal.core.partition.leader import ACKS_ALL, MarkerAsk
from cotidal.errors import ErrorCode, Refusal
from cotidal.limits import COORDINATOR_HELD_MAX, COORDINATOR_LOAD_BYTES
from cotidal.messages.batch import Batches
from cotidal.node import produce
from cotidal.node.effects import Note, Read, Want
from cotidal.node.events import ReadDone
from cotidal.node.hosting import Hosted
from cotidal.node.state import NodeState
from cotidal.values import (
    NO_PRODUCER_ID,
    Millis,
    Offset,
    ProducerId,
    TopicPartition,
    WallMillis,
)

LOAD_RETRY_MS: Final = 1_000
LOAD_PATIENCE_MS: Final = 500
"""A question waits for a coordinator that loads; after this long it is told so, and asked again."""
NEVER: Final = Millis(1 << 62)

_WHEN_NOT_WRITTEN: Final = {
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_PRODUCER_EPOCH: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE: ErrorCode.INVALID_TXN_STATE,
}
"""What the asker is told when a leader does not take the records."""

NOT_COORDINATOR: Final = Refusal(ErrorCode.NOT_COORDINATOR)
LOADING: Final = Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


class ReadBatch(Protocol):
    """Records, or the end of a transaction."""

    @property
    def records(self) -> tuple[tuple[Any, Any | None], ...]: ...

    @property
    def producer_id(self) -> ProducerId:
        """In whose transaction, or whose has ended."""

    @property
    def committed(self) -> bool | None:
        """How it has ended; None: this is no end."""


class ReadLog(Protocol):
    """What some batches of a coordinator's log hold."""

    @property
    def next_offset(self) -> Offset: ...

    @property
    def batches(self) -> tuple[ReadBatch, ...]: ...

    @property
    def unreadable(self) -> int: ...


class CoordinatorLog(NamedTuple):
    """How records become bytes and back. Given to a node: it knows no bytes itself."""

    write: Callable[[Iterable[tuple[Any, Any | None]], WallMillis, InTransaction | None], Batches]
    read: Callable[[str, bytes | memoryview], ReadLog]
    """Of the topic of this name."""
    mark: Callable[[MarkerAsk, WallMillis], Batches]
    """The control batch that ends a transaction."""


class Asker(Protocol):
    """Whoever put a question, or one part of it."""

    def answer(self, answer: object) -> None: ...


class Held(NamedTuple):
    """A question that waits until the coordinator is loaded."""

    question: object
    asker: Asker
    until: Millis


class InFlight(NamedTuple):
    """What follows when the high watermark has come to ``end_offset``."""

    end_offset: Offset
    deadline: Millis
    then: object


class Given:
    """Its time was up: nothing follows any more."""


class Shard:
    """One partition's coordinator."""

    __slots__ = (
        "askers",
        "end_offset",
        "hosted",
        "in_flight",
        "is_reading",
        "load_end",
        "machine",
        "retry_at",
    )

    def __init__(self, hosted: Hosted, machine: Coordinator) -> None:
        self.hosted = hosted
        self.machine = machine
        self.end_offset = hosted.replica.start_offset
        """After the last record that has been replayed."""
        self.load_end: Offset | None = hosted.replica.next_offset
        """While it loads: where that ends."""
        self.is_reading = False
        self.retry_at: Millis | None = None
        """While it loads: a read has failed, and is tried again then."""
        self.in_flight: deque[InFlight] = deque()
        self.askers: dict[Waiter, Asker] = {}


class Loading(NamedTuple):
    """A read of a coordinator's log."""

    shard: Shard


class Coordinators:
    """The coordinators of one node."""

    __slots__ = (
        "held",
        "load_bytes",
        "log",
        "make",
        "obey",
        "on_active",
        "shards",
        "timeout_ms",
        "waiter",
        "wake",
    )

    def __init__(
        self,
        log: CoordinatorLog,
        make: Callable[[str], Coordinator],
        on_active: Callable[[Shard], None],
        obey: Callable[[TopicPartition, object], None],
        *,
        load_bytes: int,
        timeout_ms: int,
    ) -> None:
        self.log = log
        self.load_bytes = min(load_bytes, COORDINATOR_LOAD_BYTES)
        self.make = make
        """The machine that goes with a topic."""
        self.on_active = on_active
        """Told of each that has loaded its log, before it is asked anything."""
        self.obey = obey
        """Told of each order, and of the partition whose coordinator gives it."""
        self.timeout_ms = timeout_ms
        self.shards: dict[TopicPartition, Shard] = {}
        self.held: dict[TopicPartition, list[Held]] = {}
        self.waiter = 0
        self.wake = NEVER
        """Not exact: what was due may have been put off; then a tick finds nothing."""


def pump(state: NodeState) -> None:
    """At the end of a step: partitions that have moved in it."""
    due, state.coordinators_due = state.coordinators_due, {}
    shards = state.coordinators.shards
    for partition in due:
        hosted = state.hosted.get(partition)
        leads = hosted is not None and hosted.replica.leadership is not None
        shard = shards.get(partition)
        if shard is not None and (shard.hosted is not hosted or not leads):
            _unload(state, partition, shard)
            shard = None
        if hosted is None or not leads:
            continue
        if shard is None:
            shard = shards[partition] = Shard(hosted, state.coordinators.make(partition.topic))
            _load(state, shard)
        elif shard.load_end is not None:
            _load(state, shard)
        else:
            _commit(state, shard)


def ask(state: NodeState, partition: TopicPartition, question: object, asker: Asker) -> None:
    """Put a question to the coordinator of a partition; it answers now or later."""
    shard = state.coordinators.shards.get(partition)
    if shard is not None and shard.load_end is None:
        state.coordinators.waiter += 1
        waiter = Waiter(state.coordinators.waiter)
        shard.askers[waiter] = asker
        _obey(state, shard, shard.machine.ask(question, waiter, _moment(state)))
    elif shard is not None or is_opening(state, partition):
        _hold(state, partition, question, asker)
    else:
        asker.answer(NOT_COORDINATOR)


def is_opening(state: NodeState, partition: TopicPartition) -> bool:
    """We shall be its coordinator as soon as the log is open."""
    told = state.controller.committed.partition(*partition)
    leads = told is not None and told.leader == state.config.node_id
    return leads and partition in state.opening


def _hold(state: NodeState, partition: TopicPartition, question: object, asker: Asker) -> None:
    """Most logs are read in milliseconds, and a client that is refused waits for seconds."""
    duty = state.coordinators
    held = duty.held.setdefault(partition, [])
    if len(held) >= COORDINATOR_HELD_MAX:
        asker.answer(LOADING)
        return
    until = Millis(state.now + LOAD_PATIENCE_MS)
    held.append(Held(question, asker, until))
    duty.wake = min(duty.wake, until)


def _release(state: NodeState, partition: TopicPartition) -> None:
    """What was held is asked now, or refused if this is not its place any more."""
    for held in state.coordinators.held.pop(partition, ()):
        ask(state, partition, held.question, held.asker)


def _give_up_held(state: NodeState) -> None:
    duty = state.coordinators
    for partition, held in tuple(duty.held.items()):
        late = [each for each in held if each.until <= state.now]
        duty.held[partition] = [each for each in held if each.until > state.now]
        if not duty.held[partition]:
            del duty.held[partition]
        else:
            duty.wake = min(duty.wake, duty.held[partition][0].until)
        for each in late:
            each.asker.answer(LOADING)


def place_of(state: NodeState, topic: str, key: str) -> TopicPartition | None:
    """The partition that has a key's coordinator; None while there is no such topic."""
    known = state.controller.committed.topics.get(topic)
    if known is None:
        return None
    return TopicPartition(topic, partition_of(key, len(known.partitions)))


def tell_all(state: NodeState, topic: str, news: object) -> None:
    """Something that every coordinator of a topic shall know, and nobody waits for."""
    for partition, shard in tuple(state.coordinators.shards.items()):
        if partition.topic == topic and shard.load_end is None:
            tell(state, shard, news)


def tell(state: NodeState, shard: Shard, news: object) -> None:
    _obey(state, shard, shard.machine.ask(news, NOBODY, _moment(state)))


def on_marker(
    state: NodeState, partition: TopicPartition, ask: MarkerAsk, end_offset: Offset
) -> None:
    """The leader of this partition has given the end of a transaction its place in the log."""
    shard = state.coordinators.shards.get(partition)
    if shard is None:
        return  # it is loaded with the rest
    if shard.load_end is not None:
        shard.load_end = end_offset
        return
    state.tally.coordinator_events += 1
    shard.machine.replay_end(ask.producer_id, committed=ask.committed)
    shard.end_offset = end_offset


def led(state: NodeState, topic: str) -> tuple[TopicPartition, ...]:
    """The partitions of a topic whose coordinator is here, loaded or not."""
    return tuple(each for each in state.coordinators.shards if each.topic == topic)


def on_ticked(state: NodeState) -> None:
    duty = state.coordinators
    if state.now < duty.wake:
        return
    duty.wake = NEVER
    if duty.held:
        _give_up_held(state)
    for shard in tuple(duty.shards.values()):
        if shard.retry_at is not None and shard.retry_at <= state.now:
            shard.retry_at = None
            _load(state, shard)
        if shard.load_end is None:
            _give_up_late(state, shard)
            due = shard.machine.next_deadline()
            if due is not None and due <= state.now:
                _obey(state, shard, shard.machine.on_ticked(_moment(state)))
        _set_wake(state, shard)


def next_deadline(state: NodeState) -> Millis | None:
    wake = state.coordinators.wake
    return None if wake == NEVER else wake


def _moment(state: NodeState) -> Moment:
    return Moment(state.now, state.wall)


def _set_wake(state: NodeState, shard: Shard) -> None:
    """When this one is next due."""
    duty = state.coordinators
    if shard.load_end is not None:
        if shard.retry_at is not None:
            duty.wake = min(duty.wake, shard.retry_at)
        return
    due = shard.machine.next_deadline()
    if due is not None and due < duty.wake:
        duty.wake = due
    for waits in shard.in_flight:
        if waits.deadline != NEVER and not isinstance(waits.then, Given):
            duty.wake = min(duty.wake, waits.deadline)
            break


# Loading


def _load(state: NodeState, shard: Shard) -> None:
    """Read on, unless a read is under way or what is to be read is not written yet."""
    replica = shard.hosted.replica
    assert shard.load_end is not None
    if shard.end_offset >= shard.load_end:
        _activate(state, shard)
        return
    readable = min(shard.load_end, replica.end_offset)
    if shard.is_reading or shard.retry_at is not None or readable <= shard.end_offset:
        return
    shard.is_reading = True
    size = state.coordinators.load_bytes
    want = Want(replica.partition, shard.end_offset, size, readable)
    token = state.next_read_token(Loading(shard))
    state.out.append(Read(token, (want,), size))


def on_read_done(state: NodeState, loading: Loading, event: ReadDone) -> None:
    shard = loading.shard
    partition = shard.hosted.replica.partition
    if state.coordinators.shards.get(partition) is not shard:
        return  # led no more
    shard.is_reading = False
    (data,) = event.results
    assert isinstance(data, bytes | memoryview | str), "its Read is not to be sent"
    read = None if isinstance(data, str) else state.coordinators.log.read(partition.topic, data)
    if read is None or (data and read.next_offset <= shard.end_offset):
        why = data if isinstance(data, str) else "a batch fails its checksum"
        told = f"the coordinator of {partition} cannot read its log: {why}"
        state.out.append(Note("error", told))
        shard.retry_at = Millis(state.now + LOAD_RETRY_MS)
        _set_wake(state, shard)
        return
    for batch in read.batches:
        if batch.committed is not None:
            state.tally.coordinator_events += 1
            shard.machine.replay_end(batch.producer_id, committed=batch.committed)
        state.tally.coordinator_events += len(batch.records)
        for key, value in batch.records:
            shard.machine.replay(KeyedRecord(key, value), batch.producer_id)
    if read.unreadable:
        told = f"the coordinator of {partition} steps over {read.unreadable} unreadable records"
        state.out.append(Note("warning", told))
    assert shard.load_end is not None
    # Nothing more: the last offsets are of records that compaction has taken away.
    shard.end_offset = read.next_offset if data else shard.load_end
    _load(state, shard)


def _activate(state: NodeState, shard: Shard) -> None:
    shard.load_end = None
    _obey(state, shard, shard.machine.on_loaded(_moment(state)))
    state.coordinators.on_active(shard)
    _release(state, shard.hosted.replica.partition)


def _unload(state: NodeState, partition: TopicPartition, shard: Shard) -> None:
    del state.coordinators.shards[partition]
    for asker in shard.askers.values():
        asker.answer(NOT_COORDINATOR)
    _release(state, partition)


# Deciding


def _obey(state: NodeState, shard: Shard, acts: Acts) -> None:
    """What a machine says to one thing that it was told."""
    state.tally.coordinator_events += 1
    todo = deque(acts)
    while todo:
        act = todo.popleft()
        match act:
            case Tell():
                _tell(state, shard, act)
            case Write():
                refused = _append(state, shard, act)
                if refused is not None:
                    todo.extendleft(reversed(_when_refused(state, shard, act.then, refused)))
            case Await(then):
                shard.in_flight.append(InFlight(shard.end_offset, NEVER, then))
                state.coordinators_due[shard.hosted.replica.partition] = None
            case Order(order):
                state.coordinators.obey(shard.hosted.replica.partition, order)
            case _:
                assert_never(act)
    _set_wake(state, shard)


def _tell(state: NodeState, shard: Shard, tell: Tell) -> None:
    if shard.hosted.replica.high_watermark >= shard.end_offset or _says_nothing(tell.answer):
        _answer(shard, tell)
    else:
        shard.in_flight.append(InFlight(shard.end_offset, _deadline(state), tell))


def _says_nothing(answer: object) -> bool:
    """A refusal that reveals nothing of what is decided need not wait for it."""
    return isinstance(answer, Refusal) and answer.error is ErrorCode.COORDINATOR_NOT_AVAILABLE


def _answer(shard: Shard, tell: Tell) -> None:
    asker = shard.askers.pop(tell.waiter, None)
    if asker is not None:
        asker.answer(tell.answer)


def _append(state: NodeState, shard: Shard, write: Write) -> Refusal | None:
    """Give the records their offsets and replay them; the disk has them at the end of the step."""
    transaction = write.transaction
    batches = state.coordinators.log.write(write.records, state.wall, transaction)
    admitted = produce.admit(
        state,
        shard.hosted,
        batches,
        ACKS_ALL,
        state.wall,
        None if transaction is None else transaction.guard,
        by_coordinator=True,
    )
    if isinstance(admitted, Refusal):
        error = _WHEN_NOT_WRITTEN.get(admitted.error, ErrorCode.UNKNOWN_SERVER_ERROR)
        return Refusal(error, admitted.text)
    producer_id = NO_PRODUCER_ID if transaction is None else transaction.producer_id
    state.tally.coordinator_events += len(write.records)
    for record in write.records:
        shard.machine.replay(record, producer_id)
    shard.end_offset = admitted.next_offset
    if write.then is not None:
        shard.in_flight.append(InFlight(shard.end_offset, _deadline(state), write.then))
    return None


def _when_refused(state: NodeState, shard: Shard, then: object, refused: Refusal) -> Acts:
    if then is None:
        return ()
    if isinstance(then, Tell):
        return (Tell(then.waiter, refused),)
    state.tally.coordinator_events += 1
    return shard.machine.on_refused(then, refused, _moment(state))


def _commit(state: NodeState, shard: Shard) -> None:
    reached = shard.hosted.replica.high_watermark
    while shard.in_flight and shard.in_flight[0].end_offset <= reached:
        then = shard.in_flight.popleft().then
        if isinstance(then, Tell):
            _answer(shard, then)
        elif not isinstance(then, Given):
            _obey(state, shard, shard.machine.on_committed(then, _moment(state)))


def _give_up_late(state: NodeState, shard: Shard) -> None:
    """Refuse what has waited for too long for its commit."""
    refused = Refusal(
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        f"not committed within {state.coordinators.timeout_ms} ms; it may still be",
    )
    late: list[object] = []
    for position, waits in enumerate(shard.in_flight):
        if waits.deadline == NEVER:
            continue
        if waits.deadline > state.now:
            break
        if not isinstance(waits.then, Given):
            late.append(waits.then)
            shard.in_flight[position] = waits._replace(then=Given())
    for then in late:
        if isinstance(then, Tell):
            _answer(shard, Tell(then.waiter, refused))
        else:
            _obey(state, shard, shard.machine.on_refused(then, refused, _moment(state)))


def _deadline(state: NodeState) -> Millis:
    return Millis(state.now + state.coordinators.timeout_ms)
