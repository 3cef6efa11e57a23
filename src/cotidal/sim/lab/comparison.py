"""Configurations side by side, under the same schedules: one row each.

Every configuration meets every seed, and a seed draws the same schedule for all of them (paired):
what differs between two rows is what their settings make of the same blows. Guards of commands look
at the cluster as it is: a power cut may find one cluster mended and another not, and pass it over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from cotidal.sim.engine import Engine, Here
from cotidal.sim.faults.schedule import draw_schedule
from cotidal.sim.lab.configuration import Configuration, plan_of
from cotidal.sim.lab.intervals import Estimate, bootstrap_mean, bootstrap_ratio, wilson_ppm
from cotidal.sim.lab.measures import LOST, Measures, measured
from cotidal.sim.plan import Plan
from cotidal.sim.run import Outcome
from cotidal.sim.script import Script
from cotidal.sim.shrink import Shrunk, shrink

MILLION: Final = 1_000_000


class Row(NamedTuple):
    configuration: Configuration
    runs: tuple[Measures, ...]
    """By seed; those that broke a promise are not among them."""
    broken: tuple[Measures, ...]

    @property
    def believed(self) -> int:
        return sum(run.believed for run in self.runs)

    @property
    def lost(self) -> int:
        return sum(run.lost for run in self.runs)

    @property
    def doubled(self) -> int:
        return sum(run.doubled for run in self.runs)

    @property
    def losing_runs(self) -> Estimate:
        """Runs that lost something, in parts per million of runs (Wilson)."""
        return wilson_ppm(sum(run.lost > 0 for run in self.runs), len(self.runs))

    @property
    def lost_ppm(self) -> Estimate:
        """Records lost per million believed written (bootstrap over runs)."""
        lost = [run.lost for run in self.runs]
        believed = [run.believed for run in self.runs]
        return bootstrap_ratio(lost, believed, scale=MILLION, name="lost")

    @property
    def unavailable_ppm(self) -> Estimate | None:
        """Of the time in which faults lasted (bootstrap over runs)."""
        if self.configuration.acks == 0:
            return None
        silent = [run.unavailable_ms for run in self.runs]
        lasted = [run.faults_ms for run in self.runs]
        return bootstrap_ratio(silent, lasted, scale=MILLION, name="unavailable")

    def latency_us(self, percent: int) -> Estimate | None:
        """The mean over runs of a run's quantile (bootstrap over runs)."""
        values = [run.p50_us if percent == 50 else run.p99_us for run in self.runs]
        told = [value for value in values if value >= 0]
        return bootstrap_mean(told, name=f"p{percent}") if told else None


def compare(
    configurations: Sequence[Configuration],
    faults: Plan,
    seeds: Sequence[int],
    *,
    engine: Engine | None = None,
    on_run: Callable[[], object] = lambda: None,
) -> list[Row]:
    tasks = [
        (number, seed, plan_of(configuration, faults))
        for seed in seeds
        for number, configuration in enumerate(configurations)
    ]
    found: dict[int, list[Measures]] = {number: [] for number in range(len(configurations))}
    for number, measures in (engine or Here()).map(_measured, tasks):
        found[number].append(measures)
        on_run()
    rows = []
    for number, configuration in enumerate(configurations):
        by_seed = sorted(found[number])
        whole = tuple(run for run in by_seed if not run.broken)
        rows.append(Row(configuration, whole, tuple(run for run in by_seed if run.broken)))
    return rows


_Task = tuple[int, int, Plan]


def _measured(task: _Task) -> tuple[int, Measures]:
    number, seed, plan = task
    return number, measured(seed, plan)[0]


# Stories


def story_of(
    row: Row, faults: Plan, *, tries: int, on_try: Callable[[], object] = lambda: None
) -> Shrunk | None:
    """The first run that lost something, with all left out that it does not take."""
    seed = next((run.seed for run in row.runs if run.lost), None)
    if seed is None:
        return None
    plan = plan_of(row.configuration, faults)
    script = Script(seed, plan, draw_schedule(seed, plan))
    return shrink(script, judge=losing, tries=tries, on_try=on_try)


def losing(script: Script) -> tuple[str, Outcome]:
    """A judge for ``shrink``: records are lost and no promise is broken."""
    found, outcome = measured(script.seed, script.plan, script.schedule)
    return (LOST if found.lost and not found.broken else found.broken), outcome
