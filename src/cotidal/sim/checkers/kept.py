"""What a new reader finds when all is over, against all that clients were told. Pure.

It needs no more than histories, so it judges simulated clusters and real ones alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cotidal.invariants import ACKED_IS_KEPT
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.history import Acked, History
from cotidal.values import TopicPartition


def look_at_read(history: History, final: History) -> None:
    """What the last reader found is what others had read there."""
    for partition, consumed in final.consumed.items():
        for offset, (crc, next_offset) in consumed.items():
            history.on_consumed(partition, offset=offset, next_offset=next_offset, crc=crc)


def look_at_kept(
    history: History, final: History, beginning: Callable[[TopicPartition], int]
) -> None:
    """And all that was acknowledged with acks=all is there, where it was said to be.

    ``beginning``: where a partition begins; what is below was deleted.
    """
    look_at_read(history, final)
    for partition, acked in history.acked.items():
        consumed = final.consumed.get(partition, {})
        for fact in acked:
            found = consumed.get(fact.offset)
            if fact.offset >= beginning(partition) and (found is None or found.crc != fact.crc):
                raise Violation(
                    ACKED_IS_KEPT,
                    f"{fact.crc:08x} was acknowledged at {fact.offset} of {partition} and is"
                    " not read there",
                )


def held_by(final: History) -> set[tuple[TopicPartition, int]]:
    """Each batch that is there in the end, by its checksum."""
    return {
        (partition, read.crc)
        for partition, consumed in final.consumed.items()
        for read in consumed.values()
    }


def lost(acked: Iterable[Acked], final: History) -> list[Acked]:
    """Acknowledged, and nowhere in its partition."""
    held = held_by(final)
    return [fact for fact in acked if (fact.partition, fact.crc) not in held]
