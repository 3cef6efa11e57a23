"""What can go wrong between a client and a cluster. Each message is one sentence.

ClientError
  Unreachable        no connection could be made, or it was lost
  TimedOut           the answer did not come in time
  ProtocolMismatch   the peer speaks no version that we speak, or bytes that cannot be read
  Refused            the cluster answered with an error code
    UnknownTopic     ... that the topic does not exist
    NoController     ... that nobody decides, for as long as it was asked
  BadRecord          fetched bytes that are damaged

A message says what happened; what to do next is the caller's to add (the command line does).
"""

from __future__ import annotations

from collections.abc import Iterable

from cotidal.errors import MESSAGES, ErrorCode


class ClientError(Exception):
    """The head of the tree. ``str(error)`` is one sentence without a full stop."""


class Unreachable(ClientError):
    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"cannot reach {address}: {reason}")
        self.address = address
        self.reason = reason


class TimedOut(ClientError):
    def __init__(self, what: str, *, seconds: float) -> None:
        super().__init__(f"{what} did not answer within {seconds:g} s")


class ProtocolMismatch(ClientError):
    pass


class BadRecord(ClientError):
    pass


class Refused(ClientError):
    """The cluster said no. ``error`` is its code, ``reason`` its sentence or the table's."""

    def __init__(self, subject: str, error: ErrorCode, message: str | None = None) -> None:
        self.error = error
        self.reason = as_clause(message or MESSAGES[error])
        # A cluster that names the thing itself needs no help: "topic 'a': topic 'a' exists".
        named = subject.partition(" ")[2]
        told = named.startswith("'") and named in self.reason
        super().__init__(self.reason if told else f"{subject}: {self.reason}")


class UnknownTopic(Refused):
    def __init__(self, topic: str, known: Iterable[str] = ()) -> None:
        super().__init__(f"topic '{topic}'", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self.topic = topic
        self.nearest = nearest(topic, known)
        hint = f"; did you mean '{self.nearest}'?" if self.nearest else ""
        self.args = (f"topic '{topic}' does not exist{hint}",)


class NoController(Refused):
    def __init__(self, *, seconds: float) -> None:
        super().__init__("the cluster", ErrorCode.NOT_CONTROLLER)
        self.args = (
            f"no broker has found a controller for {seconds:g} s: nothing can be decided until more"
            " than half of the controllers run and reach each other",
        )


def known_code(code: int) -> ErrorCode:
    """The code as we know it; codes of a newer protocol become UNKNOWN_SERVER_ERROR."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def raise_for(code: int, subject: str, message: str | None = None) -> None:
    """Raise Refused unless ``code`` is 0."""
    if code:
        raise Refused(subject, known_code(code), message)


def as_clause(sentence: str) -> str:
    """A sentence of the broker, so that more can follow it."""
    return sentence.strip().rstrip(".")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like ``name``, if any looks like it at all."""
    import difflib  # 5 ms that only a mistake has to pay for

    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.7)
    return close[0] if close else None
