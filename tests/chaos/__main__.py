"""``python -m tests.chaos``: faults on real processes, judged by the simulator's checkers.

    python -m tests.chaos --faults 200                 about seven minutes
    python -m tests.chaos --faults 200 --seed 17       that schedule again
    python -m tests.chaos --controllers 3              controllers beside the brokers, struck too
    python -m tests.chaos --faults 20 --trace          every node recorded, and lived again
    python -m tests.chaos --mutant acks-before-high-watermark      is a planted bug found?

Three brokers of `cotidal up --chaos`, written to by librdkafka with acks=all (idempotent and not)
and acks=1, read on leaders and on followers, and processed exactly once in transactions, while
they are killed, stopped, paused, parted, slowed, filled and wiped. Exit status 1 if a promise was
broken; then the data directories stay, the seed that repeats the schedule is told, and so is how to
see the same blows in the page.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cotidal.sim.faults.schedule import Command
from cotidal.testing.cluster import ProcessCluster
from tests.chaos import report
from tests.chaos.plan import STORM, as_simulated
from tests.chaos.storm import Outcome, Storm

FAULTS: Final = 200
FAULTS_OF_A_MUTANT: Final = 20
"""Most is judged when all is over, and what a mutant does wrong it does within the first minute."""


def main() -> None:
    options = _options()
    home = Path(tempfile.mkdtemp(prefix="cotidal-chaos-", dir=options.dir))
    begun = time.monotonic()
    struck: list[Command] = []

    def tell(number: int, command: Command) -> None:
        struck.append(command)
        if not options.quiet:
            print(f"{time.monotonic() - begun:7.1f} s  fault {number}: {command}", flush=True)

    outcome = run(
        home,
        seed=options.seed,
        faults=options.faults,
        mutant=options.mutant,
        controllers=options.controllers,
        trace=options.trace,
        tell=tell,
    )
    for line in report.lines(outcome):
        print(line)
    if outcome.broken is None:
        shutil.rmtree(home)
        sys.exit(0)
    print(f"data and journal are in {home}; the same schedule again: --seed {options.seed}")
    script = home / "storm.script"
    script.write_text(
        as_simulated(options.seed, struck, controllers=options.controllers), encoding="utf-8"
    )
    print(f"the same blows on simulated brokers: cotidal sim serve --script {script}")
    sys.exit(1)


def run(
    home: Path,
    *,
    seed: int,
    faults: int,
    mutant: str | None = None,
    controllers: int = 0,
    trace: bool = False,
    tell: Callable[[int, Command], None] = lambda number, command: None,
) -> Outcome:
    """``mutant``: a bug of tests/mutants, planted in the copy of the product that is run.
    ``controllers``: so many beside the brokers. ``trace``: every node is recorded, and lived again
    in the end."""
    environment = {}
    home.mkdir(exist_ok=True)
    if mutant is not None:
        from tests.mutants.catalogue import MUTANTS
        from tests.mutants.mutant import plant

        plant(home / "tree", MUTANTS[mutant])
        environment["PYTHONPATH"] = str(home / "tree")
    traces = home / "traces" if trace else None
    cluster = ProcessCluster(
        3,
        controllers=controllers,
        directory=home,
        settings=dict(STORM.settings),
        environment=environment,
        trace=traces,
    )
    storm = Storm(cluster, seed=seed, faults=faults, traces=traces, on_strike=tell)
    try:
        return storm.go()
    finally:
        cluster.end()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--faults", type=int, help="how many (200; of a mutant 20)")
    parser.add_argument("--seed", type=int, default=1, help="of the schedule (1)")
    parser.add_argument("--mutant", metavar="NAME", help="a bug of tests/mutants to plant")
    parser.add_argument(
        "--controllers", type=int, choices=(0, 3, 5), default=0, help="beside the brokers (0)"
    )
    parser.add_argument("--trace", action="store_true", help="record nodes, live them again")
    parser.add_argument("--dir", metavar="DIR", help="where data directories are made")
    parser.add_argument("--quiet", action="store_true", help="only the table")
    options = parser.parse_args()
    if options.faults is None:
        options.faults = FAULTS if options.mutant is None else FAULTS_OF_A_MUTANT
    return options


if __name__ == "__main__":
    main()
