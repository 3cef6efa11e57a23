"""A planted bug: one small change at one place of the product, and the rule that it breaks."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

HOUSE = Path(__file__).resolve().parents[2]
PRODUCT = HOUSE / "src" / "cotidal"


class Mutant(NamedTuple):
    name: str
    rule: str
    """What holds in the house and no longer with this patch, and where the specification says so:
    a KIP, a Kafka issue, or the module that states it."""
    file: str
    """Below src/cotidal."""
    before: str
    """Found exactly once in the file."""
    after: str
    plans: tuple[str, ...]
    """Plans of the simulator that may show it."""

    def patched(self, text: str) -> str:
        found = text.count(self.before)
        if found != 1:
            raise LookupError(f"{self.name}: its text is {found} times in {self.file}, not once")
        return text.replace(self.before, self.after)


def plant(tree: Path, mutant: Mutant | None) -> None:
    """A copy of the product below ``tree``, with the bug in it; without one for the control."""
    shutil.copytree(PRODUCT, tree / "cotidal", ignore=shutil.ignore_patterns("__pycache__"))
    if mutant is not None:
        path = tree / "cotidal" / mutant.file
        path.write_text(mutant.patched(path.read_text(encoding="utf-8")), encoding="utf-8")
