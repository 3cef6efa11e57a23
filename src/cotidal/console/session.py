"""One page and the world behind it. Pure: whoever hosts it brings the messages and the time.

    session.hear(text)      a message of the page
    session.turn(20)        20 ms have passed
    session.outbox          what is to be sent, in order; the host takes it

A picture is sent only to a page that is ready for one. The logs that grow in between wait with it.
Of many partitions the page has the one that it chose whole, and an outline of the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from cotidal.console.delta import difference
from cotidal.console.outline import outlined
from cotidal.console.stories import library
from cotidal.console.world import Awaited, Command, Json, Refused, World
from cotidal.limits import PAGE_COMMAND_BYTES_MAX

Opener = Callable[[Command], World]


class Session:
    __slots__ = (
        "_awaited", "_chosen", "_drawn", "_is_ready", "_sent",
        "_whole", "_worlds", "outbox", "world",
    )  # fmt: skip

    def __init__(self, worlds: Mapping[str, Opener]) -> None:
        """``worlds``: by the name under which a page opens them."""
        self._worlds = worlds
        self.world: World | None = None
        self.outbox: list[Json] = []
        self._drawn: Json = {}
        """The picture as the page has it."""
        self._whole: Json = {}
        """The same as the world gave it."""
        self._sent: dict[str, int] = {}
        """How much of each log the page has."""
        self._is_ready = False
        self._awaited: list[tuple[object, Awaited]] = []
        """Questions that are not answered yet, as they came."""
        self._chosen = ""
        """The partition that the page looks at; the first one until it says so."""

    def hear(self, text: str | bytes) -> None:
        ask: object = None
        try:
            if len(text) > PAGE_COMMAND_BYTES_MAX:
                raise Refused(f"a command is at most {PAGE_COMMAND_BYTES_MAX} bytes long")
            try:
                said = json.loads(text)
            except ValueError:
                raise Refused("a command is a JSON object") from None
            ask = said.get("ask") if isinstance(said, dict) else None
            answer = self._obey(Command(said))
        except Refused as refusal:
            self._say({"tell": "refused", "ask": ask, "sentence": str(refusal)})
        else:
            if answer is None or isinstance(answer, dict):
                if answer is not None or ask is not None:
                    self._say({"tell": "answer", "ask": ask, **(answer or {})})
            else:
                self._awaited.append((ask, answer))
        self._show()

    def turn(self, passed_ms: int) -> None:
        if self.world is not None:
            self.world.advance(passed_ms)
            self._awaited = [each for each in self._awaited if not self._is_answered(*each)]
            self._show()

    def take(self) -> list[str]:
        """All that is to be sent now, as text."""
        found = [json.dumps(message, separators=(",", ":")) for message in self.outbox]
        self.outbox.clear()
        return found

    def _is_answered(self, ask: object, awaited: Awaited) -> bool:
        try:
            found = awaited.found()
        except Refused as refusal:
            self._say({"tell": "refused", "ask": ask, "sentence": str(refusal)})
            return True
        if found is not None:
            self._say({"tell": "answer", "ask": ask, **found})
        return found is not None

    def _say(self, message: Json) -> None:
        self.outbox.append({name: value for name, value in message.items() if value is not None})

    def _obey(self, command: Command) -> Json | Awaited | None:
        if command.name == "ready":
            self._is_ready = True
            return None
        if command.name == "open":
            self._open(command)
            return None
        if self.world is None:
            raise Refused("no world is open yet")
        if command.name == "choose":
            self._chosen = command.text("partition", longest=300)
            self._whole = {}
            return None
        return self.world.obey(command)

    def _open(self, command: Command) -> None:
        name = command.one_of("world", tuple(self._worlds), next(iter(self._worlds)))
        self.world = self._worlds[name](command)
        for ask, _ in self._awaited:
            self._say({"tell": "refused", "ask": ask, "sentence": "another world was opened"})
        self._awaited = []
        self._drawn = {}
        self._whole = {}
        self._sent = {}
        self._chosen = ""
        self._is_ready = True
        opened = {"tell": "opened", "world": name, "worlds": list(self._worlds)}
        # From every world there is a way to all stories and plans.
        self._say({**opened, "about": {**self.world.about, "library": library()}})

    def _show(self) -> None:
        """Logs before the picture: a page that is ready again has them all."""
        if self.world is None or not self._is_ready:
            return
        grown = False
        for name, log in self.world.logs.items():
            sent = self._sent.get(name, 0)
            length = len(log)  # another thread may add to it meanwhile
            if length != sent:
                at = min(sent, length)
                items = list(log[at:length])
                self._say({"tell": "log", "name": name, "at": at, "items": items})
                self._sent[name] = length
                grown = True
        whole = self.world.picture()
        if whole is self._whole and not grown:
            return  # a live cluster that nobody has looked at since
        self._whole = whole
        picture = outlined(whole, self._chosen)
        patch = difference(self._drawn, picture)
        if patch or grown:
            self._drawn = picture
            self._is_ready = False
            self._say({"tell": "picture", "patch": patch})
