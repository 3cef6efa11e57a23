"""A failure as one sentence that says what to do next. Imported only when something failed."""

from __future__ import annotations

from cotidal.client.failures import ClientError, Refused, TimedOut, UnknownTopic, Unreachable
from cotidal.errors import ErrorCode

ADVICE = {
    ErrorCode.TOPIC_ALREADY_EXISTS: "look at it with `cotidal topic describe`",
    ErrorCode.INVALID_REPLICATION_FACTOR: "see the brokers with `cotidal status`",
    ErrorCode.NOT_ENOUGH_REPLICAS: "see which are missing with `cotidal status --under-replicated`",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: (
        "see which are missing with `cotidal status --under-replicated`"
    ),
    ErrorCode.MESSAGE_TOO_LARGE: (
        "raise it with `cotidal configs set topic NAME max.message.bytes=...`"
    ),
    ErrorCode.LEADER_NOT_AVAILABLE: "see why with `cotidal status`",
    ErrorCode.OFFSET_OUT_OF_RANGE: "see the offsets there are with `cotidal status`",
}


def explanation(error: Exception) -> str | None:
    """The sentence for an error that a user can meet; None for a bug, which keeps its trace."""
    match error:
        case Unreachable():
            return f"{error}; start a cluster with `cotidal up`, or name one with --bootstrap"
        case UnknownTopic(nearest=None):
            return f"{error}; list those that do with `cotidal topic list`"
        case UnknownTopic():
            return str(error)
        case Refused():
            advice = ADVICE.get(error.error)
            return f"{error}; {advice}" if advice else str(error)
        case TimedOut():
            return f"{error}; see whether the cluster is well with `cotidal status`"
        case ClientError():
            return str(error)
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            return f"{where}{(error.strerror or str(error)).lower()}"
        case _:
            return None
