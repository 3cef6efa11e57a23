"""The durability lab behind the page: settings side by side under the same faults. Pure.

Each turn is one run of one configuration (sim/lab); the rows fill as they come, and nothing is
shown that was not measured. A run that lost something opens as a world of its own (run_world.py):
``story`` gives its script, as it was or with all left out that the loss does not take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from cotidal.console.world import Command, Json, Refused
from cotidal.sim.faults.schedule import draw_schedule
from cotidal.sim.lab.comparison import Row, losing
from cotidal.sim.lab.configuration import COMPARED, Configuration, plan_of
from cotidal.sim.lab.measures import Measures, measured
from cotidal.sim.plan import Plan
from cotidal.sim.plans import PLANS
from cotidal.sim.script import Script, write_script
from cotidal.sim.shrink import shrink

SEEDS_MAX: Final = 200
ROWS_MAX: Final = 12
TRIES_MAX: Final = 60
"""Runs to make a story shorter, seconds each. `cotidal sim shrink` goes on from there."""
ACKS: Final = {"all": -1, "1": 1, "0": 0}


class Lab:
    """Implements ``console.world.World``."""

    def __init__(self) -> None:
        self._faults: Plan = PLANS["ebb"]
        self._configurations: list[Configuration] = []
        self._found: list[list[Measures]] = []
        self._todo: list[tuple[int, int]] = []
        """Row and seed of the runs that are still to come."""
        self._total = 0

    @classmethod
    def opened(cls, command: Command) -> Lab:
        return cls()

    @property
    def about(self) -> Json:
        return {
            "title": "Durability lab",
            "start": {},
            "plans": {plan.name: plan.about for plan in PLANS.values() if plan.nodes >= 3},
            "presets": [_told(each) for each in COMPARED],
        }

    @property
    def logs(self) -> Mapping[str, Sequence[Json]]:
        return {}

    def picture(self) -> Json:
        return {
            "state": "running" if self._todo else "paused",
            "plan": self._faults.name,
            "done": self._total - len(self._todo),
            "total": self._total,
            "rows": [self._row(number) for number in range(len(self._configurations))],
        }

    def advance(self, passed_ms: int) -> None:
        if self._todo:
            number, seed = self._todo.pop(0)
            plan = plan_of(self._configurations[number], self._faults)
            self._found[number].append(measured(seed, plan)[0])

    def obey(self, command: Command) -> Json | None:
        match command.name:
            case "measure":
                self._begin(command)
            case "stop":
                self._total -= len(self._todo)
                self._todo.clear()
            case "story":
                return self._story(command)
            case _:
                raise Refused(f"the lab knows no '{command.name}'")
        return None

    def _begin(self, command: Command) -> None:
        faults = PLANS[command.one_of("plan", tuple(PLANS), "ebb")]
        first = command.number("seed", 1, least=0, most=1 << 50)
        seeds = command.number("seeds", 10, least=1, most=SEEDS_MAX)
        rows = [_configuration(each) for each in command.list_of("configurations")]
        if not 1 <= len(rows) <= ROWS_MAX:
            raise Refused(f"the lab compares 1 to {ROWS_MAX} configurations")
        if max(row.replicas for row in rows) > faults.nodes:
            raise Refused(f"plan {faults.name} has {faults.nodes} nodes: too few replicas fit")
        self._faults = faults
        self._configurations = rows
        self._found = [[] for _ in rows]
        self._todo = [
            (number, seed) for seed in range(first, first + seeds) for number in range(len(rows))
        ]
        self._total = len(self._todo)

    def _row(self, number: int) -> Json:
        configuration, found = self._configurations[number], self._found[number]
        whole = tuple(run for run in found if not run.broken)
        row = Row(configuration, whole, tuple(run for run in found if run.broken))
        shown: Json = {
            "name": configuration.name,
            "keeps": configuration.keeps,
            "runs": len(found),
            "broken": len(row.broken),
            "believed": row.believed,
            "lost": row.lost,
            "losing": sum(run.lost > 0 for run in whole),
        }
        if whole:
            unavailable = row.unavailable_ppm
            if unavailable is not None:
                shown["unavailable"] = round(unavailable.value / 10_000, 1)
            for percent in (50, 99):
                latency = row.latency_us(percent)
                if latency is not None:
                    shown[f"p{percent}_ms"] = round(latency.value / 1000, 1)
        return shown

    def _story(self, command: Command) -> Json:
        number = command.number("row", least=0, most=max(0, len(self._configurations) - 1))
        if not self._configurations:
            raise Refused("nothing has been measured yet")
        lost = next((run for run in self._found[number] if run.lost and not run.broken), None)
        if lost is None:
            raise Refused("no run of this configuration has lost anything")
        plan = plan_of(self._configurations[number], self._faults)
        script = Script(lost.seed, plan, draw_schedule(lost.seed, plan))
        tries = command.number("tries", 0, least=0, most=TRIES_MAX)
        shorter = shrink(script, judge=losing, tries=tries) if tries else None
        return {"script": write_script(script if shorter is None else shorter.script)}


def _configuration(said: object) -> Configuration:
    command = Command({"do": "configuration", **said} if isinstance(said, dict) else said)
    replicas = command.number("replicas", 3, least=1, most=7)
    return Configuration(
        command.text("name", "", longest=80) or "your own",
        acks=ACKS[command.one_of("acks", tuple(ACKS), "all")],
        replicas=replicas,
        min_isr=command.number("min_isr", 2, least=1, most=replicas),
        unclean=command.flag("unclean", False),
        elr=command.flag("elr", True),
        idempotent=command.flag("idempotent", True),
        flush_messages=command.number("flush_messages", 0, least=0, most=1_000_000),
        region_ms=command.number("region_ms", 0, least=0, most=500),
        lag_ms=command.number("lag_ms", 0, least=0, most=60_000),
    )


def _told(configuration: Configuration) -> Json:
    levels = {acks: level for level, acks in ACKS.items()}
    return configuration._asdict() | {"acks": levels[configuration.acks]}
