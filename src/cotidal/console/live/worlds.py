"""The worlds of a page that has a live cluster behind it: that one, and those of the simulator.

Those are imported when a page first opens one of them: a console that only watches does without.
"""

from __future__ import annotations

from collections.abc import Mapping

from cotidal.console.live.world import opener
from cotidal.console.session import Opener
from cotidal.console.world import Command, Refused, World


def worlds_with(bootstrap: str, *, home: str | None, allow_changes: bool) -> Mapping[str, Opener]:
    live = opener(bootstrap, home=home, allow_changes=allow_changes)
    worlds: dict[str, Opener] = {"live": live}
    for name in ("simulator", "story", "run", "lab"):
        worlds[name] = _simulated(name)
    return worlds


def _simulated(name: str) -> Opener:
    def opened(command: Command) -> World:
        try:
            from cotidal.console.worlds import WORLDS
        except TypeError:  # its worlds derive from classes that are closed in the compiled build
            raise Refused("the simulator's page runs on the plain build of cotidal") from None
        return WORLDS[name](command)

    return opened
