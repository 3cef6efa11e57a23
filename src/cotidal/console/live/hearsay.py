"""What nodes tell of themselves, made into what a page shows: lines, messages, samples. Pure.

A message between two nodes of one machine is under way for less than a millisecond, which nobody
sees. So it is drawn for FLIGHT_US, or for as long as its link is slow: a request ends where it is
when its receiver has it, an answer begins when it leaves. What is said of its time is true.

Clients are those who produce or fetch; what the console fetches for itself is not drawn. A client
is heard of when its first message has arrived, yet it is drawn from when that was sent: so who is
there is told of any moment, not of the last one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Final

from cotidal.console.world import Json

FLIGHT_US: Final = 350_000
GUEST_US: Final = 8_000_000
"""A client that is not heard of for so long is not drawn any more."""
GUESTS_MAX: Final = 6
"""Clients of each kind that are drawn; those heard of last."""
GUESTS_KNOWN_MAX: Final = 1_000
"""Clients that are remembered, for pages that go back: some have a new name for each run."""
STAYS_MAX: Final = 100
"""Times at which one of them was there, likewise."""
FIRST_GUEST: Final = 1_000
"""Hosts from here on are clients, as in the simulator."""
CONSOLE: Final = "cotidal-console"
"""As the console calls itself."""

KINDS: Final = {"Produce": "producer", "Fetch": "consumer"}


class Stay:
    """From the first message of a client to its last, with no long silence in between."""

    __slots__ = ("first_us", "last_us")

    def __init__(self, at_us: int) -> None:
        self.first_us = at_us
        self.last_us = at_us


class Guest:
    __slots__ = ("host", "kind", "name", "stays")

    def __init__(self, name: str, kind: str, host: int) -> None:
        self.name = name
        self.kind = kind
        self.host = host
        self.stays: deque[Stay] = deque(maxlen=STAYS_MAX)

    def on_heard(self, at_us: int) -> None:
        if not self.stays or at_us - self.stays[-1].last_us > GUEST_US:
            self.stays.append(Stay(at_us))
        self.stays[-1].last_us = at_us

    @property
    def last_us(self) -> int:
        return self.stays[-1].last_us

    def heard_us(self, at_us: int) -> int | None:
        """When it was last heard of by then; None if it is not there."""
        for stay in reversed(tuple(self.stays)):
            if stay.first_us - FLIGHT_US <= at_us:
                is_there = at_us <= stay.last_us + GUEST_US
                return min(at_us, stay.last_us) if is_there else None
        return None


class Hearsay:
    def __init__(self, begun_us: int) -> None:
        """``begun_us``: moments are told from there on."""
        self._begun_us = begun_us
        self._numbered = 0
        self._guests: dict[tuple[str, str], Guest] = {}
        self._hosts = count(FIRST_GUEST)
        self.slow_ms: Mapping[str, int] = {}
        """Links that are slow, as last seen: "1-2" -> by how much."""

    def line(self, node: int, told: Json) -> Json:
        """For the trace."""
        more = told.get("said", "")
        if told["kind"] == "passed":
            more = f"{told['count']:,} more moments of kinds that were told often"
        at = told["at"] - self._begun_us
        line = {"at": at, "node": node, "step": told["step"], "kind": told["kind"], "text": more}
        return line | {"own": True} if told.get("peer") == CONSOLE else line

    def flights(self, node: int, told: Json) -> Iterator[Json]:
        if told["kind"] == "received":
            for api, size in told["asks"]:
                other = self._other(told, api)
                if other is not None:
                    yield self._flight(node, told, other, node, api=api, size=size)
        elif told["kind"] == "respond":
            other = self._other(told, told["api"])
            if other is not None:
                yield self._flight(node, told, node, other, api=told["api"], size=told["bytes"])

    def sample(self, told: Json) -> Json | None:
        """How long a producer waited, if this is its answer."""
        if "took_us" not in told:
            return None
        at = told["at"] - self._begun_us
        return {"at": at, "acks": told["acks"], "us": told["took_us"]}

    def clients(self, at_us: int) -> Json:
        """Those who were there at a moment, as a picture has them."""
        heard = [(each.heard_us(at_us), each) for each in list(self._guests.values())]
        there = [(at, each) for at, each in heard if at is not None]
        there.sort(key=lambda each: -each[0])
        shown: Json = {}
        for kind in KINDS.values():
            of_kind = [each for _, each in there if each.kind == kind]
            for each in of_kind[:GUESTS_MAX]:
                shown[f"{each.name} ({kind})"] = {
                    "kind": kind, "host": each.host, "label": each.name
                }  # fmt: skip
        return shown

    def _other(self, told: Json, api: str) -> int | None:
        """Who is at the other end; None for what is not drawn."""
        peer = told["peer"]
        if peer.startswith("node-") and peer[5:].isdecimal():
            return int(peer[5:])
        if not peer or api not in KINDS or (peer == CONSOLE and api != "Produce"):
            return None
        place = (peer, KINDS[api])
        guest = self._guests.get(place)
        if guest is None:
            if len(self._guests) == GUESTS_KNOWN_MAX:
                del self._guests[min(self._guests, key=lambda each: self._guests[each].last_us)]
            guest = self._guests[place] = Guest(*place, next(self._hosts))
        guest.on_heard(told["at"] - self._begun_us)
        return guest.host

    def _flight(
        self, node: int, told: Json, source: int, target: int, *, api: str, size: int
    ) -> Json:
        self._numbered += 1
        at = told["at"] - self._begun_us
        link = f"{min(source, target)}-{max(source, target)}"
        takes = max(FLIGHT_US, self.slow_ms.get(link, 0) * 1000)
        is_answer = source == node
        return {
            "number": self._numbered,
            "source": source,
            "target": target,
            "sent_us": at if is_answer else at - takes,
            "arrives_us": at + takes if is_answer else at,
            "api": api,
            "answer": is_answer,
            "bytes": size,
            "node": node,
            "step": told["step"],
            "at": at,
            "said": told["said"],
        }
