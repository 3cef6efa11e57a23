"""The stories that the page plays, as text with a place beneath each where its world can run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from cotidal.console.lessons import LESSONS
from cotidal.console.stories import KINDS, TOUR, first_words, names, text_of
from cotidal.testing.scripts import read_script

ROOMS: Final = {
    "partition": "One partition",
    "cluster": "The controller and its brokers",
    "quorum": "The quorum of controllers",
}
"""Headings for the directories of tests/scripts."""
MARKS: Final = re.compile(r"[\\`*_{}\[\]<>|#]")


def tour(arguments: tuple[str, ...]) -> str:
    """Every lesson of the tour, in order, told whole."""
    parts: list[str] = []
    for number, (title, name) in enumerate(TOUR, start=1):
        parts += [f"## {number}. {title}", *map(plain, captions(name)), stage(name, title)]
    return "\n\n".join(parts)


def others(arguments: tuple[str, ...]) -> str:
    """Every other script of the test suite, by its first sentence."""
    toured = {name for _, name in TOUR}
    parts: list[str] = []
    for kind in KINDS:
        mine = [name for name in names() if name.startswith(f"{kind}/") and name not in toured]
        parts += [f"### {ROOMS[kind]}"]
        for name in mine:
            parts += [plain(first_words(name)) + ".", stage(name, name.split("/")[1])]
    return "\n\n".join(parts)


def captions(name: str) -> Iterator[str]:
    if name.startswith("lesson/"):
        for scene in LESSONS[name.removeprefix("lesson/")].scenes:
            yield scene.caption
        return
    script = read_script(text_of(name))
    for before in (*(step.before for step in script.steps), script.after):
        said = " ".join(line.removeprefix("#").strip() for line in before).strip()
        if said:
            yield said


def stage(name: str, title: str) -> str:
    """assets/stories.js puts a button here; without it, the command says how to see it."""
    return f'<p class="story" data-story="{name}" data-title="{title}">' + (
        f"<code>cotidal sim serve --story {name}</code></p>"
    )


def plain(text: str) -> str:
    """What Markdown would take for a mark is only itself."""
    return MARKS.sub(lambda mark: "\\" + mark[0], text)
