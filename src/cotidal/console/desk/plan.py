"""What an action would do, told before it is done. Pure.

An action has two questions of almost one name: ``plan-delete-topic`` looks and tells, and changes
nothing; ``delete-topic`` does it. A page asks the first, shows what it says, and asks the second
only when a person has confirmed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cotidal.console.world import Json


class Plan(NamedTuple):
    title: str
    sentences: Sequence[str]
    button: str
    """What confirms it."""
    loses: bool = False
    """Records may be lost: it is to be confirmed with care."""
    head: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()
    arguments: Json = {}
    """What the action is to be asked with beside what the plan was: just what was shown."""

    def json(self) -> Json:
        return {
            "title": self.title,
            "sentences": list(self.sentences),
            "button": self.button,
            "loses": self.loses,
            "head": list(self.head),
            "rows": [list(row) for row in self.rows],
            "arguments": self.arguments,
        }


def done(sentence: str, **more: object) -> Json:
    return {"sentence": sentence, **more}
