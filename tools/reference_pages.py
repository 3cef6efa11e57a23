"""Writes the parts of the documentation that the code already knows.

python tools/reference_pages.py            write them
python tools/reference_pages.py --check    fail if a page is not what would be written

A page is prose by hand with parts in between that are not:

    <!-- generated: limits -->
    whatever stands here is replaced
    <!-- end generated -->

The name after the colon chooses the writer, the words after it are its arguments. A page therefore
says itself what it wants to show; nothing about pages is said here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import client_results
import reference_apis
import reference_campaigns
import reference_commands
import reference_events
import reference_limits
import reference_metrics
import reference_settings
import reference_stories

ROOT: Final = Path(__file__).resolve().parent.parent

REGION: Final = re.compile(
    r"(?P<head><!-- generated: (?P<words>[^\n]*?) -->\n).*?(?P<tail><!-- end generated -->)", re.S
)

Writer = Callable[[tuple[str, ...]], str]

WRITERS: Final[Mapping[str, Writer]] = {
    "apis": reference_apis.families,
    "campaigns": reference_campaigns.campaigns,
    "clients": client_results.clients,
    "compatibility": reference_apis.compatibility,
    "corners": reference_campaigns.corners,
    "commands": reference_commands.commands,
    "events": reference_events.events,
    "health": reference_events.health,
    "invariants": reference_limits.invariants,
    "limits": reference_limits.limits,
    "metrics": reference_metrics.metrics,
    "metrics-of-kafka": reference_metrics.of_kafka,
    "settings": reference_settings.settings_of,
    "stories-others": reference_stories.others,
    "stories-tour": reference_stories.tour,
}


def rewritten(text: str, where: str) -> str:
    """The page with every generated part as the code has it now."""

    def part(match: re.Match[str]) -> str:
        name, *arguments = match["words"].split()
        if name not in WRITERS:
            raise ValueError(f"{where}: nothing writes '{name}'; there are {', '.join(WRITERS)}")
        body = WRITERS[name](tuple(arguments)).strip()
        return f"{match['head']}\n{body}\n\n{match['tail']}"

    return REGION.sub(part, text)


def pages(docs: Path) -> dict[Path, tuple[str, str]]:
    """Every page that has generated parts: as it is, as it should be."""
    found: dict[Path, tuple[str, str]] = {}
    for path in sorted(docs.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if REGION.search(text):
            found[path] = (text, rewritten(text, str(path.relative_to(docs))))
    return found


def main(arguments: list[str]) -> int:
    stale = {path: new for path, (old, new) in pages(ROOT / "docs").items() if old != new}
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date; run python tools/reference_pages.py")
        return 1 if stale else 0
    for path, text in stale.items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
