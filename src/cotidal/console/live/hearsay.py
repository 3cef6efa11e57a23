"""What nodes tell of themselves, made into what a page shows: lines, messages, samples. Pure.

A message between two nodes of one machine is under way for less than a millisecond, which nobody
sees. So it is drawn for FLIGHT_US, or for as long as its link is slow: a request ends where it is
when its receiver has it, an answer begins when it leaves. What is said of its time is true.

Clients are those who produce or fetch; what the console fetches for itself is not drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cotidal.console.world import Json

FLIGHT_US: Final = 350_000
GUEST_US: Final = 8_000_000
"""A client that is not heard of for so long is not drawn any more."""
GUESTS_MAX: Final = 6
"""Clients of each kind that are drawn; those heard of last."""
FIRST_GUEST: Final = 1_000
"""Hosts from here on are clients, as in the simulator."""
CONSOLE: Final = "cotidal-console"
"""As the console calls itself."""

KINDS: Final = {"Produce": "producer", "Fetch": "consumer"}


class Guest:
    __slots__ = ("host", "kind", "name", "seen_us")

    def __init__(self, name: str, kind: str, host: int) -> None:
        self.name = name
        self.kind = kind
        self.host = host
        self.seen_us = 0


class Hearsay:
    def __init__(self, begun_us: int) -> None:
        """``begun_us``: moments are told from there on."""
        self._begun_us = begun_us
        self._numbered = 0
        self._guests: dict[tuple[str, str], Guest] = {}
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

    def clients(self, now_us: int) -> Json:
        """Those of the last seconds, as a picture has them."""
        for place, guest in list(self._guests.items()):
            if now_us - guest.seen_us > GUEST_US:
                del self._guests[place]
        shown: Json = {}
        for kind in KINDS.values():
            of_kind = [each for each in list(self._guests.values()) if each.kind == kind]
            of_kind.sort(key=lambda each: -each.seen_us)
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
            taken = {each.host for each in self._guests.values()}
            free = next(
                n for n in range(FIRST_GUEST, FIRST_GUEST + len(taken) + 1) if n not in taken
            )
            guest = self._guests[place] = Guest(*place, free)
        guest.seen_us = told["at"] - self._begun_us
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
