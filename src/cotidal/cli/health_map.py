"""How partitions fared, window by window, as a picture (``pipeline run health --plot``). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from cotidal.cli.heat_map import Square, heat_map

if TYPE_CHECKING:
    from pyspark.sql import Row

WINDOWS_DRAWN: Final = 120
"""The newest ones: more are too small to see."""
AILMENTS: Final = (
    "lag_records", "lag_ms", "under_replicated_s", "under_min_isr_s", "left", "records_cut",
)  # fmt: skip


def health_map(rows: Sequence[Row]) -> str:
    """``rows``: partitions by window."""
    starts = sorted({row.window.start for row in rows})[-WINDOWS_DRAWN:]
    lines: dict[str, dict[str, Square]] = {}
    for row in rows:
        if row.window.start in starts:
            line = lines.setdefault(f"{row.topic}-{row.partition}", {})
            line[f"{row.window.start:%H:%M:%S}"] = Square(*ailment(row))
    return heat_map(
        lines,
        [f"{start:%H:%M:%S}" for start in starts],
        title="Replication, by partition and window",
        note="green: well; yellow: a follower lags; orange: under-replicated; red: under min ISR,"
        " or records cut; white: nothing changed",
    )


def ailment(row: Row) -> tuple[str, str]:
    """The colour of a window of a partition, and what to say of it."""
    told = ", ".join(f"{name} {row[name]}" for name in AILMENTS)
    if row.under_min_isr_s or row.records_cut or row.unclean:
        return "#b91c1c", told
    if row.under_replicated_s or row.left:
        return "#ea580c", told
    return ("#facc15" if row.lag_records else "#15803d"), told
