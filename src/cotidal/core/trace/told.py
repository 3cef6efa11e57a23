"""The shape of what is told, and the words that all machines share. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from cotidal.errors import ErrorCode
from cotidal.messages.batch import BatchHeader
from cotidal.values import NO_NODE, EpochEntry, Uuid, uuid_text

Json: TypeAlias = dict[str, object]

UUID_BYTES = 16


class Told(NamedTuple):
    """One moment: its name, what a person reads after it, what a program reads."""

    name: str
    said: str
    fields: Json

    @property
    def line(self) -> str:
        return f"{self.name} {self.said}".rstrip()

    @property
    def json(self) -> Json:
        return {"what": self.name, **self.fields}


def fields_of(value: tuple[object, ...]) -> Json:
    """The fields of a NamedTuple for a program: bytes by their number, what is opaque by kind."""
    names: tuple[str, ...] = getattr(value, "_fields", ())
    return {name: plain(each) for name, each in zip(names, value, strict=True)}


def plain(value: object) -> object:
    if value is None or isinstance(value, str | bool | float):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, bytes | bytearray | memoryview):
        is_uuid = isinstance(value, bytes) and len(value) == UUID_BYTES
        return uuid_text(Uuid(bytes(value))) if is_uuid else f"{len(value)} bytes"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return fields_of(value)
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    return type(value).__name__


def ids(numbers: Iterable[int]) -> str:
    return f"({' '.join(map(str, numbers))})"


def node(node_id: int) -> str:
    return "none" if node_id == NO_NODE else str(node_id)


def span(first: int, last: int) -> str:
    """An inclusive range of offsets."""
    return str(first) if first == last else f"{first}-{last}"


def spans(headers: Iterable[BatchHeader]) -> str:
    """Batches as ranges of offsets, one for each run of an epoch: ``0-9@1 10-12@3``."""
    runs: list[tuple[int, int, int]] = []
    for header in headers:
        epoch, first = header.leader_epoch, int(header.base_offset)
        if runs and runs[-1][0] == epoch and runs[-1][2] + 1 == first:
            first = runs.pop()[1]
        runs.append((epoch, first, header.last_offset))
    return " ".join(f"{span(first, last)}@{epoch}" for epoch, first, last in runs)


def epochs(entries: Iterable[EpochEntry]) -> str:
    return " ".join(f"{entry.epoch}@{entry.start_offset}" for entry in entries)


def named(error: int) -> str:
    """An error by its name and number; one that we do not know by its number."""
    try:
        return f"{ErrorCode(error).name}({int(error)})"
    except ValueError:
        return f"error({int(error)})"
