"""What every world behind the page is. Pure.

A world is commanded by the page and obeys at once, refuses with a sentence, or says that an answer
will come. Time passes when its host says so. Everything that it gives is plain JSON: dicts with
text keys, lists, text, numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

Json = dict[str, Any]


class Refused(Exception):
    """A command that cannot be obeyed. The message is one sentence for whoever gave it."""


class Awaited(Protocol):
    """An answer that takes its time: whoever asked looks for it once a turn."""

    def found(self) -> Json | None:
        """None: not yet. Refused if there will be none."""


class World(Protocol):
    @property
    def about(self) -> Json:
        """What the page must know before the first picture: title, captions, what can be done."""

    @property
    def logs(self) -> Mapping[str, Sequence[Json]]:
        """Lists that grow at their end: what was told, measured, decided."""

    def obey(self, command: Command) -> Json | Awaited | None:
        """Refused if it cannot. What is found goes to whoever asked."""

    def advance(self, passed_ms: int) -> None:
        """So much time has passed where the page is."""

    def picture(self) -> Json: ...


class Command:
    """A command of the page, taken apart with care: it may say anything."""

    __slots__ = ("_said", "name")

    def __init__(self, said: object) -> None:
        if not isinstance(said, dict) or not isinstance(said.get("do"), str):
            raise Refused('a command is an object with a word in "do"')
        self._said = said
        self.name: str = said["do"]

    def __contains__(self, name: str) -> bool:
        return name in self._said

    @property
    def said(self) -> Json:
        return self._said

    def number(self, name: str, default: int | None = None, *, least: int, most: int) -> int:
        found = self._said.get(name, default)
        if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
            raise Refused(f"'{self.name}' needs a whole number '{name}' from {least} to {most}")
        return found

    def fraction(self, name: str, *, least: float, most: float) -> float:
        found = self._said.get(name)
        if not isinstance(found, int | float) or isinstance(found, bool):
            raise Refused(f"'{self.name}' needs a number '{name}'")
        if not least <= found <= most:
            raise Refused(f"'{name}' lies between {least} and {most}")
        return float(found)

    def text(self, name: str, default: str | None = None, *, longest: int = 200) -> str:
        found = self._said.get(name, default)
        if not isinstance(found, str) or len(found) > longest:
            raise Refused(f"'{self.name}' needs a text '{name}' of at most {longest} characters")
        return found

    def one_of(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        found = self._said.get(name, default)
        if not isinstance(found, str) or found not in choices:
            raise Refused(f"'{name}' is one of {', '.join(choices)}")
        return found

    def flag(self, name: str, default: bool | None = None) -> bool:
        found = self._said.get(name, default)
        if not isinstance(found, bool):
            raise Refused(f"'{self.name}' needs '{name}' to be true or false")
        return found

    def list_of(self, name: str) -> list[Any]:
        found = self._said.get(name, [])
        if not isinstance(found, list):
            raise Refused(f"'{name}' is a list")
        return found
