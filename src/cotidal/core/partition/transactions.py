"""The transactions of one partition: which are open, how far is stable, which were aborted. Pure.

  LSO_MONOTONIC       what is stable passes no transaction whose end is not committed
  TXN_ABORTED_UNSEEN  what was aborted is entered in the index that readers are told of

The rules T1 to T6 are in docs/spec/transactions.md. A transaction is open from its first batch on.
Its marker ends it, and it is still *unsettled* until the high watermark has passed the marker:
until then the marker may be cut, and the transaction would be open again (T2).

A batch that would open one must have been verified by the coordinator (T6). Whoever asks the
coordinator takes a guard first; a marker or another opening in between makes it worthless. Not so
a marker that raises the epoch, for a guard of the raised one: that producer was told of the end
already, and its next transaction may be asked about before the marker is here.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.messages.producers import AbortedTransaction
from cotidal.values import NO_OFFSET, Offset, ProducerEpoch, ProducerId, Sequence


class Unsettled(NamedTuple):
    """Ended by a marker that is not committed yet."""

    first_offset: Offset
    marker_offset: Offset


class Guard(NamedTuple):
    """Held while the coordinator is asked about a producer."""

    number: int
    epoch: ProducerEpoch
    lowest_sequence: Sequence
    """Of all batches that wait for this answer: none may be written before that one."""


class Transactions:
    __slots__ = ("_aborted", "_guards", "_guards_given", "_open", "_unsettled", "first_unstable")

    def __init__(self) -> None:
        self._open: dict[ProducerId, Offset] = {}
        """Ascending in first offset, as batches are."""
        self._unsettled: list[Unsettled] = []
        """Ascending in marker offset."""
        self._aborted: list[AbortedTransaction] = []
        """To be entered in the index once their markers are written."""
        self._guards: dict[ProducerId, Guard] = {}
        self._guards_given = 0
        self.first_unstable: Offset | None = None
        """The least first offset of all that are open or unsettled."""

    @property
    def is_settled(self) -> bool:
        """Every end that this partition knows of is committed."""
        return not self._unsettled

    def first_offset(self, producer_id: ProducerId) -> Offset:
        """Of the producer's open transaction; -1 when there is none."""
        return self._open.get(producer_id, NO_OFFSET)

    def is_open(self, producer_id: ProducerId) -> bool:
        return producer_id in self._open

    def open(self, producer_id: ProducerId, first_offset: Offset) -> None:
        """T1."""
        self._guards.pop(producer_id, None)
        self._open[producer_id] = first_offset
        self._find_first()

    def end(
        self,
        producer_id: ProducerId,
        marker_offset: Offset,
        *,
        committed: bool,
        next_epoch: ProducerEpoch | None = None,
    ) -> None:
        """T3. ``next_epoch``: a guard of this epoch is about what follows (T6)."""
        held = self._guards.get(producer_id)
        if held is not None and held.epoch != next_epoch:
            del self._guards[producer_id]
        first = self._open.pop(producer_id, None)
        if first is None:
            return
        if not committed:
            stable = next(iter(self._open.values()), Offset(marker_offset + 1))
            self._aborted.append(AbortedTransaction(producer_id, first, marker_offset, stable))
        self._unsettled.append(Unsettled(first, marker_offset))

    def settle(self, high_watermark: Offset) -> None:
        """T2: these markers are committed."""
        while self._unsettled and self._unsettled[0].marker_offset < high_watermark:
            del self._unsettled[0]
        self._find_first()

    def take_aborted(self, end_offset: Offset) -> tuple[AbortedTransaction, ...]:
        """Those whose markers are written now, in their order."""
        taken: list[AbortedTransaction] = []
        while self._aborted and self._aborted[0].last_offset < end_offset:
            taken.append(self._aborted.pop(0))
        return tuple(taken)

    # T6

    def guard(self, producer_id: ProducerId, epoch: ProducerEpoch, sequence: Sequence) -> int:
        """Take a guard for a batch that waits for the coordinator's word; others may share it."""
        held = self._guards.get(producer_id)
        if held is None or held.epoch != epoch:
            self._guards_given += 1
            held = Guard(self._guards_given, epoch, sequence)
        lowest = Sequence(min(held.lowest_sequence, sequence))
        self._guards[producer_id] = held._replace(lowest_sequence=lowest)
        return held.number

    def guarded(self, producer_id: ProducerId, number: int | None) -> Guard | None:
        """The guard, if nothing has made it worthless since it was taken."""
        held = self._guards.get(producer_id)
        return held if held is not None and held.number == number else None

    def release(self, producer_id: ProducerId, number: int) -> None:
        """The coordinator did not confirm: whoever shares this guard asks again."""
        if self.guarded(producer_id, number) is not None:
            del self._guards[producer_id]

    def _find_first(self) -> None:
        first = next(iter(self._open.values()), None)
        for each in self._unsettled:
            if first is None or each.first_offset < first:
                first = each.first_offset
        self.first_unstable = first
