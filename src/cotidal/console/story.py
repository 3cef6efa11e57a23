"""A script behind the page: played command by command, by a running world. Pure.

The comments above a command are its caption. To go back, a new world does the commands again from
the first. Time is counted in commands: a second of the time line is one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from cotidal.console.stories import beside, text_of, title_of
from cotidal.console.story_sight import cluster_picture, partition_picture, quorum_picture
from cotidal.console.world import Command, Json, Refused
from cotidal.testing.cluster_commands import ClusterCommands
from cotidal.testing.partition_commands import PartitionCommands
from cotidal.testing.quorum_commands import QuorumCommands
from cotidal.testing.scripts import Command as Line
from cotidal.testing.scripts import Script, Step, read_script

STEP_US: Final = 1_000_000
"""Of the time line, for each command."""
STEP_MS: Final = 2_500
"""That a command stays on the page while the story runs by itself, at speed 1."""

Commanded = PartitionCommands | ClusterCommands | QuorumCommands


class Story:
    """Implements ``console.world.World``."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._script: Script = read_script(text)
        self._captions = _captions(self._script.steps)
        self._running = False
        self._speed = 1.0
        self._waited_ms = 0
        self._begin_anew()
        self._go_to(1)

    @classmethod
    def opened(cls, command: Command) -> Story:
        name = command.text("story")
        story = cls(name, text_of(name))
        if "at_us" in command:
            story._go_to(command.number("at_us", least=0, most=1 << 50) // STEP_US)
        return story

    def _begin_anew(self) -> None:
        self._world, self._draw = _world_of(self._name.split("/")[0])
        self._told: list[Json] = []
        self._at = 0

    # What every world gives

    @property
    def about(self) -> Json:
        return {
            "title": title_of(self._name),
            "unit": "step",
            "start": {"story": self._name},
            "lesson": {"name": self._name, "captions": self._captions, **beside(self._name)},
        }

    @property
    def logs(self) -> Mapping[str, Sequence[Json]]:
        return {"told": self._told, "metadata": self._metadata()}

    def _metadata(self) -> list[Json]:
        if not isinstance(self._world, ClusterCommands):
            return []
        lines = self._world.world.cluster.log
        return [{"offset": at, "epoch": 0, "text": text} for at, text in enumerate(lines)]

    def picture(self) -> Json:
        steps = self._script.steps
        done = steps[self._at - 1] if self._at else None
        picture = self._draw()
        picture |= {
            "state": "running" if self._running else "ended" if self._is_over else "paused",
            "now_us": self._at * STEP_US,
            "furthest_us": len(steps) * STEP_US,
            "speed": self._speed,
            "lesson": {
                "at": self._at,
                "of": len(steps),
                "caption": self._captions[self._at - 1] if self._at else "",
                "command": done.command if done else "",
                "happened": self._happened,
            },
        }
        return picture

    @property
    def _is_over(self) -> bool:
        return self._at >= len(self._script.steps)

    def advance(self, passed_ms: int) -> None:
        if not self._running:
            return
        self._waited_ms += passed_ms
        if self._waited_ms * self._speed >= STEP_MS:
            self._waited_ms = 0
            self._step()
            self._running = not self._is_over

    def obey(self, command: Command) -> Json | None:
        match command.name:
            case "run":
                self._running = not self._is_over
                self._waited_ms = STEP_MS
            case "pause":
                self._running = False
            case "speed":
                self._speed = command.fraction("value", least=0.001, most=50)
            case "step" | "next":
                self._running = False
                if self._is_over:
                    raise Refused("the story is over")
                self._step()
            case "back":
                self._running = False
                self._go_to(max(0, self._at - 1))
            case "seek":
                self._running = False
                us = command.number("us", least=0, most=len(self._script.steps) * STEP_US)
                self._go_to(round(us / STEP_US))
            case _:
                raise Refused(f"a story is told as it is written: it knows no '{command.name}'")
        return None

    def _step(self) -> None:
        step = self._script.steps[self._at]
        self._happened: list[str] = self._world.obey(Line(step.command))
        at = (self._at + 1) * STEP_US
        when = str(self._at + 1)
        caption = _comment(step)
        if caption:
            self._told.append(
                {"at": at, "when": when, "kind": "story", "text": caption, "big": True}
            )
        for text in (step.command, *self._happened):
            self._told.append({"at": at, "when": when, "kind": "script", "text": text})
        self._at += 1

    def _go_to(self, at: int) -> None:
        if at < self._at:
            self._begin_anew()
            self._happened = []
        while self._at < min(at, len(self._script.steps)):
            self._step()


def _world_of(kind: str) -> tuple[Commanded, Callable[[], Json]]:
    match kind:
        case "partition":
            partition = PartitionCommands()
            return partition, lambda: partition_picture(partition.world)
        case "cluster":
            cluster = ClusterCommands()
            return cluster, lambda: cluster_picture(cluster.world)
        case _:
            quorum = QuorumCommands()
            return quorum, lambda: quorum_picture(quorum.world)


def _comment(step: Step) -> str:
    return " ".join(
        line.removeprefix("#").strip() for line in step.before if line.startswith("#")
    ).strip()


def _captions(steps: Sequence[Step]) -> list[str]:
    """Of each command; one without a comment goes on under the caption before it."""
    found: list[str] = []
    for step in steps:
        found.append(_comment(step) or (found[-1] if found else ""))
    return found
