"""What the APIs of groups have in common. Pure.

Each of their modules has ``parts(request, asked, view)``: the questions in a request, each for the
coordinator of its group; and ``response(request, asked, answers)``, with an answer for each.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cotidal.core.groups.asks import Ask
from cotidal.errors import ErrorCode, Refusal

OFFSETS_TOPIC: Final = "__consumer_offsets"


class Part(NamedTuple):
    group_id: str | None
    """None: for all coordinators of this broker."""
    ask: Ask


class Answered(NamedTuple):
    """A part that needs no coordinator."""

    answer: object


def of_group(group_id: str, ask: Ask) -> tuple[Part | Answered, ...]:
    """One question about one group, which has a name."""
    if not group_id:
        refusal = Refusal(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
        return (Answered(refusal),)
    return (Part(group_id, ask),)
