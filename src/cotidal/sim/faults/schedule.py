"""What is done to a cluster and when: commands, drawn from a seed, written as lines. Pure.

    at 3.250 kill 2 for 1.400               node 2 is killed, and started again 1.4 s later
    at 4.100 deafen 1 3 for 2.000           node 1 does not hear node 3
    at 9.000 power 3 for 0.800 if whole     only if every ISR is whole at that moment

Times are seconds since the workload began. Nodes are counted from 1, and round and round: node 4 of
a cluster of three is node 1, so every schedule means something in every world. A command says what
is done and never depends on another, so any of them can be left out (shrinking), and the same
schedule can be run under other settings (the lab). What it does draw (which connections fall
silent, which bytes a disk loses) comes from an entropy of its own (nemesis.py).

  kill N for T           kill -9; started again after T
  power N for T          what was not synced may be lost, nobody is told; started again after T
  stop N for T           asked to stop; started again T after it has
  pause N for T          takes nothing and says nothing
  isolate N for T        N and every other node lose each other; clients still reach it
  sever N M for T        two nodes lose each other
  deafen N M for T       N does not hear M
  flaky N for T          of the answers of N, to nodes and clients, one in eight is lost with its
                         connection; what was asked is done all the same
  slow-link N M by D for T      from N to M everything takes D longer
  slow-disk N by D for T        one job in four takes up to D
  clock-jump N by D      the wall clock is off by D
  wipe N for T           the node is killed, and started again with an empty disk
  full N L for T         the files of log L of node N, counted as nodes are, cannot grow
  io-error N L for T     the files of that log cannot be used at all; after T the disk is
                         replaced by a copy of itself, and the node started again
  lie N for T            the disk of N says that it has synced the files of partitions, and has not
  break C                connection C, counted as nodes are, is given up by something in between

Guards:  if whole     every node is up and in every ISR
         if mended    that was so at some moment since a node last was killed or lost power
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from cotidal.sim.plan import Plan
from cotidal.sim.sowing import sow

DOWN_MIN_MS: Final = 20
DOWN_SPREAD_MS: Final = 6_000
PAUSE_SPREAD_MS: Final = 12_000
APART_SPREAD_MS: Final = 10_000
SLOW_LINK_MS: Final = 600
SLOW_DISK_MS: Final = 150
HOUR_MS: Final = 3_600_000
CONNECTIONS: Final = 1_000
"""More than there ever are."""
LOGS: Final = 1_000
"""The same."""
RELAPSE_UP_MS: Final = 1_200
"""Time enough to rejoin an ISR, now and then just barely."""
SEESAW_MS: Final = 1_400
"""Time enough to be elected and to write something."""
STOP_MS: Final = 1_000
"""About what an orderly stop takes."""

EBB_GONE_MS: Final = 8_000
EBB_ALONE_MS: Final = 5_000
"""A session of 3 s runs out, the ISR shrinks, and some records are written by who is left."""
EBB_SPREAD_MS: Final = 1_500

WHOLE: Final = "whole"
MENDED: Final = "mended"
GUARDS: Final = (WHOLE, MENDED)


class Command(NamedTuple):
    at_ms: int
    fault: str
    nodes: tuple[int, ...]
    by_ms: int = 0
    for_ms: int = 0
    guard: str = ""

    def __str__(self) -> str:
        text = f"at {_seconds(self.at_ms)} {self.fault} {' '.join(map(str, self.nodes))}"
        form = FORMS[self.fault]
        if form.by:
            text += f" by {_seconds(self.by_ms)}"
        if form.lasts:
            text += f" for {_seconds(self.for_ms)}"
        return f"{text} if {self.guard}" if self.guard else text


Schedule = tuple[Command, ...]


class Form(NamedTuple):
    """What a command of this name is made of."""

    nodes: int
    by: bool = False
    lasts: bool = True


FORMS: Final[dict[str, Form]] = {
    "kill": Form(1),
    "power": Form(1),
    "wipe": Form(1),
    "full": Form(2),
    "io-error": Form(2),
    "lie": Form(1),
    "stop": Form(1),
    "pause": Form(1),
    "isolate": Form(1),
    "sever": Form(2),
    "deafen": Form(2),
    "flaky": Form(1),
    "slow-link": Form(2, by=True),
    "slow-disk": Form(1, by=True),
    "clock-jump": Form(1, by=True, lasts=False),
    "break": Form(1, lasts=False),
}


def parse_command(line: str) -> Command:
    """ValueError, in a sentence, for what is no command."""
    words = line.split()
    if len(words) < 3 or words[0] != "at" or words[2] not in FORMS:
        raise ValueError(f"'{line}' is no command: at SECONDS FAULT NODE ..., with a fault of"
                         f" {', '.join(FORMS)}")  # fmt: skip
    form = FORMS[words[2]]
    tail = words[3:]
    try:
        nodes = tuple(int(word) for word in tail[: form.nodes])
        rest = dict(zip(tail[form.nodes :: 2], tail[form.nodes + 1 :: 2], strict=True))
        command = Command(
            _millis(words[1]),
            words[2],
            nodes,
            _millis(rest.pop("by")) if form.by else 0,
            _millis(rest.pop("for")) if form.lasts else 0,
            rest.pop("if", ""),
        )
    except (ValueError, KeyError) as wrong:
        raise ValueError(f"'{line}' does not read as {words[2]}: {_usage(words[2])}") from wrong
    if rest or len(nodes) < form.nodes or min(nodes) < 1 or command.at_ms < 0 or command.for_ms < 0:
        raise ValueError(f"'{line}' does not read as {words[2]}: {_usage(words[2])}")
    if command.guard and command.guard not in GUARDS:
        raise ValueError(f"'{line}': there is no guard '{command.guard}', only {GUARDS}")
    return command


def _usage(fault: str) -> str:
    form = FORMS[fault]
    parts = ["at SECONDS", fault, *("NODE" for _ in range(form.nodes))]
    return " ".join(parts + ["by SECONDS"] * form.by + ["for SECONDS"] * form.lasts)


def _seconds(millis: int) -> str:
    sign = "-" if millis < 0 else ""
    return f"{sign}{abs(millis) // 1000}.{abs(millis) % 1000:03d}"


def _millis(seconds: str) -> int:
    sign = -1 if seconds.startswith("-") else 1
    whole, _, part = seconds.lstrip("-").partition(".")
    return sign * (int(whole) * 1000 + int(part.ljust(3, "0")[:3]))


# Drawing


def draw_schedule(seed: int, plan: Plan) -> Schedule:
    """The plan's faults, at random, within what the plan allows.

    Looks at nothing of the plan but its faults, nodes, length, gap and how many may be down, so
    plans that differ in what the cluster is asked to promise are dealt the same blows.
    """
    drawn = _Draw(seed, plan).commands()
    within = (command for command in drawn if command.at_ms < plan.seconds * 1000)
    return tuple(sorted(within, key=lambda command: command.at_ms))


class _Draw:
    def __init__(self, seed: int, plan: Plan) -> None:
        self._entropy = sow(seed, "faults")
        self._plan = plan
        self._bag = [name for name, weight in plan.faults.items() for _ in range(weight)]
        self._up_at = dict.fromkeys(range(1, plan.processes + 1), 0)
        """Node -> when it is to be up again, as far as the schedule can know."""

    def commands(self) -> Iterable[Command]:
        at_ms = self._gap()
        while self._bag and at_ms < self._plan.seconds * 1000:
            yield from self._strike(self._bag[self._below(len(self._bag))], at_ms)
            at_ms += self._gap()

    def _below(self, bound: int) -> int:
        return self._entropy.below(bound)

    def _gap(self) -> int:
        gap = self._plan.gap_ms
        return gap // 4 + self._below(gap * 3 // 2) + 1

    def _while(self, most_ms: int) -> int:
        """Short more often than long: a cluster that is always broken shows little."""
        return DOWN_MIN_MS + self._below(1 + self._below(most_ms))

    def _node(self) -> int:
        return 1 + self._below(self._plan.processes)

    def _pair(self) -> tuple[int, int]:
        nodes = self._plan.processes
        one = self._node()
        return one, 1 + (one + self._below(max(nodes - 1, 1))) % nodes

    def _strike(self, name: str, at_ms: int) -> Iterable[Command]:
        match name:
            case "kill" | "power" | "stop" | "pause":
                return self._down(at_ms, name)
            case "power-whole":
                return self._down(at_ms, "power", WHOLE)
            case "power-mended":
                return self._down(at_ms, "power", MENDED)
            case "wipe-whole":
                return self._down(at_ms, "wipe", WHOLE)
            case "full" | "io-error":
                pair = (self._node(), 1 + self._below(LOGS))
                return [Command(at_ms, name, pair, 0, self._while(DOWN_SPREAD_MS))]
            case "seesaw":
                return self._seesaw(at_ms)
            case "relapse":
                return self._relapse(at_ms, "kill")
            case "rolling":
                return self._rolling(at_ms)
            case "kill-all":
                return [self._fall(at_ms, "kill", node) for node in self._up_at]
            case "ebb":
                return self._ebb(at_ms, "power", MENDED)
            case "ebb-killed":
                return self._ebb(at_ms, "kill")
            case "break":
                return [
                    Command(at_ms, name, (1 + self._below(CONNECTIONS),))
                    for _ in range(1 + self._below(3))
                ]
            case "slow-disk":
                by_ms, for_ms = self._below(SLOW_DISK_MS), self._while(APART_SPREAD_MS)
                return [Command(at_ms, name, (self._node(),), by_ms, for_ms)]
            case "flaky" | "lie":
                return [Command(at_ms, name, (self._node(),), 0, self._while(APART_SPREAD_MS))]
            case "clock-jump":
                return [Command(at_ms, name, (self._node(),), self._below(2 * HOUR_MS) - HOUR_MS)]
            case _:
                return self._apart(at_ms, name) if self._plan.processes > 1 else ()

    def _down(self, at_ms: int, fault: str, guard: str = "") -> list[Command]:
        """Somebody to be taken down; nobody if as many are down as may be."""
        up = [node for node, up_at in self._up_at.items() if up_at <= at_ms]
        if not up or len(self._up_at) - len(up) >= self._plan.down_max:
            return []
        return [self._fall(at_ms, fault, up[self._below(len(up))], guard)]

    def _fall(self, at_ms: int, fault: str, node: int, guard: str = "") -> Command:
        for_ms = self._while(PAUSE_SPREAD_MS if fault == "pause" else DOWN_SPREAD_MS)
        self._up_at[node] = at_ms + for_ms + (STOP_MS if fault == "stop" else 0)
        return Command(at_ms, fault, (node,), 0, for_ms, guard)

    def _relapse(self, at_ms: int, fault: str) -> list[Command]:
        """A process that dies, or is asked to stop, again and again, soon after it has come back:
        as it rejoins the ISR."""
        commands = self._down(at_ms, "kill")
        for _ in range(2 + self._below(3) if commands else 0):
            again_ms = self._up_at[commands[0].nodes[0]] + 100 + self._below(RELAPSE_UP_MS)
            commands.append(self._fall(again_ms, fault, commands[0].nodes[0]))
        return commands

    def _rolling(self, at_ms: int) -> list[Command]:
        """A node is stopped again as it rejoins, and of two others one hears late of what the
        other knows: a leader may want somebody back whom the controller has let go."""
        commands = self._relapse(at_ms, "stop")
        if not commands:
            return []
        others = [node for node in self._up_at if node != commands[0].nodes[0]]
        late = others.pop(self._below(len(others)))
        for_ms = commands[-1].at_ms + STOP_MS - at_ms
        by_ms = SLOW_LINK_MS // 2 + self._below(SLOW_LINK_MS // 2)
        return [*(Command(at_ms, "slow-link", (node, late), by_ms, for_ms) for node in others),
                *commands]  # fmt: skip

    def _seesaw(self, at_ms: int) -> list[Command]:
        """Two nodes in turns: whoever comes back finds that the other has just gone."""
        pair = self._pair()
        until = min(at_ms + (5 + self._below(4)) * SEESAW_MS, self._plan.seconds * 1000)
        return [
            Command(moment, "kill", (pair[turn % 2],), 0, SEESAW_MS)
            for turn, moment in enumerate(range(at_ms, until, SEESAW_MS))
        ]

    def _ebb(self, at_ms: int, fault: str, guard: str = "") -> list[Command]:
        """Two nodes go, long enough to be fenced; then a third falls, and is back last."""
        nodes = list(self._up_at)
        gone = [nodes.pop(self._below(len(nodes))) for _ in range(min(2, len(nodes) - 1))]
        last = nodes[self._below(len(nodes))]
        commands = [
            Command(
                at_ms + self._below(EBB_SPREAD_MS),
                "isolate" if self._below(2) else "pause",
                (node,),
                0,
                EBB_GONE_MS + self._below(EBB_SPREAD_MS),
            )
            for node in gone
        ]
        cut_ms = at_ms + EBB_ALONE_MS + self._below(EBB_SPREAD_MS)
        down_ms = EBB_GONE_MS + self._below(EBB_SPREAD_MS)
        return [*commands, Command(cut_ms, fault, (last,), 0, down_ms, guard)]

    def _apart(self, at_ms: int, name: str) -> list[Command]:
        one, other = self._pair()
        for_ms = self._while(APART_SPREAD_MS)
        match name:
            case "isolate":
                return [Command(at_ms, name, (one,), 0, for_ms), *self._ragged(at_ms, one, other)]
            case "sever":
                pair = (one, other)
                return [Command(at_ms, name, pair, 0, for_ms), *self._ragged(at_ms, one, other)]
            case "deafen":
                return [
                    Command(at_ms, name, pair, 0, self._while(APART_SPREAD_MS))
                    for pair in self._one_way(one)
                ]
            case "slow-link":
                return [Command(at_ms, name, (one, other), self._below(SLOW_LINK_MS), for_ms)]
            case _:
                raise ValueError(f"plan {self._plan.name} names a fault '{name}' that is not known")

    def _one_way(self, one: int) -> list[tuple[int, int]]:
        """One node does not hear some of the others, or is not heard by them."""
        others = [node for node in self._up_at if node != one and self._below(3)]
        inwards = self._below(2) == 0
        return [(one, node) if inwards else (node, one) for node in others]

    def _ragged(self, at_ms: int, one: int, other: int) -> list[Command]:
        """Often one direction comes back in its own time, before or after the rest."""
        match self._below(4):
            case 0:
                pair = (one, other)
            case 1:
                pair = (other, one)
            case _:
                return []
        return [Command(at_ms, "deafen", pair, 0, self._while(APART_SPREAD_MS))]
