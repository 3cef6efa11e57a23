"""``python -m tests.mutants``: is every planted bug found?

    python -m tests.mutants                        all of them, by scripts, else by campaign
    python -m tests.mutants --both                 a campaign after those, too, that a script finds
    python -m tests.mutants --only vote-for-a-shorter-log --only told-before-fsync
    python -m tests.mutants --scripts              the stories in tests/scripts alone: seconds
    python -m tests.mutants --campaign --seeds 500 --afresh --keep --markdown
    python -m tests.mutants --tell told-before-fsync      the run that found it, made short

Each bug is planted in a copy of the product. Two hunters look for it, neither knowing of the other:
the scripts, and, where they find nothing, a campaign of the simulator. What both miss is shown to
the unit tests of its room; a bug that only they find is told apart. The unpatched product goes
first, and has to pass every run that a bug is found by: a run that the house itself fails finds
nothing.

A campaign begins with the run that found the bug before (stories/), unless it is told --afresh.
Exit status 1 if a bug was found by nobody.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.mutants import report
from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import HOUSE, Mutant, plant

STORIES = Path(__file__).parent / "stories"
CONTROL_SEEDS = 1
"""Of every plan, by the unpatched product, before anything else."""
PYTEST = ("-p", "no:xdist", "-o", "timeout=30")
"""A bug may make a story endless: none of the house's takes a second."""


class Verdict(NamedTuple):
    mutant: Mutant
    script: str | None
    """The first story that is told otherwise, and how many are."""
    run: dict[str, Any] | None
    """What hunt.py found; None if it was not asked."""
    test: str | None = None
    """The first unit test that fails; asked only where the others found nothing."""

    @property
    def is_killed(self) -> bool:
        return self.script is not None or self.by_campaign

    @property
    def by_campaign(self) -> bool:
        return self.run is not None and self.run["broken"] is not None


