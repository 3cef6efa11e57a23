"""A run of the simulator behind the page: a seed of a plan, or a script of one. Pure.

What `cotidal sim run` does in a second is seen here: the plan's own clients, administrator and
faults, and the moment at which a promise is broken. Nothing can be done to it, for it would be
another run; going back runs it again from its seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cotidal.console.losses import Losses
from cotidal.console.picture import Client
from cotidal.console.sandbox import Start
from cotidal.console.sight import Sight
from cotidal.console.simulated import NEVER_US, Simulated
from cotidal.console.tap import SeenWorld
from cotidal.console.teller import Teller
from cotidal.console.world import Command, Json, Refused
from cotidal.sim.plans import PLANS
from cotidal.sim.run import Run
from cotidal.sim.script import Script, of_seed, parse_script, write_script
from cotidal.sim.trace import Trace
from cotidal.values import TopicPartition
from cotidal.words import counted

SCRIPT_MAX = 100_000
"""Characters of a script."""


class _ToldTrace(Trace):
    """Faults are told by the nemesis where everything else is traced."""

    __slots__ = ("tell",)

    def __init__(self) -> None:
        super().__init__()
        self.tell: Callable[[str], None] = lambda text: None

    def say(self, now_us: int, node: int, text: str) -> None:
        super().say(now_us, node, text)
        if node == 0:
            self.tell(text)


class SeenRun(Run):
    world_class = SeenWorld
    world: SeenWorld


class RunBox:
    """What the page sees of a run; implements ``sight.Box``."""

    def __init__(self, script: Script) -> None:
        trace = _ToldTrace()
        self.run = SeenRun(script.seed, script.plan, trace, script.schedule)
        self.world = self.run.world
        self.watch = self.run.watch
        self.history = self.run.history
        self.samples: list[Json] = []
        self.losses = Losses(self.world, self.history, self.watch.ghost)
        self.told: list[Json] = []
        self.teller = Teller(self.world, self.watch.ghost, self.losses, self.told)
        self.world.watchers.append(self.teller)
        self.watch.metadata.listeners.append(self.teller)
        trace.tell = self._tell_fault
        self.acts: dict[str, Callable[[Command], None]] = {}

    def _tell_fault(self, text: str) -> None:
        what = text.removeprefix("fault: ")
        self.teller.say("fault", f"Done to the cluster: {what}.", big=True)

    @property
    def ready(self) -> bool:
        return self.run.faults_us > 0

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return self.run.admin.partitions

    @property
    def exempt(self) -> frozenset[str]:
        return self.run.plan.exempt

    def min_isr_of(self, partition: TopicPartition) -> int:
        return self.run.plan.min_isr

    def settings_shown(self) -> None:
        return None

    def clients(self) -> dict[str, Client]:
        found: dict[str, Client] = {}
        levels = {-1: "all", 1: "1", 0: "0"}
        for producer in self.run.producers:
            found[producer.name] = {
                "kind": "producer",
                "host": producer.host,
                "acks": levels[producer.acks],
                "rate": 1000 // max(1, self.run.plan.produce_gap_ms),
            }
        for consumer in self.run.consumers:
            found[consumer.name] = {
                "kind": "consumer",
                "host": consumer.host,
                "positions": {str(each): consumer.position(each) for each in consumer.partitions},
                "reads_from": {},
            }
        return found


class RunWorld(Simulated):
    def __init__(self, script: Script, at_us: int | None = None) -> None:
        self._script = script
        self._course: Iterator[int] = iter(())
        self._due_us = 0
        self._over = False
        super().__init__(Start(seed=script.seed, nodes=script.plan.nodes), at_us=at_us)
        self._speed = 1.0

    @classmethod
    def opened(cls, command: Command) -> RunWorld:
        at_us = command.number("at_us", least=0, most=1 << 53) if "at_us" in command else None
        if "script" in command:
            try:
                script = parse_script(command.text("script", longest=SCRIPT_MAX))
            except ValueError as wrong:
                raise Refused(f"this is no script of a run: {wrong}") from None
            return cls(script, at_us)
        plan = PLANS[command.one_of("plan", tuple(PLANS), "mild")]
        seed = command.number("seed", 1, least=0, most=(1 << 53) - 1)
        return cls(of_seed(seed, plan), at_us)

    @property
    def about(self) -> Json:
        script = self._script
        start: Json = {"plan": script.plan.name, "seed": script.seed}
        if script != of_seed(script.seed, PLANS[script.plan.name]):
            start = {"script": write_script(script)}
        return super().about | {
            "title": f"Plan {script.plan.name}, seed {script.seed}: {script.plan.about}",
            "start": start,
            "can": [],
        }

    def picture(self) -> Json:
        picture = super().picture()
        if self._over and picture["state"] != "broken":
            picture["state"] = "ended"
        return picture

    def _begin_anew(self) -> None:
        box = RunBox(self._script)
        self.box = box
        self._sight = Sight(box)
        self._broken = None
        self._done = 0
        self._due_us = 0
        self._over = False
        self._course = box.run.course()
        self._guarded(self._go_on)

    # What is done next is the run's own affair.

    @property
    def _next_us(self) -> int:
        return NEVER_US if self._over else self._due_us

    def _redo(self) -> None:
        while not self._over and self._broken is None and self.box.world.now >= self._due_us:
            self._guarded(self._go_on)

    def _go_on(self) -> None:
        try:
            self._due_us = self.box.world.now + next(self._course)
        except StopIteration:
            self._over = True
            self._running = False
            self.box.teller.say("start", _ending(len(self.box.losses.found())), big=True)

    @property
    def _stands(self) -> bool:
        return self._over or super()._stands


def _ending(lost: int) -> str:
    told = "The run is over, and every promise that was not given up held."
    return f"{told} Lost: {counted(lost, 'acknowledged record')}." if lost else told
