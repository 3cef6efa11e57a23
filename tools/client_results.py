"""What the client suites of `make interop` gave, and the table of it in docs/compatibility.md.

The file is data: each run writes the rows that it measured, with the commit that it measured, and
leaves the others. Nothing here is written by hand, and nothing checks that a run gives it again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from reference_table import table

FILE: Final = Path(__file__).resolve().parent.parent / "docs" / "client-results.json"
OURS: Final = "cotidal"


class Failure(NamedTuple):
    name: str
    why: str


class Result(NamedTuple):
    """One suite of one client against one server."""

    client: str
    version: str
    ran: str
    """What was run, in a few words."""
    server: str
    passed: int
    failed: tuple[Failure, ...]
    skipped: int
    commit: str
    """The last one that changed the product; with a + if it was changed since."""

    @property
    def suite(self) -> tuple[str, str]:
        return self.client, self.ran

    @property
    def counts(self) -> str:
        told = f"{self.passed} passed"
        told += f", {len(self.failed)} failed" if self.failed else ""
        return told + (f", {self.skipped} skipped" if self.skipped else "")


def load(file: Path = FILE) -> tuple[Result, ...]:
    if not file.exists():
        return ()
    return tuple(
        Result(**{**row, "failed": tuple(Failure(**each) for each in row["failed"])})
        for row in json.loads(file.read_text(encoding="utf-8"))
    )


def merged(old: Iterable[Result], new: Iterable[Result]) -> tuple[Result, ...]:
    """Every row once: the new one where there is one."""
    rows = {(*each.suite, each.server): each for each in (*old, *new)}
    return tuple(rows[key] for key in sorted(rows))


def save(results: Iterable[Result], file: Path = FILE) -> None:
    rows = [
        each._asdict() | {"failed": [failure._asdict() for failure in each.failed]}
        for each in results
    ]
    text = json.dumps(rows, indent=1, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")


def clients(_arguments: tuple[str, ...] = ()) -> str:
    """The part of a page: what was measured, and on which commits."""
    return told(load())


def told(results: tuple[Result, ...]) -> str:
    suites: dict[tuple[str, str], dict[str, Result]] = {}
    for each in results:
        suites.setdefault(each.suite, {})[each.server] = each
    others = sorted({each.server for each in results} - {OURS})
    rows = []
    for (client, ran), servers in suites.items():
        ours = servers.get(OURS)
        version = next(iter(servers.values())).version
        counts = [_counts(servers.get(server)) for server in (OURS, *others)]
        rows.append((f"{client} {version}", ran, *counts, _why(ours)))
    heads = ("Client", "What was run", OURS, *others, "Failed here, and why")
    commits = sorted({each.commit for each in results if each.server == OURS})
    return f"{table(heads, rows)}\n\nMeasured on {', '.join(commits) or 'no commit'}."


def _counts(result: Result | None) -> str:
    return "not run" if result is None else result.counts


def _why(result: Result | None) -> str:
    if result is None:
        return ""
    reasons: dict[str, list[str]] = {}
    for failure in result.failed:
        reasons.setdefault(failure.why, []).append(failure.name)
    return "; ".join(f"{', '.join(names)}: {why}" for why, names in reasons.items())
