"""Sample messages, made from the schema: for tests, and for comparing bytes with other codecs.

A sample takes its choices from a ``random.Random``: seeded for vectors, hypothesis's own in tests.
``tame`` keeps to values that codecs with richer types than ours can hold as well: error codes
that exist, times and durations that are dates and spans.
"""

from __future__ import annotations

import base64
import importlib
import string
from random import Random
from typing import Any, Final

from cotidal.errors import ErrorCode
from cotidal.values import ZERO_UUID, Uuid, uuid_text
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, build_batch
from message_schema import Field, Message, Module, Struct

INTEGERS: Final = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
}
LETTERS: Final = string.ascii_letters + string.digits + ".-_ é漢😀"
TAME_TIME_MAX: Final = 2**31 - 1
ERROR_CODES: Final = tuple(int(code) for code in ErrorCode)
BATCH: Final = build_batch(
    [Record(b"key", b"value", (("name", b"x"),), timestamp=1_700_000_000_000)]
)


class Sampler:
    """Makes values for one module's messages."""

    def __init__(self, module: Module, chance: Random, *, tame: bool = False) -> None:
        self._classes = importlib.import_module(f"cotidal.messages.{module.room}.{module.name}")
        self._chance = chance
        self._tame = tame

    def message(self, message: Message, version: int) -> Any:
        return self._struct(message.body, version)

    def _struct(self, struct: Struct, version: int) -> Any:
        values = {
            field.name: self._field(field, version)
            for field in struct.fields
            if version in field.versions
        }
        return getattr(self._classes, struct.class_name)(**values)

    def _field(self, field: Field, version: int) -> Any:
        if version in field.nullable and self._chance.random() < 0.2:
            return None
        if field.array:
            count = self._chance.choice((0, 1, 1, 2, 3))
            return tuple(self._element(field, version) for _ in range(count))
        return self._element(field, version)

    def _element(self, field: Field, version: int) -> Any:
        if field.struct is not None:
            return self._struct(field.struct, version)
        if field.base in INTEGERS:
            return self._integer(field)
        return self._other(field)

    def _integer(self, field: Field) -> int:
        low, high = INTEGERS[field.base]
        if self._tame and field.name.endswith("error_code"):
            return self._chance.choice(ERROR_CODES)
        if self._tame and ("time" in field.name or field.name.endswith("_ms")):
            return self._chance.randint(0, TAME_TIME_MAX)
        if self._chance.random() < 0.3:
            return self._chance.choice((low, high, 0, 1, max(low, -1)))
        return self._chance.randint(low, high)

    def _other(self, field: Field) -> Any:
        chance = self._chance
        match field.base:
            case "bool":
                return chance.random() < 0.5
            case "float64":
                return chance.choice((0.0, -1.5, 1e300, 0.1))
            case "uuid":
                return ZERO_UUID if chance.random() < 0.1 else Uuid(chance.randbytes(16))
            case "string":
                length = chance.choice((0, 1, 5, 20, 126, 130))
                return "".join(chance.choice(LETTERS) for _ in range(length))
            case "bytes":
                return chance.randbytes(chance.choice((0, 1, 10, 127, 200)))
            case "records":
                return BATCH * chance.choice((1, 2))
            case "batches":
                return read_batches(BATCH * chance.choice((1, 2)))
            case _:
                raise ValueError(f"no sample for {field.base}")


def as_json(struct: Struct, value: Any, version: int) -> dict[str, Any]:
    """The value in the form that Kafka's generated JSON converters read."""
    return {
        field.json_name: _json_field(field, getattr(value, field.name), version)
        for field in struct.fields
        if version in field.versions
    }


def _json_field(field: Field, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.array:
        return [_json_element(field, element, version) for element in value]
    return _json_element(field, value, version)


def _json_element(field: Field, value: Any, version: int) -> Any:
    if field.struct is not None:
        return as_json(field.struct, value, version)
    match field.base:
        case "uuid":
            return uuid_text(value)
        case "bytes" | "records":
            return base64.b64encode(value).decode()
        case "batches":
            return base64.b64encode(value.data).decode()
        case _:
            return value


def seeded(name: str, version: int, number: int = 0) -> Random:
    """The same choices for the same message, version and number, on every machine."""
    return Random(f"{name}/{version}/{number}")
