"""What a person is told of a run. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from cotidal.cli.table import bytes_text, table_lines
from tests.chaos.storm import Outcome

LONGEST_TOLD = 3


def lines(outcome: Outcome) -> Iterator[str]:
    rows = [
        (fault, count, f"{median:.2f} s", f"{worst:.2f} s")
        for fault, (count, median, worst) in outcome.slowest().items()
    ]
    yield from table_lines(("fault", "times", "to recover", "at worst"), rows)
    yield ""
    longest = sorted(outcome.recoveries, key=lambda each: -each.seconds)[:LONGEST_TOLD]
    yield from (f"{each.seconds:5.1f} s  {each.fault}: {each.what}" for each in longest)
    yield ""
    levels = [(each.name, each.acked, each.failed, each.lost) for each in outcome.levels]
    yield from table_lines(("level", "acknowledged", "failed", "lost"), levels)
    yield ""
    yield f"idempotent: its epoch was raised {outcome.raised} times"
    told = outcome.transactions
    again = ", ".join(f"{name} {times}" for name, times in sorted(told.failed.items()))
    yield (
        f"transactions: {told.committed:,} told committed, {told.aborted:,} told aborted;"
        f" processors that began again: {again or 'none'}"
    )
    still = ", ".join(f"{how} {times}" for how, times in sorted(outcome.helped.items()))
    yield f"clients whose librdkafka stood still and were helped on: {still or 'none'}"
    yield ""
    if outcome.broken is None:
        yield (
            f"{outcome.faults} faults in {outcome.seconds:.0f} s: nothing acknowledged with"
            f" acks=all was lost or reordered, nothing read has changed ({outcome.read:,} records"
            f" read), every record was processed exactly once, every replica is equal byte for byte"
            f" ({bytes_text(outcome.log_bytes)})"
        )
        if outcome.steps:
            yield f"{outcome.steps:,} recorded steps of nodes, taken once more, are the same"
    else:
        yield f"{outcome.broken} was broken after {outcome.faults} faults: {outcome.sentence}"
