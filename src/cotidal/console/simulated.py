"""The simulated cluster behind the page: the sandbox, with a journal and a way back in time. Pure.

What a person does is written to the journal with its moment. To go back, a new sandbox is made from
the same seed and the journal is done again up to there: the past is never stored, it is run again.
Commands that lie ahead are done again when their moment comes, unless something else is done first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from cotidal import invariants
from cotidal.console.sandbox import SET_UP_US, TOPIC, Sandbox, Start
from cotidal.console.sight import Box, Sight
from cotidal.console.teller import listed
from cotidal.console.world import Command, Json, Refused
from cotidal.limits import (
    PAGE_JOURNAL_MAX,
    PAGE_STEPS_PARTITIONS,
    PAGE_STEPS_PER_TURN_MAX,
    PAGE_TOLD_MAX,
)
from cotidal.sim.agenda import MS, SECOND
from cotidal.sim.violation import Violation, promise_name
from cotidal.words import counted

SPEED_MAX: Final = 50.0
NEVER_US: Final = 1 << 62
STEP_US_MAX: Final = 30 * SECOND
"""A step ends after so long if nothing happens."""


class Done(NamedTuple):
    """A command and when it was given."""

    moment_us: int
    said: Json


class Broken(NamedTuple):
    name: str
    promise: str
    sentence: str
    lost: list[Json]


class Simulated:
    """Implements ``console.world.World``."""

    def __init__(
        self, start: Start, journal: Sequence[Done] = (), at_us: int | None = None
    ) -> None:
        """``at_us``: go on there; else when the cluster is ready, after the last command."""
        self._start = start
        self._journal = list(journal)
        self._done = 0
        self._speed = 0.25
        self._running = False
        self._furthest = 0
        self._broken: Broken | None = None
        self._seen: Json | None = None
        """The picture, as long as nothing has happened since."""
        self._begin_anew()
        self._ready_us = self._run_until_ready()
        if at_us is None:
            at_us = max([self._ready_us, *(done.moment_us for done in self._journal)])
        self._go_to(at_us)

    @classmethod
    def opened(cls, command: Command) -> Simulated:
        start = Start.told(command)
        journal = [_done(each) for each in command.list_of("journal")][:PAGE_JOURNAL_MAX]
        journal.sort(key=lambda done: done.moment_us)
        at_us = command.number("at_us", least=0, most=1 << 53) if "at_us" in command else None
        return cls(start, journal, at_us)

    # What every world gives

    @property
    def about(self) -> Json:
        return {
            "title": "Simulated cluster",
            "start": self._start._asdict(),
            "topic": TOPIC,
            "can": list(self.box.acts),
            "promises": _promises(),
        }

    @property
    def logs(self) -> Mapping[str, Sequence[Json]]:
        return {
            "told": self.box.told,
            "samples": self.box.samples,
            "metadata": self._sight.metadata(),
        }

    def picture(self) -> Json:
        if self._seen is None:
            self._seen = self._looked()
        return dict(self._seen)

    def _looked(self) -> Json:
        picture = self._sight.picture()
        picture |= {
            "state": self._state,
            "speed": self._speed,
            "furthest_us": max(self._furthest, self.box.world.now),
            "ready_us": self._ready_us,
            "journal": [[done.moment_us, done.said] for done in self._journal],
        }
        if self._broken is not None:
            picture["broken"] = self._broken._asdict()
            picture["lamps"][self._broken.name] = "broken"
        return picture

    @property
    def _state(self) -> str:
        if self._broken is not None:
            return "broken"
        return "running" if self._running else "paused"

    @property
    def _stands(self) -> bool:
        """Nothing happens any more."""
        return self._broken is not None

    def advance(self, passed_ms: int) -> None:
        if self._running:
            self._seen = None
            self._run_to(self.box.world.now + int(passed_ms * MS * self._speed), bounded=True)
            if self._stands or len(self.box.told) >= PAGE_TOLD_MAX:
                self._running = False

    def obey(self, command: Command) -> Json | None:
        if command.name == "look":
            return self._sight.look(command)
        self._seen = None
        match command.name:
            case "run":
                self._running = not self._stands
            case "pause":
                self._running = False
            case "speed":
                self._speed = command.fraction("value", least=0.001, most=SPEED_MAX)
            case "step":
                self._running = False
                self._step()
            case "back":
                self._running = False
                self._step_back()
            case "seek":
                self._running = False
                self._go_to(command.number("us", least=0, most=self._last_us))
            case "run-for":
                self._running = False
                ms = command.number("ms", least=1, most=120_000)
                self._run_to(self.box.world.now + ms * MS)
            case _:
                self._act(command)
        return None

    @property
    def _last_us(self) -> int:
        return max(self._furthest, self.box.world.now)

    # Doing

    def _act(self, command: Command) -> None:
        if command.name not in self.box.acts:
            raise Refused(f"a simulated cluster knows no '{command.name}'")
        if self._broken is not None:
            raise Refused("a promise is broken and the world stands: go back, or begin anew")
        if len(self._journal) >= PAGE_JOURNAL_MAX:
            raise Refused(f"{PAGE_JOURNAL_MAX} commands are enough for one run")
        said = {name: value for name, value in command.said.items() if name != "ask"}
        self._guarded(partial(self.box.acts[command.name], command))
        del self._journal[self._done :]
        self._journal.append(Done(self.box.world.now, said))
        self._done += 1
        self._furthest = self.box.world.now

    def _guarded(self, do: Callable[[], None]) -> None:
        """Whatever is broken stops the world."""
        try:
            do()
        except Violation as violation:
            self._stop(violation.name, violation.promise, violation.sentence)
        except AssertionError as fault:
            self._stop(promise_name(str(fault)), str(fault), "an assertion of the product failed")

    def _stop(self, name: str, promise: str, sentence: str) -> None:
        lost = self.box.losses.found()
        by_place: dict[str, list[int]] = {}
        for each in lost:
            by_place.setdefault(f"{each.partition} (acks={each.acks})", []).append(each.offset)
        gone = [{"where": where, "offsets": offsets} for where, offsets in by_place.items()]
        self._broken = Broken(name, promise, sentence, gone)
        text = f"A promise is broken: {promise}."
        for where, offsets in by_place.items():
            text += (
                f" Gone: {counted(len(offsets), 'record')} of {where}, offset {listed(offsets)}."
            )
        self.box.teller.say("broken", text, big=True)

    # Time

    def _begin_anew(self) -> None:
        self.box: Box = Sandbox(self._start)
        self._sight = Sight(self.box)
        self._broken = None
        self._done = 0

    def _run_until_ready(self) -> int:
        box = self.box
        while not box.ready and box.world.now < SET_UP_US and self._broken is None:
            self._run_to(box.world.now + 10 * MS)
        return int(box.world.now)

    def _run_to(self, moment_us: int, *, bounded: bool = False) -> None:
        """Bounded: no further than one turn's work goes."""
        world = self.box.world
        steps = world.steps
        most = PAGE_STEPS_PER_TURN_MAX // (1 + len(self.box.partitions) // PAGE_STEPS_PARTITIONS)
        while not self._stands and world.now < moment_us:
            until = min(moment_us, max(world.now, self._next_us))
            if bounded:
                until = min(until, world.now + 2 * MS)
                if world.steps - steps > most:
                    break
            self._guarded(partial(world.agenda.run_until, until))
            self._redo()
        self._furthest = max(self._furthest, world.now)

    @property
    def _next_us(self) -> int:
        """When the journal has something to do next."""
        if self._done < len(self._journal):
            return self._journal[self._done].moment_us
        return NEVER_US

    def _redo(self) -> None:
        """What the journal has at this moment."""
        while self._done < len(self._journal) and self._broken is None:
            done = self._journal[self._done]
            if done.moment_us > self.box.world.now:
                return
            self._done += 1
            try:
                command = Command(done.said)
                if command.name not in self.box.acts:
                    raise Refused(f"a simulated cluster knows no '{command.name}'")
                self._guarded(partial(self.box.acts[command.name], command))
            except Refused as refusal:
                self.box.teller.say("refuse", f"Not done: {refusal}.")

    def _go_to(self, moment_us: int) -> None:
        if moment_us < self.box.world.now or (self._broken and moment_us == self.box.world.now):
            self._furthest = max(self._furthest, self.box.world.now)
            self._begin_anew()
            self._redo()
        self._run_to(moment_us)

    def _step(self) -> None:
        """To the next thing that is told."""
        world = self.box.world
        told, until = len(self.box.told), world.now + STEP_US_MAX
        while len(self.box.told) == told and not self._stands and world.now < until:
            due = world.agenda.next_moment
            self._run_to(until if due is None else max(due, world.now + 1))

    def _step_back(self) -> None:
        """To where the thing before the last one was told."""
        now = self.box.world.now
        moments = [item["at"] for item in self.box.told if item["at"] < now]
        self._go_to(moments[-1] if moments else 0)


def _done(entry: object) -> Done:
    if (
        not isinstance(entry, list)
        or len(entry) != 2
        or not isinstance(entry[0], int)
        or not isinstance(entry[1], dict)
    ):
        raise Refused("a journal is a list of [microseconds, command]")
    return Done(entry[0], entry[1])


def _promises() -> dict[str, str]:
    """Every promise, by its name."""
    return {
        name: text
        for name, text in vars(invariants).items()
        if name.isupper() and isinstance(text, str)
    }
