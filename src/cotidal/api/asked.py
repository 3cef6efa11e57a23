"""What a handler is told about a request besides its content. Pure."""

from __future__ import annotations

from typing import NamedTuple

from cotidal.values import WallMillis


class Asked(NamedTuple):
    api_version: int
    client_id: str | None
    listener: str
    """The name of the listener on which it came: answers name endpoints of this listener."""
    wall: WallMillis
    client_host: str = ""
