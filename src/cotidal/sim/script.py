"""A run as a text that a person can read and `cotidal sim replay` can run. Pure.

    # LEADER_HOLDS_ACKED: ...                   what it says and what was found: for people
    plan harsh
    seed 22
    set acks [-1]                               where it differs from the plan, as JSON
    at 1.250 kill 2 for 1.400                   what is done to the cluster (faults/schedule.py)
    breaks LEADER_HOLDS_ACKED                   the promise that was broken; without it: none was

Lines that begin with # say nothing to the machine. A script stands for itself: its commands are
all that happens, whatever its seed would have drawn.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from cotidal import invariants
from cotidal.sim.faults.schedule import Schedule, draw_schedule, parse_command
from cotidal.sim.plan import Plan
from cotidal.sim.plans import plan_named
from cotidal.sim.violation import promise_name

NOT_SET: Final = frozenset({"name", "about", "faults", "gap_ms", "down_max"})
"""Of a plan: what names it, or has done its work once the schedule is drawn."""


class Script(NamedTuple):
    seed: int
    plan: Plan
    schedule: Schedule
    breaks: str = ""
    """The name of a promise; empty if all hold, or nobody has looked."""


def of_seed(seed: int, plan: Plan) -> Script:
    return Script(seed, plan, draw_schedule(seed, plan))


def write_script(script: Script, story: Iterator[str] | tuple[str, ...] = ()) -> str:
    """``story``: what people are to know, above everything else."""
    lines = [f"# {line}".rstrip() for line in story]
    lines += [f"plan {script.plan.name}", f"seed {script.seed}"]
    base = _plan_named(script.plan.name)
    for name in Plan._fields:
        value = getattr(script.plan, name)
        if name not in NOT_SET and value != getattr(base, name):
            lines.append(f"set {name} {json.dumps(_plain(value))}")
    lines += map(str, script.schedule)
    if script.breaks:
        lines.append(f"breaks {script.breaks}")
    return "\n".join(lines) + "\n"


def parse_script(text: str) -> Script:
    """ValueError, with the line's number, for what cannot be read."""
    plan: Plan | None = None
    seed: int | None = None
    breaks = ""
    commands = []
    for number, line in enumerate(text.splitlines(), start=1):
        word, _, rest = line.strip().partition(" ")
        try:
            match word:
                case "" | "#":
                    continue
                case "plan":
                    plan = _plan_named(rest)
                case "seed":
                    seed = int(rest)
                case "set":
                    plan = _with(_needed(plan), *rest.split(" ", 1))
                case "breaks":
                    breaks = rest
                case "at":
                    commands.append(parse_command(line.strip()))
                case _ if word.startswith("#"):
                    continue
                case _:
                    raise ValueError(f"'{line}' begins with none of plan, seed, set, at, breaks")
        except (ValueError, TypeError) as wrong:
            raise ValueError(f"line {number}: {wrong}") from wrong
    if seed is None:
        raise ValueError("it names no seed: `seed 1`, say")
    return Script(seed, _needed(plan), tuple(commands), breaks)


def _needed(plan: Plan | None) -> Plan:
    if plan is None:
        raise ValueError("it names no plan: `plan mild`, say, before anything is set")
    return plan


def _plan_named(name: str) -> Plan:
    plan = plan_named(name)
    if plan is None:
        raise ValueError(f"there is no plan '{name}'")
    return plan


def _plain(value: Any) -> Any:
    match value:
        case frozenset():
            return sorted(promise_name(promise) for promise in value)
        case Mapping():
            return dict(value)
        case _:
            return value


def _with(plan: Plan, name: str, value: str) -> Plan:
    if name not in Plan._fields or name in NOT_SET:
        raise ValueError(f"a plan has no '{name}' that a script may set")
    before, told = getattr(plan, name), json.loads(value)
    if isinstance(before, frozenset):
        told = frozenset(getattr(invariants, promise) for promise in told)
    elif isinstance(before, tuple):
        told = tuple(told)
    if isinstance(told, Mapping) != isinstance(before, Mapping) or (
        not isinstance(before, Mapping) and type(told) is not type(before)
    ):
        raise ValueError(f"{name} is such a thing as {json.dumps(_plain(before))}, not {value}")
    return plan._replace(**{name: told})
