"""A node's life as a file: what happened to it and what it wanted done, to be lived again. Pure.

One JSON object a line. The first says who the node is and what its entropy began with; each of the
others is one step:

    {"trace": "cotidal node", "version": 1, "config": ..., "entropy": 1234}
    {"now": 81, "event": ..., "looked": [...], "effects": [...]}

``replay`` steps a new node with the same events at the same times. A node decides by nothing else,
so it wants the same effects; where it does not, the code has changed, or a promise of the house is
broken (an order that depends on the process, state shared between nodes).

Records are not kept, only their headers and how many bytes they are: a node passes them on and
never looks into them. What looks into them for it, or makes them (``World``), is recorded by what
it answered (``looked``), and asked nothing in a replay. A file that ends in the middle of a
line was written by a node that was killed: it is replayed up to there.
"""

from __future__ import annotations

import base64
import importlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from cotidal.core.machine import Entropy
from cotidal.node.chronicle import EventsWriter
from cotidal.node.coordinators import CoordinatorLog
from cotidal.node.effects import Effect
from cotidal.node.events import Event
from cotidal.node.node import Node
from cotidal.node.quorum import MetadataReader
from cotidal.node.state import NodeConfig, RecordInspector
from cotidal.node.trace import line as told
from cotidal.values import Millis

KIND: Final = "cotidal node"
VERSION: Final = 1
PACKAGE: Final = "cotidal."

PAYLOADS: Final = frozenset(
    {
        ("Batches", "data"),
        ("ReadDone", "results"),
        ("KeepChunk", "data"),
        ("PartitionData", "records"),
        ("FetchSnapshotResponsePartitionSnapshot", "unaligned_records"),
    }
)
"""Fields that hold records as bytes. A replay has as many zeros in their place."""


class RecordingError(ValueError):
    """What is no such file, or one of another version; one sentence."""


# Values as JSON -----------------------------------------------------------------------------------


def to_json(value: Any, *, payload: bool = False) -> Any:
    """``payload``: bytes of it are records, of which only the size is kept."""
    if value is None or isinstance(value, bool | str | float):
        return value
    if isinstance(value, Enum):
        return {"e": _name(type(value)), "v": value.value}
    if isinstance(value, int):
        return value
    if isinstance(value, memoryview) or (payload and isinstance(value, bytes | bytearray)):
        return {"z": len(value)}
    if isinstance(value, bytes | bytearray):
        return {"b": base64.b64encode(value).decode()}
    if isinstance(value, tuple):
        if not hasattr(value, "_fields"):
            return {"t": [to_json(each, payload=payload) for each in value]}
        kind = type(value)
        fields = [
            to_json(each, payload=(kind.__name__, name) in PAYLOADS)
            for name, each in zip(value._fields, value, strict=True)
        ]
        return {"c": _name(kind), "f": fields}
    if isinstance(value, list):
        return [to_json(each, payload=payload) for each in value]
    if isinstance(value, Mapping):
        return {"d": [[to_json(key), to_json(each)] for key, each in value.items()]}
    if isinstance(value, frozenset):
        return {"s": sorted((to_json(each) for each in value), key=_text)}
    if payload:
        return {"z": len(value)}  # a Stretch
    return {"u": type(value).__name__}  # a node is not stopped by what nobody thought of


def from_json(told: Any) -> Any:
    if isinstance(told, list):
        return [from_json(each) for each in told]
    if not isinstance(told, dict):
        return told
    match told:
        case {"c": name, "f": fields}:
            return _class(name)(*map(from_json, fields))
        case {"t": items}:
            return tuple(map(from_json, items))
        case {"z": size}:
            return bytes(size)
        case {"b": text}:
            return base64.b64decode(text)
        case {"e": name, "v": value}:
            return _class(name)(value)
        case {"s": items}:
            return frozenset(map(from_json, items))
        case {"d": items}:
            return {from_json(key): from_json(value) for key, value in items}
        case {"u": name}:
            raise RecordingError(f"a {name} was not recorded: it cannot be lived again")
        case _:
            raise RecordingError(f"{told} stands for no value")


_CLASSES: Final[dict[str, Any]] = {}


def _name(kind: type) -> str:
    return f"{kind.__module__.removeprefix(PACKAGE)}:{kind.__qualname__}"


def _class(name: str) -> Any:
    """A value class of ours, and no other: a file may come from anywhere."""
    found = _CLASSES.get(name)
    if found is None:
        module, _, attribute = name.partition(":")
        try:
            found = getattr(importlib.import_module(PACKAGE + module), attribute)
        except (ImportError, AttributeError):
            raise RecordingError(f"there is no {name} here: another version wrote it") from None
        if not (isinstance(found, type) and issubclass(found, tuple | Enum)):
            raise RecordingError(f"{name} is no value")
        _CLASSES[name] = found
    return found


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


