"""Where a consumer begins: as users write it, and as the protocol asks for it. Pure.

earliest | latest      the first record there is; only what comes from now on
1200 | -10             that offset; ten before the end of each partition
2026-01-31T12:00:00Z   the first record at or after that time (no zone: this machine's)
@1767225600000         the same in milliseconds since 1970
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

EARLIEST_TIMESTAMP: Final = -2
LATEST_TIMESTAMP: Final = -1
"""ListOffsets' own names for the two ends of a log."""


class AtTime(NamedTuple):
    """The first offset whose timestamp is at least this; the two ends are negative."""

    timestamp: int


class AtOffset(NamedTuple):
    offset: int


class BeforeEnd(NamedTuple):
    count_back: int


Start: TypeAlias = AtTime | AtOffset | BeforeEnd

EARLIEST: Final = AtTime(EARLIEST_TIMESTAMP)
LATEST: Final = AtTime(LATEST_TIMESTAMP)


def parse_start(text: str) -> Start:
    """ValueError with one sentence for what is none of the forms above."""
    match text:
        case "earliest" | "beginning":
            return EARLIEST
        case "latest" | "end":
            return LATEST
        case _:
            pass
    try:
        if text.startswith("@"):
            return AtTime(_not_negative(int(text[1:])))
        number = int(text)
    except ValueError:
        return AtTime(_parse_time(text))
    return AtOffset(number) if number >= 0 else BeforeEnd(-number)


def _not_negative(number: int) -> int:
    if number < 0:
        raise ValueError("a time before 1970")
    return number


def _parse_time(text: str) -> int:
    from datetime import datetime

    try:
        return _not_negative(int(datetime.fromisoformat(text).timestamp() * 1000))
    except (ValueError, OverflowError):
        raise ValueError(
            f"'{text}' is no place to start from; write earliest, latest, an offset, -N, "
            "a time like 2026-01-31T12:00:00Z, or @MILLISECONDS"
        ) from None
