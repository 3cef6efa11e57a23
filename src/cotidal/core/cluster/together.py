"""Records that several batches of the metadata log write, and that count together or not at all.
Pure. KIP-868.

    Begin ... End      all of them count, from End on
    Begin ... Abort    none does
    Begin ...          undecided: whoever leads next aborts it

Our controllers decide in one batch each and have no need of them; Apache Kafka's write a new
cluster's first records so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, cast

from cotidal.core.cluster.image import MetadataRecord
from cotidal.messages.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from cotidal.values import Offset


class Batch(Protocol):
    @property
    def base_offset(self) -> Offset: ...
    @property
    def control(self) -> bool: ...
    @property
    def records(self) -> Sequence[object]: ...


Placed = tuple[Offset, MetadataRecord]


def is_undecided(records: Iterable[object], undecided: bool = False) -> bool:
    """Whether they end inside of such a transaction. ``undecided``: whether they begin in one."""
    for record in records:
        if isinstance(record, BeginTransactionRecord):
            undecided = True
        elif isinstance(record, EndTransactionRecord | AbortTransactionRecord):
            undecided = False
    return undecided


def counted(batches: Iterable[Batch]) -> Iterator[Placed]:
    """The records that count, in their order, with their offsets. Those of a transaction that is
    undecided at the end do not."""
    held: list[Placed] | None = None
    for batch in batches:
        if batch.control:
            continue
        for offset, record in enumerate(batch.records, batch.base_offset):
            placed = (Offset(offset), cast("MetadataRecord", record))
            if isinstance(record, BeginTransactionRecord):
                held = []
            elif isinstance(record, EndTransactionRecord):
                yield from held or ()
                held = None
            elif isinstance(record, AbortTransactionRecord):
                held = None
            elif held is None:
                yield placed
            else:
                held.append(placed)