# Recording ----------------------------------------------------------------------------------------


class World(NamedTuple):
    """What a node is given to look into batches with, and to make them; as it takes them."""

    reader: MetadataReader
    inspect: RecordInspector
    coordinator_log: CoordinatorLog
    events: EventsWriter

    def seen_through(self, through: Callable[[Callable[..., Any]], Callable[..., Any]]) -> World:
        """The same, with something between the node and each of its parts."""
        return World(
            through(self.reader),
            through(self.inspect),
            CoordinatorLog(*(through(part) for part in self.coordinator_log)),
            through(self.events),
        )


class RecordedNode:
    """A node that writes down what it lives through. To whoever drives it, a node."""

    __slots__ = ("_looked", "_write", "node")

    def __init__(
        self, config: NodeConfig, seed: int, world: World, write: Callable[[str], object]
    ) -> None:
        """``write``: one line, without its end."""
        self._looked: list[Any] = []
        self._write = write
        self.node = Node(config, Entropy(seed), *world.seen_through(self._noted))
        head = {"trace": KIND, "version": VERSION, "config": to_json(config), "entropy": seed}
        write(_text(head))

    def step(self, event: Event, now: Millis) -> tuple[Effect, ...]:
        happened = to_json(event)  # before it is stepped: what it holds may be taken out of it
        effects = self.node.step(event, now)
        looked, self._looked = self._looked, []
        told = {"now": now, "event": happened, "looked": looked}
        self._write(_text({**told, "effects": [to_json(effect) for effect in effects]}))
        return effects

    def next_deadline(self) -> Millis | None:
        return self.node.next_deadline()

    def _noted(self, look: Callable[..., Any]) -> Callable[..., Any]:
        def looked(*asked: object) -> Any:
            found = look(*asked)
            if isinstance(found, Iterator):
                found = tuple(found)
            self._looked.append(to_json(found))
            return found

        return looked


# Living it again ----------------------------------------------------------------------------------


class Difference(NamedTuple):
    """The first step in which a replayed node wanted something else."""

    step: int
    event: str
    recorded: tuple[str, ...]
    """Effects in words."""
    wanted: tuple[str, ...]


class Replayed(NamedTuple):
    config: NodeConfig
    steps: int
    effects: int
    difference: Difference | None
    cut: bool
    """The file ends in the middle of a line."""


def is_recording(first_line: str) -> bool:
    return first_line.startswith('{"trace":') and f'"{KIND}"' in first_line


def replay(lines: Iterable[str]) -> Replayed:
    """RecordingError for what is no recording, or one that this version cannot read."""
    whole = _whole(iter(lines))
    head = next(whole, None)
    if head is None or head.get("trace") != KIND:
        raise RecordingError("this is no recording of a node")
    if head["version"] != VERSION:
        raise RecordingError(f"it is of version {head['version']}, and only {VERSION} is known")
    config = from_json(head["config"])
    looked: deque[Any] = deque()

    def found(*_: object) -> Any:
        if not looked:
            raise _Strayed
        return from_json(looked.popleft())

    world = World(found, found, CoordinatorLog(found, found, found), found)
    node = Node(config, Entropy(head["entropy"]), *world)
    steps = effects = 0
    cut = False
    for told_step in whole:
        if not told_step:
            cut = True
            break
        steps += 1
        looked.clear()
        looked.extend(told_step["looked"])
        event = from_json(told_step["event"])
        try:
            wanted = [to_json(effect) for effect in node.step(event, Millis(told_step["now"]))]
        except Exception as strayed:  # in another life than its own it may break any promise
            lost = Difference(steps, told(event), _words(told_step["effects"]), (repr(strayed),))
            return Replayed(config, steps, effects, lost, cut)
        effects += len(wanted)
        if wanted != told_step["effects"]:
            words = (_words(told_step["effects"]), _words(wanted))
            return Replayed(config, steps, effects, Difference(steps, told(event), *words), cut)
    return Replayed(config, steps, effects, None, cut)


class _Strayed(Exception):
    """The node looks into records at a moment at which the recorded one did not."""


def _whole(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Each line's object; an empty one for a line that was cut short."""
    for text in lines:
        try:
            found = json.loads(text)
        except ValueError:
            found = {}
        yield found if isinstance(found, dict) else {}


def _words(effects: list[Any]) -> tuple[str, ...]:
    return tuple(map(_word, effects))


def _word(effect: Any) -> str:
    try:
        return told(from_json(effect))
    except RecordingError:
        return _text(effect)
