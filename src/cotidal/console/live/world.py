"""A live cluster as a world of one page: as it is now, or as it was at a moment that was seen.

    run            be where the cluster is
    pause          stay at this moment; the cluster goes on
    seek, back, step   to another moment, to the thing told before or after it
    ask            a question of the desk (console/desk)
    kill, cut, ... on a cluster that `cotidal up` runs here

Going back shows what was seen, never more: a live cluster is not run again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final

from cotidal.client.cluster import Cluster
from cotidal.console.desk.question import Desk
from cotidal.console.desk.questions import QUESTIONS
from cotidal.console.live.clerks import Answer, Clerks
from cotidal.console.live.controls import Controls
from cotidal.console.live.sight import PROMISES
from cotidal.console.live.watch import Watch
from cotidal.console.session import Opener
from cotidal.console.world import Awaited, Command, Json, Refused, World

FIRST_LOOK_S: Final = 3.0
CLOCK_US: Final = 250_000
"""The clock of the page moves in such steps where nothing else does."""
READ_ONLY: Final = "this console only shows: start it with --allow-changes to change anything"


class Live:
    """Implements ``console.world.World``."""

    def __init__(
        self,
        watch: Watch,
        clerks: Clerks,
        controls: Controls | None = None,
        *,
        allow_changes: bool,
    ) -> None:
        """``controls``: None where the cluster's processes are not ours to disturb."""
        self._watch = watch
        self._clerks = clerks
        self._controls = controls
        self._allow_changes = allow_changes
        self._at_us: int | None = None
        """Where the page stays; None: it goes with the cluster."""
        self._shown: Json = {}
        """The last picture: the same one until something moves."""
        self._seen: Json = {}
        self._moments: tuple[int, int, bool] | None = None
        """Of what, and of when, that is."""

    # What every world gives

    @property
    def about(self) -> Json:
        return {
            "title": "Live cluster",
            "start": {},
            "can": list(self._controls.acts) if self._controls and self._allow_changes else [],
            "asks": {name: {"changes": each.changes} for name, each in QUESTIONS.items()},
            "changes": self._allow_changes,
            "promises": PROMISES,
            "promises_note": "As last seen, of all topics.",
            "begun_us": self._watch.begun_us,
            "hears": self._watch.hears,
        }

    @property
    def logs(self) -> Mapping[str, Sequence[Json]]:
        return self._watch.logs

    def advance(self, passed_ms: int) -> None:
        self._watch.look()

    def picture(self) -> Json:
        frames = self._watch.frames
        last_us = frames[-1].at_us if frames else 0
        now_us = max(self._watch.now_us // CLOCK_US * CLOCK_US, last_us)
        at_us = now_us if self._at_us is None else self._at_us
        found = bisect_right(frames, at_us, key=lambda frame: frame.at_us) - 1
        picture = frames[max(found, 0)].picture if frames else _NOTHING
        moments = (at_us, now_us, self._at_us is None)
        if self._moments != moments or self._seen is not picture:
            self._moments, self._seen = moments, picture
            self._shown = {
                **picture,
                "clients": self._watch.clients(at_us),
                "now_us": at_us,
                "furthest_us": now_us,
                "state": "running" if self._at_us is None else "paused",
                "speed": 1,
            }
        return self._shown

    def obey(self, command: Command) -> Json | Awaited | None:
        match command.name:
            case "run":
                self._at_us = None
            case "pause":
                self._at_us = self._now_us
            case "seek":
                self._at_us = command.number("us", least=0, most=1 << 53)
            case "back":
                earlier = [each["at"] for each in self._watch.logs["told"]]
                self._at_us = max((at for at in earlier if at < self._now_us), default=0)
            case "step":
                later = [each["at"] for each in self._watch.logs["told"]]
                self._at_us = min((at for at in later if at > self._now_us), default=None)
            case "speed":
                pass
            case "ask":
                return self._ask(command)
            case _:
                return self._act(command)
        return None

    @property
    def _now_us(self) -> int:
        return self._watch.now_us if self._at_us is None else self._at_us

    # Doing and asking

    def _act(self, command: Command) -> Answer:
        """To processes and links; it is told as it is done."""
        controls, name = self._controls, command.name
        acts = {} if controls is None else controls.acts
        if controls is None or name not in acts:
            raise Refused(f"a live cluster knows no '{name}', or not as it was started")
        if not self._allow_changes:
            raise Refused(READ_ONLY)

        def done(cluster: Cluster) -> Json:
            text = controls.do(name, command)
            self._watch.tell(acts[name].kind, text)
            return {"sentence": text}

        return self._clerks.ask(done)

    def _ask(self, command: Command) -> Answer:
        what = command.one_of("what", tuple(QUESTIONS))
        question = QUESTIONS[what]
        if question.changes and not self._allow_changes:
            raise Refused(READ_ONLY)
        arguments = command.said.get("arguments", {})
        if not isinstance(arguments, dict):
            raise Refused("'arguments' is an object")
        asked = Command({**arguments, "do": what})
        return self._clerks.ask(
            lambda cluster: question.answer(Desk(cluster, self._watch.status), asked)
        )


_NOTHING: Final[Json] = {
    "brokers": {},
    "partitions": {},
    "health": {"state": "warn", "sentence": "Nothing is known of the cluster yet."},
}


def opener(bootstrap: str, *, home: str | None, allow_changes: bool) -> Opener:
    """Of a live world for each page; they share one watch. ``home``: as `cotidal up` has it."""
    watch, clerks = Watch(bootstrap, home), Clerks(bootstrap)
    controls = None if home is None else Controls(home)

    def opened(command: Command) -> World:
        watch.look()
        watch.wait(FIRST_LOOK_S)
        return Live(watch, clerks, controls, allow_changes=allow_changes)

    return opened
