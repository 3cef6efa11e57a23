"""Other people's suites: fetched once, run against a cluster, and what came of it.

A suite that cannot be had here (no Go, no registry) is ``Missing``, which says what is missing in
one sentence. What is fetched lies in ``~/.cache/cotidal`` beside Kafka's jars, never in the tree.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench import apache_kafka
from client_results import OURS, Failure, Result

ROOT: Final = Path(__file__).parents[2]


class Missing(Exception):
    """This suite cannot run here."""


class Suite(NamedTuple):
    client: str
    version: str
    ran: str


class Ran(NamedTuple):
    """What a suite gave: names of tests, with what a failed one said."""

    passed: tuple[str, ...]
    failed: Mapping[str, str]
    skipped: tuple[str, ...]


def cache(name: str) -> Path:
    return apache_kafka.home().parent / name


def run(
    command: Sequence[str], seconds: float, *, where: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Whatever it prints, in one; it may fail."""
    try:
        return subprocess.run(
            command,
            cwd=where,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
        )
    except FileNotFoundError:
        raise Missing(f"{command[0]} is not installed") from None


def fetch(command: Sequence[str], seconds: float, *, where: Path, what: str) -> str:
    """A step without which there is no suite; answers what it printed."""
    ended = run(command, seconds, where=where)
    if ended.returncode:
        last = (ended.stdout.strip().splitlines() or ["nothing was said"])[-1]
        raise Missing(f"{what} could not be had: {last}")
    return ended.stdout


def judged(
    suite: Suite, server: str, ran: Ran, known: Mapping[str, str]
) -> tuple[Result, dict[str, str]]:
    """The row for the table, and what failed here without a known reason.

    ``known``: pattern of a whole name -> why it fails here.
    """

    def why(name: str) -> str | None:
        return next((why for pattern, why in known.items() if re.fullmatch(pattern, name)), None)

    failures = tuple(Failure(name, why(name) or "not known yet") for name in sorted(ran.failed))
    row = Result(
        *suite,
        server=server,
        passed=len(ran.passed),
        failed=failures,
        skipped=len(ran.skipped),
        commit=_commit(),
    )
    unknown = {name: said for name, said in ran.failed.items() if why(name) is None}
    return row, unknown if server == OURS else {}


def _commit() -> str:
    """The last one that changed the product."""
    last = run(("git", "log", "-1", "--format=%h", "--", "src"), 30, where=ROOT)
    if last.returncode:
        return "no commit"
    changed = run(("git", "status", "--porcelain", "--", "src"), 30, where=ROOT).stdout
    return last.stdout.strip() + ("+" if changed else "")
