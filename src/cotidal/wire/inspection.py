"""What some topics ask of the records inside a producer's batch. Pure. Off the fast path.

A batch is opened only for a topic that is compacted (every record needs a key), that bounds how old
a record may be, or that has a compression of its own. Any other topic takes batches as they come.
"""

from __future__ import annotations

from cotidal.errors import ErrorCode, MalformedFrame, Refusal
from cotidal.messages.batch import Batches, BatchHeader, RecordRules
from cotidal.values import NO_TIMESTAMP, WallMillis
from cotidal.wire.batch import read_batches
from cotidal.wire.thinning import Span, recompressed, record_bytes, record_spans


def inspected(batches: Batches, rules: RecordRules, wall: WallMillis) -> Batches | Refusal:
    """One batch, as headers alone already let it in: itself, another one with the same records, or
    why it is refused."""
    (header,) = batches.headers
    batch = bytes(batches.data)
    try:
        data = record_bytes(header, batch)
        spans = record_spans(header, data)
    except MalformedFrame as wrong:
        return Refusal(ErrorCode.INVALID_RECORD, str(wrong))
    refusal = _refused(header, spans, rules, wall)
    if refusal is not None:
        return refusal
    if rules.compression is None or rules.compression == header.compression:
        return batches
    return read_batches(recompressed(header, data, rules.compression))


def _refused(
    header: BatchHeader, spans: list[Span], rules: RecordRules, wall: WallMillis
) -> Refusal | None:
    if rules.needs_keys:
        for number, span in enumerate(spans):
            if span[4] is None:
                return Refusal(
                    ErrorCode.INVALID_RECORD,
                    f"record {number} of the batch has no key, and the topic is compacted",
                )
    if rules.timestamp_before_max_ms is None:
        return None
    for number, span in enumerate(spans):
        timestamp = header.base_timestamp + span[2]
        if timestamp != NO_TIMESTAMP and wall - timestamp > rules.timestamp_before_max_ms:
            return Refusal(
                ErrorCode.INVALID_TIMESTAMP,
                f"the timestamp {timestamp} of record {number} is more than "
                f"message.timestamp.before.max.ms={rules.timestamp_before_max_ms} behind the clock",
            )
    return None
