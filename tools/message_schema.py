"""The text form of the protocol's messages (`schema/`), read into values.

A file holds messages; a message is a head line and its fields, nested by indentation:

    request ProduceRequest key=0 versions=3-13 flexible=9+ listeners=broker hot
      transactional_id: string? = null
      topic_data: []TopicProduceData
        name: string 3-12 ignorable key
        partition_data: []PartitionProduceData
          records: batches?

head    kind (request, response, metadata, key, value, data), name, then `key=` (API or record key),
        `versions=`, `flexible=` (from which version on), `listeners=`, `unstable=` (a version that
        Kafka does not yet advertise), `hot` (codec specialised for each layout)
field   name, type, then in any order: the versions that have it (omitted: all that have what
        encloses it), `tag=N`, `= default`, `ignorable` (dropped silently where a version lacks it),
        `key` (Kafka indexes the array by it), `kafka=Name` (where ours is not that in snake case)
type    a primitive, a struct that is defined by the lines below it or by `struct Name`, `[]T`;
        a trailing `?` means nullable, `?7+` nullable in these versions only
        `records` are bytes that are passed on uncopied; `batches` the same, with headers scanned
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

PRIMITIVES: Final = frozenset(
    ["int8", "int16", "int32", "int64", "uint16", "uint32", "float64", "bool", "uuid", "string",
     "bytes", "records", "batches"]
)  # fmt: skip
NEVER: Final = range(0)


class Field:
    """One field. ``versions`` and ``nullable`` are already clipped to what encloses it."""

    __slots__ = (
        "array", "base", "default", "ignorable", "kafka_name", "map_key", "name", "nullable",
        "struct", "tag", "versions",
    )  # fmt: skip

    def __init__(self, name: str, base: str, array: bool, versions: range) -> None:
        self.name = name
        self.base = base
        self.array = array
        self.versions = versions
        self.nullable = NEVER
        self.tag: int | None = None
        self.default: str | None = None
        self.ignorable = False
        self.map_key = False
        self.kafka_name = camel_case(name)
        self.struct: Struct | None = None

    @property
    def json_name(self) -> str:
        """As Kafka's JSON converters call it."""
        return self.kafka_name[0].lower() + self.kafka_name[1:]


class Struct:
    """A struct or a message body. ``class_name`` is unique in its module."""

    __slots__ = ("class_name", "fields", "name", "versions")

    def __init__(self, name: str, versions: range) -> None:
        self.name = name
        self.class_name = name
        self.versions = versions
        self.fields: list[Field] = []


class Message(NamedTuple):
    kind: str
    key: int | None
    versions: range
    flexible: range
    listeners: tuple[str, ...]
    unstable: int | None
    hot: bool
    body: Struct
    structs: list[Struct]
    """Every struct below the body, inner ones first."""

    @property
    def name(self) -> str:
        return self.body.name


class Module(NamedTuple):
    """One schema file: one module of classes and one of codecs."""

    room: str
    name: str
    messages: list[Message]


class _Line(NamedTuple):
    number: int
    depth: int
    text: str


