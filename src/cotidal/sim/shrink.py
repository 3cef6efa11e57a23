"""The smallest run that still goes wrong in the same way.

A run that breaks a promise has dozens of faults in it, and most have nothing to do with it. They
are left out by delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing
input"): without one half, without the other, without each quarter, ... What still breaks the same
promise is kept and made smaller again, until no single command can go, or as many runs have been
tried as may be. The workload shrinks too: no administrator, fewer duties of the operator, no
consumers, fewer producers, one partition, no longer than it takes. Then what is left is brought
forward, and times are rounded.

Nobody draws from another's numbers (sowing.py), so leaving something out does not turn the rest
into another run. Still it may: a race is lost by a millisecond. What is found is small, not the
smallest that there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from cotidal.sim.agenda import SECOND
from cotidal.sim.faults.schedule import Command, Schedule
from cotidal.sim.plan import Plan
from cotidal.sim.run import Outcome, run
from cotidal.sim.script import Script

TRIES: Final = 200
ROUND_MS: Final = 100
FIRST_MS: Final = 1_000
"""When a story begins, if it can."""

Judge = Callable[[Script], tuple[str, Outcome]]
"""What is wrong with a run, by name (empty: nothing), and the run's outcome."""


class Shrunk(NamedTuple):
    script: Script
    outcome: Outcome
    tries: int
    commands_before: int


def broken_promise(script: Script) -> tuple[str, Outcome]:
    outcome = run(script.seed, script.plan, schedule=script.schedule)
    return outcome.broken or "", outcome


def shrink(
    script: Script,
    *,
    judge: Judge = broken_promise,
    tries: int = TRIES,
    on_try: Callable[[], object] = lambda: None,
) -> Shrunk | None:
    """None if nothing is wrong with it in the first place."""
    wrong, outcome = judge(script)
    if not wrong:
        return None
    search = _Search(script._replace(breaks=wrong), outcome, judge, tries - 1, on_try)
    search.cut_tail()
    search.simplify_workload()
    search.leave_out_commands()
    search.simplify_workload()
    search.bring_forward()
    search.round_times()
    return Shrunk(search.best, search.outcome, tries - search.left, len(script.schedule))


class _Search:
    def __init__(
        self,
        script: Script,
        outcome: Outcome,
        judge: Judge,
        left: int,
        on_try: Callable[[], object],
    ) -> None:
        self.best = script
        self.outcome = outcome
        """Of the best so far."""
        self.left = left
        self._judge = judge
        self._on_try = on_try

    def _try(self, candidate: Script) -> bool:
        """Whether it goes wrong in the same way; it is the best so far if it does."""
        if self.left <= 0 or candidate == self.best:
            return False
        self.left -= 1
        self._on_try()
        wrong, outcome = self._judge(candidate)
        if wrong != self.best.breaks:
            return False
        self.best = candidate
        self.outcome = outcome
        return True

    def cut_tail(self) -> None:
        """What comes after the end does not matter to it; nor, perhaps, a quiet time before it."""
        lasted_us = self.outcome.moment_us - self.outcome.faults_us
        plan, schedule = self.best.plan, self.best.schedule
        if self.outcome.broken is not None and 0 <= lasted_us < plan.seconds * SECOND:
            kept = tuple(each for each in schedule if each.at_ms * 1000 <= lasted_us)
            shorter = plan._replace(seconds=lasted_us // SECOND + 1)
            self._try(self.best._replace(plan=shorter, schedule=kept))
            return
        seconds = max((each.at_ms for each in schedule), default=0) // 1000 + 1
        if seconds < plan.seconds:
            self._try(self.best._replace(plan=plan._replace(seconds=seconds)))

    def simplify_workload(self) -> None:
        plan = self.best.plan
        self._try_plan(plan._replace(admin_gap_ms=0))
        self._try_plan(self.best.plan._replace(duties={}))
        self._try_plan(self.best.plan._replace(duties={}))
        for duty in list(self.best.plan.duties):
            fewer = {name: often for name, often in self.best.plan.duties.items() if name != duty}
            self._try_plan(self.best.plan._replace(duties=fewer))
        self._try_plan(self.best.plan._replace(consumers=0))
        self._try_plan(self.best.plan._replace(partitions=1))
        for level in plan.acks:
            kept = list(self.best.plan.acks)
            if len(kept) > 1 and level in kept:
                kept.remove(level)
                self._try_plan(self.best.plan._replace(acks=tuple(kept)))
        self.cut_tail()

    def _try_plan(self, plan: Plan) -> None:
        self._try(self.best._replace(plan=plan))

    def leave_out_commands(self) -> None:
        parts = 2
        while self.left > 0 and self.best.schedule:
            for fewer in _without_each(self.best.schedule, parts):
                if self._try(self.best._replace(schedule=fewer)):
                    self.cut_tail()
                    parts = max(parts - 1, 2)
                    break
            else:
                if parts >= len(self.best.schedule):
                    return
                parts = min(parts * 2, len(self.best.schedule))

    def bring_forward(self) -> None:
        """Nothing need happen before the first command."""
        schedule = self.best.schedule
        early = schedule[0].at_ms - FIRST_MS if schedule else 0
        if early > 0:
            moved = tuple(each._replace(at_ms=each.at_ms - early) for each in schedule)
            if self._try(self.best._replace(schedule=moved)):
                self.cut_tail()

    def round_times(self) -> None:
        """A story is told in tenths of a second, if it can be."""
        rounded = tuple(_rounded(command) for command in self.best.schedule)
        if self._try(self.best._replace(schedule=rounded)):
            return
        for at, command in enumerate(rounded):
            schedule = self.best.schedule
            self._try(self.best._replace(schedule=(*schedule[:at], command, *schedule[at + 1 :])))


def _without_each(schedule: Schedule, parts: int) -> Iterator[Schedule]:
    """The schedule without its first part, without its second, ..."""
    count = len(schedule)
    for part in range(parts):
        begin, end = part * count // parts, (part + 1) * count // parts
        if begin < end:
            yield schedule[:begin] + schedule[end:]


def _rounded(command: Command) -> Command:
    return command._replace(
        at_ms=_round(command.at_ms), for_ms=_round(command.for_ms), by_ms=_round(command.by_ms)
    )


def _round(millis: int) -> int:
    """To the nearest tenth of a second; what is there does not become nothing."""
    near = (abs(millis) + ROUND_MS // 2) // ROUND_MS * ROUND_MS
    if near == 0:
        return millis
    return near if millis > 0 else -near
