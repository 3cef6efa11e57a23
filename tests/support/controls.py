"""Every control that pages offer to tests, and which of them tests have used.

A control is whatever can be clicked, filled, chosen, dragged or pressed as a key. A script that
stands in each page before its own tells of those that can be seen, and of each that is used, in
lines on the browser's console: those arrive even if a page is closed a moment later. A control has
the same name whatever it is about ("Kill broker N"); one of a live cluster is another one than the
same of a simulated cluster.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

PREFIX: Final = "control"


class Controls:
    """What the pages of this process have told."""

    def __init__(self) -> None:
        self.offered: dict[str, str] = {}
        """With the test in which each was first seen."""
        self.used: set[str] = set()
        self.passed: set[str] = set()
        """Tests, by their names."""

    def hear(self, line: str, test: str) -> None:
        """A line of a browser's console; others than ours are passed over."""
        prefix, _, rest = line.partition(" ")
        if prefix != PREFIX:
            return
        did, _, name = rest.partition(" ")
        self.offered.setdefault(name, test)
        if did == "used":
            self.used.add(name)

    def unused(self) -> dict[str, str]:
        return {name: self.offered[name] for name in sorted(self.offered.keys() - self.used)}


CONTROLS: Final = Controls()

SCRIPT: Final = Path(__file__).with_suffix(".js").read_text()
"""Before the page's own."""
