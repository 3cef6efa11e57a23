"""The bounds of limits.py and the promises of invariants.py, with their reasons, as tables."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from cotidal import invariants as promises
from cotidal import limits as bounds
from reference_table import code, table

SECTIONS: Final = {
    "node": "One node",
    "broker": "Sockets",
    "log": "Disk, memory and logging",
    "client": "Our own client",
    "wire": "Record batches",
    "cluster": "The cluster",
}
"""Comments of limits.py that begin a section, as headings."""


class Bound(NamedTuple):
    section: str
    name: str
    reason: str


def limits(arguments: tuple[str, ...]) -> str:
    parts: list[str] = []
    by_section: dict[str, list[Bound]] = {}
    for bound in read_bounds(inspect.getsource(bounds)):
        by_section.setdefault(bound.section, []).append(bound)
    for section, held in by_section.items():
        rows = [(code(b.name), quantity(b.name, getattr(bounds, b.name)), b.reason) for b in held]
        parts.append(f"## {SECTIONS[section]}\n\n{table(('Name', 'Value', 'Why'), rows)}")
    return "\n\n".join(parts)


def read_bounds(source: str) -> Iterator[Bound]:
    """Every constant that has its reason below it; units such as MIB have none."""
    lines = source.splitlines()
    body = ast.parse(source).body
    for statement, after in pairwise(body):
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
            continue
        match after:
            case ast.Expr(value=ast.Constant(value=str(reason))):
                section = _section_above(lines, statement.lineno)
                yield Bound(section, statement.target.id, " ".join(reason.split()))
            case _:
                pass


def _section_above(lines: list[str], line: int) -> str:
    for text in reversed(lines[:line]):
        named = re.fullmatch(r"# ([a-z]+)", text)
        if named and named[1] in SECTIONS:
            return named[1]
    raise ValueError(f"limits.py, line {line}: no section comment above it")


def quantity(name: str, value: int) -> str:
    """
    >>> quantity("FRAME_BYTES_MAX", 104857600), quantity("IDLE_MS", 600000)
    ('100 MiB', '600 s')
    """
    if "BYTES" in name.split("_"):
        for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
            if value >= size and value % size == 0:
                return f"{value // size} {unit}"
    if name.endswith("_MS") and value >= 1000 and value % 1000 == 0:
        return f"{value // 1000} s"
    return f"{value:,}"


def invariants(arguments: tuple[str, ...]) -> str:
    rows = [
        (code(name), text[0].upper() + text[1:])
        for name, text in vars(promises).items()
        if name.isupper() and isinstance(text, str)
    ]
    return table(("Name", "Promise"), rows)
