"""How much of the protocol simulation alone reaches: `make sim-coverage`.

Runs some seeds of every plan under coverage, of core/ and node/ only, and says which lines no run
came to. A line that is never reached is dead, or wants a workload that reaches it. Whole files that
no run is meant to reach are in NOT_SIMULATED, with the reason. What remains is, for the most part:

  image.py, decide/controllers.py     records and requests of Apache Kafka's own controllers
  decide/directories.py, offline.py   several log directories: simulated nodes have one
  decide/features.py                  levels that change: there is one of each so far
  leader.acks_outcome                 (20), which nobody gets (sim/probes.py)

Exit status 1 below COVERED_MIN.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

import coverage

ROOMS: Final = ("src/cotidal/core", "src/cotidal/node")
COVERED_MIN: Final = 90.0
SEEDS: Final = 6

NOT_SIMULATED: Final = {
    "*/core/trace/*": "lines for people: a run keeps values, and writes them only if it fails",
    "*/node/trace.py": "the same",
    "*/node/gist.py": "the same",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of each plan")
    parser.add_argument("--plan", action="append", help="only this plan; may be repeated")
    asked = parser.parse_args()
    root = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as scratch:
        measured = coverage.Coverage(
            data_file=str(Path(scratch) / "coverage"),
            source=[str(root / room) for room in ROOMS],
            omit=list(NOT_SIMULATED),
        )
        measured.config.set_option(
            "report:exclude_also",
            [
                r"case _:\n\s+(assert_never|raise AssertionError)",
                "assert_never",
                "if TYPE_CHECKING",
                "raise AssertionError",
            ],
        )
        measured.start()
        broken = _simulate(asked.seeds, asked.plan)
        measured.stop()
        total = measured.report(show_missing=True, skip_covered=True, file=sys.stdout)
    for outcome in broken:
        print(f"plan {outcome[0]}, seed {outcome[1]} broke {outcome[2]}")
    print(f"{total:.1f} % of core/ and node/ is reached by simulation; at least {COVERED_MIN} %")
    return 1 if broken or total < COVERED_MIN else 0


def _simulate(seeds: int, names: list[str] | None) -> list[tuple[str, int, str]]:
    """Imported here, so that module bodies count too."""
    from cotidal.sim.plan import PLANS
    from cotidal.sim.run import run

    broken = []
    for plan in PLANS.values():
        if names and plan.name not in names:
            continue
        for seed in range(1, seeds + 1):
            outcome = run(seed, plan)
            if outcome.broken is not None:
                broken.append((plan.name, seed, outcome.broken))
    return broken


if __name__ == "__main__":
    sys.exit(main())
