"""The worlds that a page can open where nothing but the simulator is there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cotidal.console.lab_world import Lab
from cotidal.console.lesson_world import LessonWorld
from cotidal.console.lessons import LESSONS
from cotidal.console.run_world import RunWorld
from cotidal.console.session import Opener
from cotidal.console.simulated import Simulated
from cotidal.console.story import Story
from cotidal.console.world import Command, Refused, World


def _told(command: Command) -> World:
    """A script, or a lesson of the sandbox."""
    name = command.text("story")
    if not name.startswith("lesson/"):
        return Story.opened(command)
    lesson = name.removeprefix("lesson/")
    if lesson not in LESSONS:
        raise Refused(f"there is no lesson '{lesson}'")
    return LessonWorld(lesson)


WORLDS: Final[Mapping[str, Opener]] = {
    "simulator": Simulated.opened,
    "story": _told,
    "run": RunWorld.opened,
    "lab": Lab.opened,
}