def main() -> None:
    options = _options()
    if options.tell is not None:
        sys.exit(tell(MUTANTS[options.tell], tries=options.tries, lines=options.lines))
    mutants = [MUTANTS[name] for name in options.only or MUTANTS]
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as root:
        house = Path(root) / "house"
        plant(house, None)
        _control(house, mutants, by_script=not options.campaign, by_run=not options.scripts)
        verdicts: list[Verdict] = []
        for mutant in mutants:
            tree = Path(root) / mutant.name
            plant(tree, mutant)
            script = first_script(tree) if not options.campaign else None
            is_hunted = not options.scripts and (script is None or options.both)
            run = _hunt(tree, house, mutant, options) if is_hunted else None
            verdict = Verdict(mutant, script, run)
            if not verdict.is_killed and not options.scripts and not options.campaign:
                verdict = verdict._replace(test=first_test(tree, mutant))
            verdicts.append(verdict)
            print(report.line(verdicts[-1]), flush=True)
            if options.keep and verdicts[-1].by_campaign:
                _keep(verdicts[-1])
    for line in report.summary(verdicts, time.monotonic() - begun):
        print(line)
    if options.markdown:
        for line in report.table(verdicts):
            print(line)
    sys.exit(0 if all(verdict.is_killed or verdict.test for verdict in verdicts) else 1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", action="append", choices=list(MUTANTS), metavar="NAME")
    alone = parser.add_mutually_exclusive_group()
    alone.add_argument("--scripts", action="store_true", help="the scripts alone")
    alone.add_argument("--campaign", action="store_true", help="the campaign alone")
    alone.add_argument("--both", action="store_true", help="scripts and campaign, after all")
    alone.add_argument("--tell", choices=list(MUTANTS), metavar="NAME", help="how a bug shows")
    parser.add_argument("--tries", type=int, default=200, help="to make its run short (200)")
    parser.add_argument("--lines", type=int, default=20, help="of its story, the last (20)")
    parser.add_argument("--seeds", type=int, default=500, help="runs a bug at most (500)")
    parser.add_argument("--seconds", type=float, default=600, help="a bug at most (600)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--afresh", action="store_true", help="from seed 1, not from the stories")
    parser.add_argument("--keep", action="store_true", help="write what was found into stories/")
    parser.add_argument("--markdown", action="store_true", help="the table for the docs, too")
    return parser.parse_args()


def tell(mutant: Mutant, *, tries: int, lines: int) -> int:
    """Plant it, make the run that found it short, and tell what happens in it; 0 if it does."""
    known = STORIES / f"{mutant.name}.json"
    if not known.exists():
        print(f"no run of a campaign that finds {mutant.name} is kept: see --campaign --keep")
        return 1
    story = json.loads(known.read_text(encoding="utf-8"))
    run = (f"--plan={story['plan']}", f"--seed={story['seed']}")
    with tempfile.TemporaryDirectory(prefix="mutants-") as root:
        plant(Path(root), mutant)
        script = str(Path(root) / "short.script")
        for words in (
            ("shrink", *run, f"--tries={tries}", f"--out={script}"),
            ("replay", script, f"--lines={lines}"),
        ):
            told = _python(Path(root), "-m", "cotidal", "sim", *words)
            print(told.stdout + told.stderr, flush=True)
            if story["broken"] not in told.stdout:
                return 1
    return 0


# Hunters


def first_script(tree: Path) -> str | None:
    """The first story that is told otherwise, and how many are; None if all are told as written."""
    told = _python(
        tree, "-m", "pytest", "tests/test_scripts.py", "--tb=no", "-rf", "-p", "no:xdist"
    )
    failed = [line for line in told.stdout.splitlines() if line.startswith("FAILED ")]
    if told.returncode == 0:
        return None
    if not failed:  # it does not even import
        raise SystemExit(f"the scripts could not be run:\n{told.stdout}\n{told.stderr}")
    story = failed[0].partition("[")[2].partition("]")[0]
    return story if len(failed) == 1 else f"{story} and {len(failed) - 1} more"


def first_test(tree: Path, mutant: Mutant) -> str | None:
    """The first unit test of the file's room that fails."""
    room = HOUSE / "tests" / Path(mutant.file).parent
    while not room.is_dir():
        room = room.parent
    told = _python(tree, "-m", "pytest", str(room), "-x", "--tb=no", "-rfE", *PYTEST)
    failed = [line for line in told.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return failed[0].split(" ")[1].rpartition("::")[2] if failed else None


def _hunt(tree: Path, house: Path, mutant: Mutant, options: argparse.Namespace) -> dict[str, Any]:
    known = STORIES / f"{mutant.name}.json"
    if known.exists() and not options.afresh:
        story = json.loads(known.read_text(encoding="utf-8"))
        found = runs(tree, "--only", f"{story['plan']}:{story['seed']}", "--jobs", "1")
        if found["broken"] is not None and _passes(house, found):
            return found
    first = 1
    looked = 0
    while True:
        found = runs(
            tree,
            f"--plans={','.join(mutant.plans)}",
            f"--first={first}",
            f"--seeds={options.seeds - looked}",
            f"--jobs={options.jobs}",
            f"--seconds={options.seconds}",
        )
        looked += found["runs"]
        if found["broken"] is None or _passes(house, found):
            return {**found, "runs": looked}
        first = found["seed"] + 1  # the house fails this one too


def _passes(house: Path, found: dict[str, Any]) -> bool:
    run = f"{found['plan']}:{found['seed']}"
    own = runs(house, "--only", run, "--jobs", "1")
    if own["broken"] is not None:
        print(f"the house itself breaks {own['broken']} in {run}", flush=True)
    return own["broken"] is None


def _control(house: Path, mutants: list[Mutant], *, by_script: bool, by_run: bool) -> None:
    if by_script:
        story = first_script(house)
        if story is not None:
            raise SystemExit(f"without any bug planted a script fails: {story}")
    if by_run:
        plans = dict.fromkeys(plan for mutant in mutants for plan in mutant.plans)
        count = len(plans) * CONTROL_SEEDS
        found = runs(house, f"--plans={','.join(plans)}", f"--seeds={count}")
        if found["broken"] is not None:
            raise SystemExit(f"without any bug planted a run fails: {found}")


def runs(tree: Path, *arguments: str) -> dict[str, Any]:
    told = _python(tree, "-m", "tests.mutants.hunt", str(tree), *arguments)
    if told.returncode != 0:
        raise SystemExit(f"the hunt failed:\n{told.stdout}\n{told.stderr}")
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def _python(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=HOUSE,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def _keep(verdict: Verdict) -> None:
    assert verdict.run is not None
    story = {
        "mutant": verdict.mutant.name,
        "plan": verdict.run["plan"],
        "seed": verdict.run["seed"],
        "broken": verdict.run["broken"],
    }
    path = STORIES / f"{verdict.mutant.name}.json"
    path.write_text(json.dumps(story, indent=2) + "\n", encoding="utf-8")


def stories() -> Iterator[dict[str, Any]]:
    for path in sorted(STORIES.glob("*.json")):
        yield json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
