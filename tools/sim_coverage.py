"""How much of the protocol simulation alone reaches: `make sim-coverage`.

Runs some seeds of every plan, notes every line of core/ and node/ that is come to, and says which
none came to, file by file. A line that is never reached is dead, or wants a workload that reaches
it. Whole files that no run is meant to reach are in NOT_SIMULATED, and what no run can come to is
in UNREACHABLE, each with the reason. What else is left is, for the most part:

  image.py, together.py               records of Apache Kafka's own controllers
  decide/directories.py, offline.py   damage in a log that is cut; a directory that fails
  quorum/membership.py, following.py  a voter with new endpoints or of another release
  leader.acks_outcome                 (20), which nobody gets (sim/probes.py)

A tracer would take four times as long as the runs themselves. Instead each statement of the two
rooms is preceded, as its module is imported, by a note of its line, which costs about as much as
it; coverage.py knows which lines count, and writes the table.

Exit status 1 below COVERED_MIN, or if a promise was broken.
"""

from __future__ import annotations

import argparse
import ast
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

import coverage

ROOT: Final = Path(__file__).parents[1]
ROOMS: Final = ("cotidal.core.", "cotidal.node.")
COVERED_MIN: Final = 95.0
SEEDS: Final = 6

NOT_SIMULATED: Final = {
    "*/core/trace/*": "lines for people: a run keeps values, and writes them only if it fails",
    "*/node/trace.py": "the same",
    "*/node/gist.py": "the same",
}
_BROKEN: Final = "only when a promise is broken, which ends a run"
_ONE_DIRECTORY: Final = "a simulated node has one log directory"
_OWN_FILE: Final = "a file of another version or of nobody: a run reads what it has written itself"
UNREACHABLE: Final = {
    r"case _:\n\s+(assert_never|raise AssertionError)": "for the type checker",
    "assert_never": "for the type checker",
    "if TYPE_CHECKING": "for the type checker",
    "raise AssertionError": _BROKEN,
    r"def on_faults\(": _BROKEN,
    r"def fail\(q: Quorum": _BROKEN,
    r"raise _Strayed": _BROKEN,
    r"except Exception as strayed": _BROKEN,
    r"if wanted != told_step": _BROKEN,
    r"def _words?\(effect": _BROKEN,
    r"def on_directory_failed\(": _ONE_DIRECTORY,
    r"def _?on_housed\(": _ONE_DIRECTORY,
    r"raise RecordingError": _OWN_FILE,
    r"except \(ImportError, AttributeError\)": _OWN_FILE,
}
"""Statements, and whole functions by their first line, with the reason."""

NOTES: Final = "__lines_reached__"
"""What the notes of a module are called in it: a byte for each line."""

Broken = tuple[str, int, str]
"""Plan, seed, promise."""

reached: dict[str, bytearray] = {}
"""File -> its notes, in this process."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of each plan")
    parser.add_argument("--plan", action="append", help="only this plan; may be repeated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--keep", type=Path, help="add to what this file tells of earlier runs")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        kept = asked.keep or Path(scratch) / "coverage"
        data = coverage.CoverageData(str(kept.absolute()))
        data.read()
        data.add_lines({str(file): () for room in ROOMS for file in _room(room).rglob("*.py")})
        broken = _simulate(asked, data)
        data.write()
        total = _report(data.data_filename())
    for plan, seed, promise in broken:
        print(f"plan {plan}, seed {seed} broke {promise}")
    print(f"{total:.1f} % of core/ and node/ is reached by simulation; at least {COVERED_MIN} %")
    return 1 if broken or total < COVERED_MIN else 0


def _room(package: str) -> Path:
    return ROOT / "src" / package.strip(".").replace(".", "/")


def _report(data_file: str) -> float:
    measured = coverage.Coverage(
        data_file=data_file,
        source=[str(_room(room)) for room in ROOMS],
        omit=list(NOT_SIMULATED),
        config_file=False,
    )
    measured.set_option("report:exclude_lines", list(UNREACHABLE))
    measured.set_option("report:sort", "-miss")
    measured.load()
    return measured.report(show_missing=True, skip_covered=True, file=sys.stdout)


# Runs


def _simulate(asked: argparse.Namespace, data: coverage.CoverageData) -> list[Broken]:
    names = asked.plan or _plans()
    tasks = [(name, seed) for seed in range(1, asked.seeds + 1) for name in names]
    broken: list[Broken] = []
    # Workers are new processes: the modules that they import are not imported yet.
    with multiprocessing.get_context("spawn").Pool(asked.jobs, _take_notes) as pool:
        for promise, lines in pool.imap_unordered(_run, tasks):
            data.add_lines(lines)
            broken += [] if promise is None else [promise]
    return broken


def _plans() -> list[str]:
    from cotidal.sim.plans import PLANS

    return list(PLANS)


def _run(task: tuple[str, int]) -> tuple[Broken | None, dict[str, list[int]]]:
    """What it broke, and all lines that this process has come to so far."""
    from cotidal.sim.plans import plan_named
    from cotidal.sim.run import run

    name, seed = task
    plan = plan_named(name)
    if plan is None:
        raise SystemExit(f"there is no plan '{name}'")
    promise = run(seed, plan).broken
    lines = {
        path: [line for line, noted in enumerate(notes) if noted] for path, notes in reached.items()
    }
    return None if promise is None else (name, seed, promise), lines


# Notes


def _take_notes() -> None:
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(ROOMS):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path)
        reached[self.path] = bytearray(source.count(b"\n") + 2)
        noted = ast.fix_missing_locations(_Noting().visit(ast.parse(source)))
        code: CodeType = compile(noted, self.path, "exec", dont_inherit=True)
        return code

    def exec_module(self, module: ModuleType) -> None:
        code = self.get_code(module.__name__)
        module.__dict__[NOTES] = reached[self.path]
        exec(code, module.__dict__)


class _Noting(ast.NodeTransformer):
    """Before every statement a note that it is come to."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                setattr(node, field, self._noted(node, field, block))
        return node

    def _noted(self, node: ast.AST, field: str, block: list[Any]) -> list[Any]:
        found: list[Any] = []
        for place, statement in enumerate(block):
            lines = [statement.lineno, *(each.lineno for each in _decorators(statement))]
            if place == 0 and field == "body":
                lines += _own_line(node)
            notes = [ast.parse(f"{NOTES}[{line}] = 1").body[0] for line in lines]
            if place == 0 and _is_text(statement):
                found.append(statement)  # a docstring, which stays first
            elif _is_future(statement):
                found += [statement, *notes]
            else:
                found += [*notes, statement]
        return found


def _decorators(statement: ast.stmt) -> list[ast.expr]:
    return getattr(statement, "decorator_list", [])


def _own_line(node: ast.AST) -> list[int]:
    """Of what has one besides its statements: a handler, a case."""
    match node:
        case ast.ExceptHandler():
            return [node.lineno]
        case ast.match_case():
            return [node.pattern.lineno]
        case _:
            return []


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


if __name__ == "__main__":
    sys.exit(main())
