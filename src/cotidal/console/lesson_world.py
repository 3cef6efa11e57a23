"""A lesson behind the page: the simulated cluster, taken from scene to scene. Pure.

``next`` plays the next scene: its commands, then as much time as there is to watch, after which the
world stands until it is asked to go on. Everything else can be done too, as ever.
"""

from __future__ import annotations

from typing import Any, Final

from cotidal.console.lessons import LESSONS, Scene
from cotidal.console.simulated import Simulated
from cotidal.console.stories import beside
from cotidal.console.world import Command, Json, Refused
from cotidal.sim.agenda import MS

PARTS: Final = ("leader", "follower", "controller")


class LessonWorld(Simulated):
    def __init__(self, name: str) -> None:
        self._name = name
        self._lesson = LESSONS[name]
        self._begun: list[int] = []
        """When each scene began."""
        self._until_us = 0
        self._cast: dict[str, int] = {}
        """Who plays which part: for the whole lesson, once it is chosen."""
        super().__init__(self._lesson.start)
        self._speed = self._lesson.speed

    @property
    def about(self) -> Json:
        name = f"lesson/{self._name}"
        about = super().about
        about["start"] = {"story": name}
        return about | {
            "title": self._lesson.title,
            "lesson": {
                "name": name,
                "captions": [scene.caption for scene in self._lesson.scenes],
                **beside(name),
            },
        }

    @property
    def _at(self) -> int:
        """How many scenes have begun."""
        return sum(moment <= self.box.world.now for moment in self._begun)

    def picture(self) -> Json:
        at = self._at
        picture = super().picture()
        picture["lesson"] = {
            "at": at,
            "of": len(self._lesson.scenes),
            "caption": self._lesson.scenes[max(0, at - 1)].caption,
            "watching": picture["state"] == "running",
        }
        return picture

    def advance(self, passed_ms: int) -> None:
        super().advance(passed_ms)
        if self._until_us and self.box.world.now >= self._until_us:
            self._until_us = 0
            self.obey(Command({"do": "pause"}))

    def obey(self, command: Command) -> Json | None:
        if command.name != "next":
            if command.name in ("seek", "back"):
                self._until_us = 0
            return super().obey(command)
        at = self._at
        if at >= len(self._lesson.scenes):
            raise Refused("the lesson is over; go on as you like")
        del self._begun[at:]
        self._play(self._lesson.scenes[at])
        return None

    def _play(self, scene: Scene) -> None:
        now = int(self.box.world.now)
        self._begun.append(now)
        for said in scene.commands:
            self.obey(Command({name: self._meant(value) for name, value in said.items()}))
        self._until_us = now + scene.watch_ms * MS
        self.obey(Command({"do": "run"}))

    def _meant(self, value: Any) -> Any:
        """A node by its part, as a number."""
        if value not in PARTS:
            return value
        if value not in self._cast:
            self._cast[value] = self._chosen(value)
        return self._cast[value]

    def _chosen(self, part: str) -> int:
        picture = self._sight.picture()
        partition = next(iter(picture["partitions"].values()))
        controller = next(
            broker["id"]
            for broker in picture["brokers"].values()
            if broker.get("quorum", {}).get("role") == "leader"
        )
        match part:
            case "leader":
                return int(partition["leader"])
            case "controller":
                return int(controller)
            case _:
                apart = (partition["leader"], controller)
                return next(int(node) for node in partition["replicas"] if node not in apart)
