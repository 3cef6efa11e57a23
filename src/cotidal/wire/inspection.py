"""What some topics ask of the records inside a producer's batch. Pure. Off the fast path.

A batch is opened only for a topic that is compacted (every record needs a key), that bounds how old
a record may be, or that has a compression of its own. Any other topic takes batches as they come.
"""

from __future__ import annotations

from cotidal.errors import ErrorCode, MalformedFrame, RecordFault, Refusal
from cotidal.limits import RECORD_FAULTS_MAX
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
    """With every record that is at fault, up to a bound. As Kafka: one with a wrong time decides
    the error."""
    error, faults = ErrorCode.INVALID_RECORD, []
    message: str | None = None
    for number, span in enumerate(spans):
        sentence = None
        if rules.needs_keys and span[4] is None:
            sentence = f"record {number} of the batch has no key, and the topic is compacted"
        else:
            sentence = _wrong_time(header.base_timestamp + span[2], number, rules, wall)
            if sentence is not None and error is ErrorCode.INVALID_RECORD:
                error, message = ErrorCode.INVALID_TIMESTAMP, sentence
        if sentence is not None:
            faults.append(RecordFault(number, sentence))
            if len(faults) == RECORD_FAULTS_MAX:
                break
    return Refusal(error, message or faults[0].sentence, tuple(faults)) if faults else None


def _wrong_time(timestamp: int, number: int, rules: RecordRules, wall: WallMillis) -> str | None:
    before, after = rules.timestamp_before_max_ms, rules.timestamp_after_max_ms
    if before is not None and timestamp != NO_TIMESTAMP and wall - timestamp > before:
        bound, side = f"message.timestamp.before.max.ms={before}", "behind"
    elif after is not None and timestamp - wall > after:
        bound, side = f"message.timestamp.after.max.ms={after}", "ahead of"
    else:
        return None
    return f"the timestamp {timestamp} of record {number} is more than {bound} {side} the clock"
