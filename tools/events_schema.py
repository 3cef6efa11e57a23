"""Writes docs/events.schema.json from the classes of node/happenings.py.

python tools/events_schema.py            write it
python tools/events_schema.py --check    fail if it is not what would be written

JSON Schema, draft 2020-12: a record is one of the kinds; each kind has all of its fields and no
others, so that a table can be made of it.
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any, Final, get_args, get_origin, get_type_hints

from cotidal.core.cluster.decide.topics import EVENTS_TOPIC
from cotidal.node import happenings

FILE: Final = Path(__file__).resolve().parent.parent / "docs" / "events.schema.json"

ENVELOPE: Final[dict[str, dict[str, Any]]] = {
    "v": {"const": happenings.SCHEMA_VERSION, "description": "Version of this schema."},
    "time": {"type": "integer", "description": "Milliseconds since 1970, by the teller's clock."},
    "teller": {"type": "integer", "description": "The node that wrote the record."},
    "incarnation": {"type": "string", "description": "Of the teller's process; new at each start."},
    "sequence": {
        "type": "integer",
        "minimum": 1,
        "description": "Counts what an incarnation tells; a gap is what was dropped.",
    },
}


def schema() -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "cotidal-events",
        "title": f"A record of {EVENTS_TOPIC}",
        "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in happenings.KINDS.values()],
        "$defs": {kind: _of_kind(each, kind) for each, kind in happenings.KINDS.items()},
    }


def _of_kind(each: type, kind: str) -> dict[str, Any]:
    told = {"kind": {"const": kind}, **ENVELOPE, **_fields(each)}
    return {"description": sentence(each), **_object(told)}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _fields(each: type) -> dict[str, Any]:
    return {name: _type_of(hint) for name, hint in get_type_hints(each).items()}


def _type_of(hint: Any) -> dict[str, Any]:
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _type_of(get_args(hint)[0])}
    hint = getattr(hint, "__supertype__", hint)
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    return {"description": sentence(hint), **_object(_fields(hint))}


_PLAIN: Final[dict[type, str]] = {int: "integer", str: "string", bool: "boolean"}


def sentence(each: type) -> str:
    text = inspect.getdoc(each) or ""
    return "" if text.startswith(f"{each.__name__}(") else " ".join(text.split())


def main(arguments: list[str]) -> int:
    text = json.dumps(schema(), indent=1) + "\n"
    if "--check" in arguments:
        if FILE.read_text(encoding="utf-8") != text:
            print(f"{FILE.name} is out of date; run python tools/events_schema.py")
            return 1
        return 0
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
