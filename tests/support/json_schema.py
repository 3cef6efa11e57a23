"""Just as much of JSON Schema as docs/events.schema.json uses; any other word in it is an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

KNOWN = {
    *("$schema", "$id", "$defs", "$ref", "title", "description"),
    *("oneOf", "type", "const", "minimum", "items"),
    *("properties", "required", "additionalProperties"),
}
TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
}
EVENTS = json.loads(
    (Path(__file__).resolve().parents[2] / "docs" / "events.schema.json").read_text("utf-8")
)


def violations(value: Any, schema: Any, root: Any = None, at: str = "") -> list[str]:
    """What is wrong with a value; nothing if it is valid."""
    root = schema if root is None else root
    assert not schema.keys() - KNOWN, schema.keys() - KNOWN
    if "$ref" in schema:
        *_, name = schema["$ref"].split("/")
        return violations(value, root["$defs"][name], root, at)
    if "oneOf" in schema:
        tried = [violations(value, each, root, at) for each in schema["oneOf"]]
        valid = sum(not wrong for wrong in tried)
        return (
            [] if valid == 1 else [f"{at or 'it'} is {valid} of the kinds: {min(tried, key=len)}"]
        )
    if "const" in schema:
        return [] if value == schema["const"] else [f"{at} is {value!r}, not {schema['const']!r}"]
    kind = TYPES[schema["type"]]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        return [f"{at} is {value!r}, not of type {schema['type']}"]
    if "minimum" in schema and value < schema["minimum"]:
        return [f"{at} is below {schema['minimum']}"]
    if kind is list:
        return [
            wrong
            for place, each in enumerate(value)
            for wrong in violations(each, schema["items"], root, f"{at}[{place}]")
        ]
    if kind is dict:
        return _of_object(value, schema, root, at)
    return []


def _of_object(value: dict[str, Any], schema: Any, root: Any, at: str) -> list[str]:
    properties = schema["properties"]
    assert schema["additionalProperties"] is False
    wrong = [f"{at}.{name} is missing" for name in schema["required"] if name not in value]
    wrong += [f"{at}.{name} is not known" for name in value if name not in properties]
    for name, each in value.items():
        if name in properties:
            wrong += violations(each, properties[name], root, f"{at}.{name}")
    return wrong
