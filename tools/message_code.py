"""What the writers of readers and of writers share: indented lines, version tests, field runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from message_classes import default_text
from message_schema import Field, Message, Struct

FIXED: Final = {
    "int8": ("b", 1),
    "int16": ("h", 2),
    "int32": ("i", 4),
    "int64": ("q", 8),
    "uint16": ("H", 2),
    "uint32": ("I", 4),
    "float64": ("d", 8),
    "bool": ("?", 1),
    "uuid": ("16s", 16),
}
"""Types of fixed width, by their struct codes: runs of them are read and written at once."""

SUFFIXES: Final = {"16s": "u", "?": "o"}
RESERVED: Final = frozenset(
    ["buf", "bytearray", "bytes", "count", "data", "end", "flexible", "int", "item", "items",
     "len", "length", "list", "memoryview", "new", "out", "parts", "payload", "pos", "range", "raw",
     "room", "size", "str", "tag", "tagged", "tags", "tuple", "value", "version"]
)  # fmt: skip
ALWAYS: Final = "always"
NOT_EVER: Final = "never"


class Code:
    """Lines of Python at the current depth, and what they need from elsewhere."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self.structs: set[tuple[str, str]] = set()
        self.primitives: set[str] = set()
        self.defaults: set[str] = set()
        self.others: set[str] = set()
        self._scopes = 0

    def line(self, text: str = "") -> None:
        self.lines.append("    " * self.depth + text if text else "")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self.depth += 1
        yield
        self.depth -= 1

    def begin_function(self) -> None:
        self._scopes = 0

    def scope(self) -> str:
        """A suffix for the locals of one more struct within a function."""
        suffix = f"_{self._scopes}" if self._scopes else ""
        self._scopes += 1
        return suffix

    def need(self, name: str) -> str:
        self.primitives.add(name)
        return name

    def struct(self, verb: str, formats: list[str]) -> str:
        """The name of the module's precompiled pack or unpack for a run of codes."""
        text = "".join(formats)
        name = "".join(SUFFIXES.get(code, code) for code in formats)
        self.structs.add((f"{verb}_{name}", text))
        return f"{verb}_{name}"

    def default(self, struct: Struct) -> str:
        self.defaults.add(struct.class_name)
        return f"DEFAULT_{struct.class_name}"


class Context(NamedTuple):
    """Where a piece of code runs: in which versions, and whether these are flexible."""

    message: Message
    versions: tuple[int, ...]
    hot: bool
    not_null: bool = False
    """The code around has already found that the value at hand is not null."""

    def test(self, within: range) -> str:
        """ALWAYS, NOT_EVER or an expression on ``version``."""
        inside = sum(version in within for version in self.versions)
        if inside == len(self.versions):
            return ALWAYS
        if inside == 0:
            return NOT_EVER
        first, last = within.start, within.stop - 1
        if last >= max(self.versions):
            return f"version >= {first}"
        if first <= min(self.versions):
            return f"version <= {last}"
        return f"{first} <= version <= {last}" if first != last else f"version == {first}"

    def narrowed(self, within: range) -> Context:
        return self._replace(versions=tuple(v for v in self.versions if v in within))

    @property
    def flexible(self) -> str:
        """ALWAYS, NOT_EVER or the local that says it."""
        test = self.test(self.message.flexible)
        return test if test in (ALWAYS, NOT_EVER) else "flexible"


class Run(NamedTuple):
    """Consecutive fields under one test: several of fixed width, or one of another kind."""

    test: str
    fields: list[Field]
    fixed: bool


def is_fixed(field: Field) -> bool:
    return not field.array and field.base in FIXED


def runs_of(struct: Struct, context: Context) -> list[Run]:
    runs: list[Run] = []
    for field in struct.fields:
        test = context.test(field.versions)
        if field.tag is not None or test == NOT_EVER:
            continue
        last = runs[-1] if runs else None
        if is_fixed(field) and last is not None and last.fixed and last.test == test:
            last.fields.append(field)
        else:
            runs.append(Run(test, [field], is_fixed(field)))
    return runs


def tagged_fields(struct: Struct, context: Context) -> list[Field]:
    fields = [f for f in struct.fields if f.tag is not None]
    present = [f for f in fields if context.test(f.versions) != NOT_EVER]
    return sorted(present, key=lambda f: f.tag or 0)


def negated(test: str) -> str:
    for sign, opposite in ((">=", "<"), ("<=", ">"), ("==", "!=")):
        if test.count("version") == 1 and test.startswith(f"version {sign}"):
            return test.replace(sign, opposite)
    return f"not {test}"


def smallest_bytes(struct: Struct, context: Context) -> int:
    """The fewest bytes that this struct can take in any of these versions; at least 1."""
    return max(1, min(_smallest(struct, context.message, v) for v in context.versions))


def _smallest(struct: Struct, message: Message, version: int) -> int:
    flexible = version in message.flexible
    total = 1 if flexible else 0
    for field in struct.fields:
        if version in field.versions and field.tag is None:
            total += _smallest_field(field, message, version, flexible)
    return total


def _smallest_field(field: Field, message: Message, version: int, flexible: bool) -> int:
    if is_fixed(field):
        return FIXED[field.base][1]
    if field.struct is not None and not field.array:
        nullable = version in field.nullable
        return 1 if nullable else _smallest(field.struct, message, version)
    if flexible:
        return 1
    return 2 if field.base == "string" and not field.array else 4


def smallest_element(field: Field, context: Context) -> int:
    if field.struct is not None:
        return smallest_bytes(field.struct, context)
    if field.base in FIXED:
        return FIXED[field.base][1]
    return 1 if context.flexible != NOT_EVER else 2


def splices(struct: Struct) -> bool:
    """Whether record data may lie somewhere inside, so that writing may begin a new buffer."""
    return any(
        field.base in ("records", "batches") or (field.struct is not None and splices(field.struct))
        for field in struct.fields
    )


def default_value(code: Code, field: Field) -> str:
    """The default as an expression that builds nothing."""
    text = default_text(field)
    if field.struct is not None and not field.array and text != "None":
        return code.default(field.struct)
    if "ZERO_UUID" in text:
        code.others.add("ZERO_UUID")
    return text


def differs(code: Code, field: Field, local: str) -> str:
    """An expression: the local is not the field's default."""
    text = default_value(code, field)
    if text == "None":
        return f"{local} is not None"
    if text in ("True", "False"):
        return local if text == "False" else f"not {local}"
    return f"{local} != {text}"


def local_name(field: Field, suffix: str) -> str:
    name = field.name + suffix
    return name + "_" if name in RESERVED else name
