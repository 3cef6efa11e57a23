"""What hatch_build.py compiles fits together with what it leaves as it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "cotidal"
PLAIN_ONLY = PACKAGE / "console"
"""The page runs on the plain build, and says so."""


def compiled() -> set[Path]:
    """As ``modules`` there has it, which cannot be imported without what builds it."""
    patterns: dict[str, tuple[str, ...]] = {}
    for line in ast.parse((ROOT / "hatch_build.py").read_text()).body:
        match line:
            case ast.AnnAssign(
                target=ast.Name(id="ROOMS" | "PLAIN" as name), value=ast.expr() as said
            ):
                patterns[name] = ast.literal_eval(said)
    rooms, plain = (
        {path for pattern in patterns[name] for path in PACKAGE.glob(pattern)}
        for name in ("ROOMS", "PLAIN")
    )
    return rooms - plain


def bases(path: Path) -> Iterator[tuple[str, Path]]:
    """Classes there that derive from one of another module of ours, and that module."""
    tree = ast.parse(path.read_text())
    homes = {
        name.asname or name.name: ROOT / "src" / Path(*line.module.split(".")).with_suffix(".py")
        for line in ast.walk(tree)
        if isinstance(line, ast.ImportFrom) and (line.module or "").startswith("cotidal.")
        for name in line.names
        if line.module is not None
    }
    for each in ast.walk(tree):
        if isinstance(each, ast.ClassDef):
            for base in each.bases:
                if isinstance(base, ast.Name) and base.id in homes:
                    yield each.name, homes[base.id]


def test_no_interpreted_class_derives_from_a_compiled_one() -> None:
    """Python refuses to make such a class, when its module is imported or an object is made."""
    made = compiled()
    plain = [
        path
        for path in PACKAGE.rglob("*.py")
        if path not in made and not path.is_relative_to(PLAIN_ONLY)
    ]
    assert len(made) > 100
    assert len(plain) > 100
    wrong = [(name, home.name) for path in plain for name, home in bases(path) if home in made]
    assert wrong == []
