"""How a transaction is asked to end, and how its end begins. Pure. Rules T13, T14, T16.

``judge`` looks at who asks and at the state, and says what is to be done: begin the end, answer as
done already, or refuse. Nothing is changed here.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from cotidal.core.transactions.asks import EndTransaction, NeedsProducerId, Producer
from cotidal.core.transactions.transaction import (
    EPOCH_LAST,
    EPOCH_MAX,
    PREPARED,
    Status,
    Transaction,
)
from cotidal.errors import ErrorCode, Refusal
from cotidal.values import NO_PRODUCER_ID, ProducerEpoch, ProducerId, WallMillis

RAISES_EPOCH: Final = 2
"""The first version of transactions in which every end raises the epoch (KIP-890)."""


class Done(NamedTuple):
    """It ended like that before: the answer was lost."""

    producer: Producer


class Begin(NamedTuple):
    """Write this, and when it is committed the markers."""

    prepared: Transaction


Judged: TypeAlias = Begin | Done | NeedsProducerId | Refusal

FENCED: Final = Refusal(ErrorCode.PRODUCER_FENCED)
BUSY: Final = Refusal(ErrorCode.CONCURRENT_TRANSACTIONS)

_ENDED: Final = {True: Status.COMPLETE_COMMIT, False: Status.COMPLETE_ABORT}
_ENDING: Final = {True: Status.PREPARE_COMMIT, False: Status.PREPARE_ABORT}


def judge(held: Transaction, ask: EndTransaction, wall: WallMillis) -> Judged:
    if ask.version >= RAISES_EPOCH:
        return _judge_raising(held, ask, wall)
    if ask.producer.producer_id != held.producer_id:
        return Refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if ask.producer.epoch != held.epoch:
        return FENCED
    if held.status is Status.ONGOING:
        return Begin(prepared(held, wall, commit=ask.commit, version=ask.version))
    if held.status is _ENDED[ask.commit]:
        return Done(ask.producer)
    if held.status is _ENDING[ask.commit]:
        return BUSY
    return _wrong_state(held, ask)


def _judge_raising(held: Transaction, ask: EndTransaction, wall: WallMillis) -> Judged:
    """T14: the epoch tells a repetition from the end of the next transaction."""
    asker = ask.producer
    is_rotated = (
        held.previous_id == asker.producer_id and asker.epoch == EPOCH_LAST and held.epoch == 0
    )
    is_repeated = is_rotated or asker.epoch + 1 == held.epoch
    if asker.producer_id != held.producer_id and not is_rotated:
        return Refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if held.status in PREPARED:
        return BUSY  # also to the next end: who has its answer may go on before the markers are out
    if is_repeated and held.status in _ENDED.values():
        if held.status is _ENDED[ask.commit]:
            return Done(Producer(held.producer_id, held.epoch))
        return _wrong_state(held, ask)
    if asker.epoch != held.epoch:
        return FENCED
    if ask.commit and held.status is not Status.ONGOING:
        return _wrong_state(held, ask)
    if held.is_exhausted and ask.fresh is None:
        return NeedsProducerId()
    return Begin(prepared(held, wall, commit=ask.commit, version=ask.version, next_id=ask.fresh))


def prepared(
    held: Transaction,
    wall: WallMillis,
    *,
    commit: bool,
    version: int,
    next_id: ProducerId | None = None,
) -> Transaction:
    """The beginning of the end, as its producer asked for it."""
    raised = min(held.epoch + 1, EPOCH_MAX) if version >= RAISES_EPOCH else held.epoch
    return held._replace(
        status=_ENDING[commit],
        epoch=ProducerEpoch(raised),
        next_id=next_id if held.is_exhausted and next_id is not None else NO_PRODUCER_ID,
        started_at=held.started_at if held.status is Status.ONGOING else wall,
        changed_at=wall,
        version=version,
    )


def fenced(held: Transaction, wall: WallMillis, *, version: int) -> Transaction:
    """Aborted over its producer's head, which is told no epoch that would let it go on.

    Where every end raises the epoch, once would not do: its own EndTxn would look like a repetition
    of this one, and be given the new epoch.
    """
    raised = held.epoch + (2 if version >= RAISES_EPOCH else 1)
    return held._replace(
        status=Status.PREPARE_ABORT,
        epoch=ProducerEpoch(min(raised, EPOCH_MAX)),
        next_id=NO_PRODUCER_ID,
        changed_at=wall,
        version=version,
    )


def _wrong_state(held: Transaction, ask: EndTransaction) -> Refusal:
    what = "commit" if ask.commit else "abort"
    return Refusal(
        ErrorCode.INVALID_TXN_STATE, f"there is nothing to {what}: its state is {held.status.word}"
    )
