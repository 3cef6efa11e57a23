"""Connections: the order of requests and of replies. Pure.

  REPLIES_IN_ORDER  replies leave a connection in the order of its requests.

A request is begun when nothing before it on its connection is unanswered, with one exception: a
Produce may be begun while only Produces are unanswered. Kafka answers one request of a connection
at a time; a producer that keeps a hundred in flight gets them all into one write here.

What may not begin yet waits in ``queued``. When too much waits, reading from the socket is paused.
So it is while the connection is muted, for its client has taken more than its quota (quotas.py):
then nothing begins either, and every answer says for how long.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final, Protocol, cast

from cotidal.api.asked import Asked
from cotidal.limits import CONNECTION_PIPELINE_MAX
from cotidal.node.effects import Effect, PauseReading, Respond, ResumeReading
from cotidal.node.events import ConnectionId, Request
from cotidal.node.metering import Metering
from cotidal.values import Millis, NodeId, WallMillis

PRODUCE: Final = 0

_new: Final = tuple.__new__
"""Makes a NamedTuple in half the time that calling its class takes."""


class Parked(Protocol):
    """A request that waits for something."""

    def forget(self) -> None:
        """Its connection is gone: wait no longer."""


class Slot:
    """The place of one request in its connection's order of replies."""

    __slots__ = ("connection", "parked", "reply", "request")

    def __init__(self, connection: Connection, request: Request) -> None:
        self.connection = connection
        self.request = request
        self.parked: Parked | None = None
        self.reply: object | None = None

    @property
    def asked(self) -> Asked:
        """What a handler is told besides the request's content."""
        request, connection = self.request, self.connection
        return Asked(
            request.api_version,
            request.client_id,
            connection.listener,
            connection.wall,
            connection.peer,
        )


class Connection:
    """One client connection, from the node's side."""

    __slots__ = (
        "_unblocked",
        "broker",
        "id",
        "listener",
        "lost",
        "metering",
        "muted_until",
        "others",
        "paused",
        "peer",
        "queued",
        "slots",
        "throttle_ms",
        "wall",
    )

    def __init__(
        self,
        id_: ConnectionId,
        *,
        listener: str,
        peer: str,
        unblocked: dict[Connection, None],
    ) -> None:
        self.id = id_
        self._unblocked = unblocked
        """The node's list of connections on which something more may begin."""
        self.lost = False
        self.listener = listener
        self.peer = peer
        self.broker: NodeId | None = None
        """Whose heartbeats come this way: when the connection ends, it has perhaps died."""
        self.slots: deque[Slot] = deque()
        self.queued: deque[Request] = deque()
        self.others = 0
        """Unanswered requests that are not Produce, and those that hold the connection."""
        self.paused = False
        self.metering: Metering | None = None
        """What its client takes, once that is asked for: quotas.py."""
        self.throttle_ms = 0
        """How long it is muted, as its answers say; 0: it is not."""
        self.muted_until = Millis(0)
        self.wall = WallMillis(0)
        """Wall time of the last read: for queued requests that begin later."""

    def may_begin(self, api_key: int) -> bool:
        return not self.throttle_ms and (
            not self.slots or (api_key == PRODUCE and self.others == 0)
        )

    def open_slot(self, request: Request) -> Slot:
        slot = Slot(self, request)
        self.slots.append(slot)
        if request.api_key != PRODUCE:
            self.others += 1
        return slot

    def hold(self) -> None:
        """Until it is let go, nothing more begins, a Produce neither: what follows rests on it."""
        self.others += 1

    def let_go(self) -> None:
        self.others -= 1
        if self.queued or self.paused:
            self._unblocked[self] = None

    def mute(self, until: Millis, now: Millis, out: list[Effect]) -> bool:
        """Let nothing more begin until then. False: that is so already."""
        if self.throttle_ms and until <= self.muted_until:
            return False
        self.muted_until = until
        self.throttle_ms = until - now
        self.regulate(out)
        return True

    def unmute(self, now: Millis) -> None:
        """If it is time."""
        if self.throttle_ms and self.muted_until <= now:
            self.throttle_ms = 0
            self._unblocked[self] = None

    def lose(self) -> None:
        """The socket is gone: nothing is answered, nothing waits any more."""
        self.lost = True
        self.queued.clear()
        for slot in self.slots:
            if slot.parked is not None:
                slot.parked.forget()
                slot.parked = None
        self.slots.clear()

    def answer(self, slot: Slot, reply: object, out: list[Effect]) -> None:
        """Fill a slot; send every reply that nothing stands before."""
        if self.lost:
            return
        slot.reply = reply
        slot.parked = None  # the two know each other: without this they wait for the collector
        slots = self.slots
        while slots and slots[0].reply is not None:
            done = slots.popleft()
            request = done.request
            told = done.reply
            if self.throttle_ms:
                told = _throttled(told, self.throttle_ms)
            if request.api_key != PRODUCE:
                self.others -= 1
            out.append(
                _new(
                    Respond,
                    (
                        self.id,
                        request.api_key,
                        # no message: ApiVersions in a version that nobody knows, answered in
                        # version 0 (or a Produce whose records are not kept with its place)
                        0
                        if request.message is None and request.api_key != PRODUCE
                        else request.api_version,
                        request.correlation_id,
                        told,
                    ),
                )
            )
        if self.queued or self.paused:
            self._unblocked[self] = None

    def regulate(self, out: list[Effect]) -> None:
        """Pause or resume reading, with a gap between the two so that it does not flutter."""
        waiting = len(self.slots) + len(self.queued)
        if not self.paused:
            if waiting > CONNECTION_PIPELINE_MAX or self.throttle_ms:
                self.paused = True
                out.append(PauseReading(self.id))
        elif waiting < CONNECTION_PIPELINE_MAX // 2 and not self.throttle_ms:
            self.paused = False
            out.append(ResumeReading(self.id))


class Inward(Connection):
    """On which a node asks itself: no socket, no order, answers go back to their calls."""

    __slots__ = ("replies",)

    def __init__(self) -> None:
        super().__init__(ConnectionId(-1), listener="", peer="itself", unblocked={})
        self.replies: list[tuple[int, object]] = []
        """(call, answer), taken up at the end of the step."""

    def open_slot(self, request: Request) -> Slot:
        """Kept nowhere: there is no order in which they must be answered."""
        return Slot(self, request)

    def answer(self, slot: Slot, reply: object, out: list[Effect]) -> None:
        slot.parked = None
        self.replies.append((slot.request.correlation_id, reply))


def _throttled(reply: object, wait_ms: int) -> object:
    """Say for how long, where the answer has room for it."""
    answer = cast("Any", reply)
    if "throttle_time_ms" in answer._fields:
        return answer._replace(throttle_time_ms=wait_ms)
    return reply
