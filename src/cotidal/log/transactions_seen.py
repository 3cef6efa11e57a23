"""Which batches of transactions may go, told while a log is walked in order. Pure.

Data of an aborted transaction goes at once. The marker that ends a transaction stays as long as a
batch of it does: a reader of the data needs to know how it ended. When nothing else is left of a
transaction, its marker may go too, after delete.retention.ms (KIP-534).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from cotidal.messages.batch import BatchHeader, Marker
from cotidal.messages.producers import AbortedTransaction


class TransactionsSeen:
    __slots__ = ("_aborted", "_coming", "_committed", "kept_aborted")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """``aborted``: all those that overlap with what will be walked."""
        self._coming = deque(sorted(aborted, key=lambda each: each.first_offset))
        self._aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        """Open aborted ones by producer, and whether a batch of theirs was met."""
        self._committed: dict[int, None] = {}
        """Producers with an open committed transaction of which a batch was met."""
        self.kept_aborted: list[AbortedTransaction] = []
        """Those of whose data something was met, in the order of their markers."""

    def is_aborted(self, header: BatchHeader) -> bool:
        """A batch that is no marker: does it belong to an aborted transaction?"""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        found = self._aborted.get(header.producer_id)
        if found is None:
            self._committed[header.producer_id] = None
            return False
        self._aborted[header.producer_id] = (found[0], True)
        return True

    def is_last_of_its_own(self, header: BatchHeader, marker: Marker | None) -> bool:
        """A control batch: is it all that is left of its transaction?"""
        self._begin_up_to(header.last_offset)
        if marker is None:  # emptied before
            return header.record_count == 0
        if marker.committed:
            met = header.producer_id in self._committed
            self._committed.pop(header.producer_id, None)
            return not met
        found = self._aborted.pop(header.producer_id, None)
        if found is None or not found[1]:
            return True
        self.kept_aborted.append(found[0])
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._coming and self._coming[0].first_offset <= offset:
            begun = self._coming.popleft()
            self._aborted.setdefault(begun.producer_id, (begun, False))
