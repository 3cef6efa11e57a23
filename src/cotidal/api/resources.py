"""Settings of several resources changed by one request. Pure.

Each resource is changed wholly or refused wholly, and answered once, in the order of the request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from cotidal.core.cluster.controller import Decided, Records
from cotidal.core.cluster.image import MetadataRecord
from cotidal.errors import ErrorCode, Refusal


class Resource(Protocol):
    @property
    def resource_type(self) -> int: ...

    @property
    def resource_name(self) -> str: ...


ResourceT = TypeVar("ResourceT", bound=Resource)


class Outcome(NamedTuple):
    """In the order of the fields of both APIs' answers."""

    error: ErrorCode
    message: str | None
    resource_type: int
    resource_name: str


def decide_each(
    resources: tuple[ResourceT, ...], decide_one: Callable[[ResourceT], Decided]
) -> tuple[Records, tuple[Outcome, ...]]:
    """The records of all that are changed, and what became of each."""
    by_key = {(each.resource_type, each.resource_name): each for each in resources}
    times = Counter((each.resource_type, each.resource_name) for each in resources)
    records: list[MetadataRecord] = []
    outcomes: list[Outcome] = []
    for key, resource in by_key.items():
        decided: Decided
        if times[key] > 1:
            decided = Refusal(ErrorCode.INVALID_REQUEST, f"'{key[1]}' is named twice")
        else:
            decided = decide_one(resource)
        if isinstance(decided, Refusal):
            outcomes.append(Outcome(decided.error, decided.text, *key))
        else:
            records.extend(decided)
            outcomes.append(Outcome(ErrorCode.NONE, None, *key))
    return tuple(records), tuple(outcomes)
