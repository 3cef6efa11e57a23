"""Which of the fetched batches a reader sees. Pure.

Control batches never. With read_committed not those of aborted transactions: a fetch names them by
producer and first offset, and each lasts until that producer's next marker (KIP-98).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cotidal.messages.batch import Batches, BatchHeader
from cotidal.messages.rpc.fetch import AbortedTransaction


def visible_batches(
    batches: Batches, aborted: Sequence[AbortedTransaction]
) -> Iterator[tuple[BatchHeader, int]]:
    """Headers, and where in the data their batches begin."""
    coming = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
    aborting: set[int] = set()
    begin = 0
    for header in batches.headers:
        while coming and coming[-1].first_offset <= header.last_offset:
            aborting.add(coming.pop().producer_id)
        if header.is_control:
            aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            yield header, begin
        begin += header.size_bytes
