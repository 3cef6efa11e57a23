"""What the APIs of coordinators have in common. Pure.

Each of their modules has ``parts(request, asked, view)``: the questions in a request, each for the
coordinator of its group or of its transactional id; and ``response(request, asked, answers)``, with
an answer for each.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

from cotidal.errors import ErrorCode, Refusal

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"


class Part(NamedTuple):
    key: str | None
    """A group, or a transactional id. None: for all coordinators of this broker."""
    ask: object
    topic: str = OFFSETS_TOPIC
    """Whose partitions have the coordinators."""


class InTransactionPart(NamedTuple):
    """A question about a group that is part of a transaction: put when the coordinator of that one
    has confirmed that it is (T6, T20)."""

    key: str
    ask: Any
    """CommitOffsets: not named here, as a start would wait for the records of groups with it."""
    transactional_id: str
    adds: bool
    """The coordinator adds it, rather than look whether it was added."""
    may_abort: bool
    """The client knows TRANSACTION_ABORTABLE."""


class Fresh(NamedTuple):
    """A part that is answered with a producer id that nobody has had."""


class Answered(NamedTuple):
    """A part that needs no coordinator."""

    answer: object


def of_group(group_id: str, ask: object) -> tuple[Part | Answered, ...]:
    """One question about one group, which has a name."""
    if not group_id:
        refusal = Refusal(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
        return (Answered(refusal),)
    return (Part(group_id, ask),)


def of_transaction(transactional_id: str, ask: object) -> tuple[Part | Answered, ...]:
    """One question about one transactional id, which is not empty."""
    if not transactional_id:
        refusal = Refusal(ErrorCode.INVALID_REQUEST, "a transactional id may not be empty")
        return (Answered(refusal),)
    return (Part(transactional_id, ask, TRANSACTIONS_TOPIC),)


def of_a_group(error: ErrorCode) -> ErrorCode:
    """What is told of what is no commit, where it would be too large for the log."""
    if error is ErrorCode.INVALID_COMMIT_OFFSET_SIZE:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return error


AnyPart: TypeAlias = Part | InTransactionPart | Answered | Fresh
