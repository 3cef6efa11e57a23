"""How the demo speaks: one line for each thing that happened, with the time it took."""

from __future__ import annotations

import sys


class Failed(Exception):
    """A claim of the story does not hold."""


def say(text: str) -> None:
    print(text, flush=True)


def tell(text: str, seconds: float | None = None) -> None:
    took = "" if seconds is None else f"  {seconds:6.2f} s"
    mark = "✓" if (sys.stdout.encoding or "").lower().startswith("utf") else "*"
    say(f" {mark} {text:<78}{took}")
