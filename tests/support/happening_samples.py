"""One happening of each kind, made from what its class says."""

from __future__ import annotations

import json
from typing import Any, get_args, get_type_hints

from cotidal.node.happenings import Told, record_value
from cotidal.values import NodeId, WallMillis

TIME = 1_700_000_000_123


def record_of(kind: type) -> bytes:
    """As it is written: the first that node 1 tells."""
    return record_value(Told(NodeId(1), "life", 1, WallMillis(TIME), _sample(kind)))


def event_of(kind: type) -> dict[str, Any]:
    event = json.loads(record_of(kind))
    assert isinstance(event, dict)
    return event


def _sample(hint: Any) -> Any:
    if getattr(hint, "__origin__", None) is tuple:
        return (_sample(get_args(hint)[0]),)
    hint = getattr(hint, "__supertype__", hint)
    if hint in (int, str, bool):
        return hint(1)
    return hint(*(_sample(each) for each in get_type_hints(hint).values()))