def camel_case(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def snake_case(name: str) -> str:
    out: list[str] = []
    for i, char in enumerate(name):
        before = name[i - 1] if i else ""
        after = name[i + 1] if i + 1 < len(name) else ""
        if char.isupper() and (
            before.islower() or before.isdigit() or (before.isupper() and after.islower())
        ):
            out.append("_")
        out.append(char.lower())
    return "".join(out)


def read_modules(schema: Path) -> list[Module]:
    """All schema files, the RPCs first, each room in order of name."""
    modules = []
    for room in ("rpc", "records"):
        for path in sorted((schema / room).glob("*.schema")):
            try:
                modules.append(Module(room, path.stem, _read_messages(path.read_text())))
            except ValueError as wrong:
                raise ValueError(f"{path.name}: {wrong}") from wrong
    for module in modules:
        _name_classes(module)
    return modules


def layouts(message: Message) -> list[tuple[int, ...]]:
    """The message's versions, grouped by equal shape."""
    groups: dict[object, list[int]] = {}
    for version in message.versions:
        shape = (version in message.flexible, _shape(message.body, version))
        groups.setdefault(shape, []).append(version)
    return [tuple(group) for group in groups.values()]


def _shape(struct: Struct, version: int) -> tuple[object, ...]:
    return tuple(
        (
            version in field.versions,
            version in field.nullable,
            _shape(field.struct, version) if field.struct else None,
        )
        for field in struct.fields
    )


def _read_messages(text: str) -> list[Message]:
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        body = line.split("#", 1)[0].rstrip()
        if body:
            indent = len(body) - len(body.lstrip())
            if indent % 2:
                raise ValueError(f"line {number}: odd indentation")
            lines.append(_Line(number, indent // 2, body.lstrip()))
    messages = []
    at = 0
    while at < len(lines):
        end = at + 1
        while end < len(lines) and lines[end].depth > 0:
            end += 1
        messages.append(_read_message(lines[at], lines[at + 1 : end]))
        at = end
    return messages


def _read_message(head: _Line, lines: list[_Line]) -> Message:
    kind, name, *options = head.text.split()
    facts = dict(option.partition("=")[::2] for option in options)
    unknown = facts.keys() - {"key", "versions", "flexible", "listeners", "unstable", "hot"}
    if unknown:
        raise ValueError(f"line {head.number}: what is {', '.join(sorted(unknown))}?")
    versions = _range(facts["versions"], 1 << 15)
    common: dict[str, Struct] = {}
    for line in lines:
        if line.depth == 1 and line.text.startswith("struct "):
            _, struct_name, *own = line.text.split()
            struct_versions = _range(own[0], versions.stop) if own else versions
            common[struct_name] = Struct(struct_name, struct_versions)
    body = Struct(name, versions)
    for line, inner in _grouped(lines):
        if line.text.startswith("struct "):
            struct = common[line.text.split()[1]]
            _read_fields(struct, inner, common)
        else:
            _read_field(body, line, inner, common)
    structs = [struct for struct in _in_order(body) if struct is not body]
    return Message(
        kind,
        int(facts["key"]) if "key" in facts else None,
        versions,
        NEVER if facts["flexible"] == "none" else _range(facts["flexible"], versions.stop),
        tuple(facts["listeners"].split(",")) if "listeners" in facts else (),
        int(facts["unstable"]) if "unstable" in facts else None,
        "hot" in facts,
        body,
        structs,
    )


def _grouped(lines: list[_Line]) -> Iterator[tuple[_Line, list[_Line]]]:
    """Each line of the outermost depth with the deeper lines that follow it."""
    at = 0
    while at < len(lines):
        end = at + 1
        while end < len(lines) and lines[end].depth > lines[at].depth:
            end += 1
        yield lines[at], lines[at + 1 : end]
        at = end


def _read_fields(struct: Struct, lines: list[_Line], common: dict[str, Struct]) -> None:
    for line, inner in _grouped(lines):
        _read_field(struct, line, inner, common)


def _read_field(
    owner: Struct,
    line: _Line,
    inner: list[_Line],
    common: dict[str, Struct],
) -> None:
    text, _, after = line.text.partition(" = ")
    name, type_text, *words = text.split()
    field_type, mark, nullable = type_text.partition("?")
    array = field_type.startswith("[]")
    field = Field(name.rstrip(":"), field_type.removeprefix("[]"), array, owner.versions)
    if after:
        field.default, *more = after.split()
        words += more
    for word in words:
        if word[0].isdigit():
            field.versions = _range(word, owner.versions.stop)
        elif word.startswith("tag="):
            field.tag = int(word[4:])
        elif word.startswith("kafka="):
            field.kafka_name = word[6:]
        elif word == "ignorable":
            field.ignorable = True
        elif word == "key":
            field.map_key = True
        else:
            raise ValueError(f"line {line.number}: what is '{word}'?")
    if mark:
        field.nullable = _range(nullable, field.versions.stop) if nullable else field.versions
    if field.base not in PRIMITIVES:
        if inner:
            field.struct = Struct(field.base, field.versions)
            _read_fields(field.struct, inner, common)
        elif field.base in common:
            field.struct = common[field.base]
        else:
            raise ValueError(f"line {line.number}: there is no struct {field.base}")
    owner.fields.append(field)


def _in_order(struct: Struct) -> list[Struct]:
    """The struct and all below it, each after those that it uses."""
    found: list[Struct] = []
    for field in struct.fields:
        if field.struct is not None:
            found += [inner for inner in _in_order(field.struct) if inner not in found]
    return [*found, struct]


def _name_classes(module: Module) -> None:
    """A struct keeps Kafka's name unless two of a module share it; then its message's too."""
    uses: dict[str, int] = {}
    for message in module.messages:
        for struct in [*message.structs, message.body]:
            uses[struct.name] = uses.get(struct.name, 0) + 1
    for message in module.messages:
        for struct in message.structs:
            if uses[struct.name] > 1:
                struct.class_name = message.name + struct.name


def _range(text: str, stop: int) -> range:
    if text.endswith("+"):
        return range(int(text[:-1]), stop)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)
