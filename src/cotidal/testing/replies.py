"""Scripted replies: what a cluster of ``cotidal.testing`` does otherwise than it would.

A rule names requests (the third Produce, every Heartbeat of one group) and what becomes of them:

    reply    an error, in the form of that API; or a whole response; or a function that makes one.
             The node never sees the request
    delay    all of that, or the request itself, so many seconds later; whatever follows on its
             connection waits with it
    close    the connection ends BEFORE the node sees the request, or AFTER it was handled, in the
             place of its answer: then nobody can tell whether it was done

Everything else is handled by brokers that really replicate. What nodes ask each other is never
touched. The hook sits between sockets and node (broker/edge.py), and only in clusters of this
package; replies keep the order of requests, for a scripted one takes its place in the node as a
question that is answered at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, Generic, NamedTuple, TypeVar

from cotidal.broker.server import Server
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.api_versions import ApiVersionsRequest
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.fetch import FetchRequest as Fetch
from cotidal.messages.rpc.find_coordinator import FindCoordinatorRequest as FindCoordinator
from cotidal.messages.rpc.heartbeat import HeartbeatRequest as Heartbeat
from cotidal.messages.rpc.init_producer_id import InitProducerIdRequest as InitProducerId
from cotidal.messages.rpc.join_group import JoinGroupRequest as JoinGroup
from cotidal.messages.rpc.list_offsets import ListOffsetsRequest as ListOffsets
from cotidal.messages.rpc.metadata import MetadataRequest as Metadata
from cotidal.messages.rpc.offset_commit import OffsetCommitRequest as OffsetCommit
from cotidal.messages.rpc.offset_fetch import OffsetFetchRequest as OffsetFetch
from cotidal.messages.rpc.produce import ProduceRequest as Produce
from cotidal.messages.rpc.sync_group import SyncGroupRequest as SyncGroup
from cotidal.node.effects import CloseConnection, Respond
from cotidal.node.events import ConnectionId, ConnectionLost, Event, Received, Request
from cotidal.testing.refusals import refused

__all__ = [
    "Close",
    "Fetch",
    "FindCoordinator",
    "Heartbeat",
    "InitProducerId",
    "JoinGroup",
    "ListOffsets",
    "Metadata",
    "OffsetCommit",
    "OffsetFetch",
    "Produce",
    "Rule",
    "Script",
    "ScriptedEdge",
    "SyncGroup",
]

RequestT = TypeVar("RequestT", bound=tuple[Any, ...])
API_VERSIONS: Final = int(ApiKey.API_VERSIONS)


class Close(Enum):
    BEFORE = "before"
    """The request is lost with its connection."""
    AFTER = "after"
    """It is done, and its answer is lost."""


class Rule(Generic[RequestT]):
    """One line of a script; see the module's head, and ``Cluster.on``."""

    def __init__(
        self,
        request: type[RequestT],
        *,
        nth: int,
        times: int | None,
        node: int | None,
        client_id: str | None,
        when: Callable[[RequestT], bool] | None,
        reply: ErrorCode | Callable[[RequestT], object] | tuple[Any, ...] | None,
        delay: float,
        close: Close | None,
    ) -> None:
        if nth < 1 or (times is not None and times < 1) or delay < 0:
            raise ValueError("nth and times count from 1, and no delay is negative")
        if (reply is not None) + (close is not None) + (delay > 0) == 0:
            raise ValueError("say what is to happen: reply, delay or close")
        if reply is not None and close is not None:
            raise ValueError("a connection that is closed gets no reply")
        self.request = request
        self.seen = 0
        """Requests that it was asked about."""
        self.hits = 0
        """Those that it was for."""
        self.delay = delay
        self.close = close
        self._nth = nth
        self._times = times
        self._node = node
        self._client_id = client_id
        self._when = when
        self._reply = reply
        self._hit = threading.Event()

    def wait(self, seconds: float = 10.0) -> None:
        """Until it was for some request; TimeoutError if none comes in time."""
        if not self._hit.wait(seconds):
            raise TimeoutError(f"no {self.request.__name__} to which the rule applies has come")

    def applies(self, node: int, request: Request) -> bool:
        """Counts: to be asked once for each request, and by one thread."""
        message = request.message
        if not isinstance(message, self.request) or self._node not in (None, node):
            return False
        if self._client_id not in (None, request.client_id):
            return False
        if self._when is not None and not self._when(message):
            return False
        self.seen += 1
        past = self.seen - self._nth
        if past < 0 or (self._times is not None and past >= self._times):
            return False
        self.hits += 1
        self._hit.set()
        return True

    def response(self, request: Request) -> object | None:
        reply = self._reply
        if isinstance(reply, ErrorCode):
            return refused(request.message, request.api_version, reply)
        if callable(reply):
            message = request.message
            assert isinstance(message, self.request)
            return reply(message)
        return reply


class Script:
    """The rules of a cluster. Added to by tests, followed on the thread of its nodes."""

    def __init__(self, nodes: tuple[int, ...]) -> None:
        self.rules: tuple[Rule[Any], ...] = ()
        self._peers = frozenset(f"node-{node}" for node in nodes)

    def add(self, rule: Rule[Any]) -> None:
        self.rules = (*self.rules, rule)

    def clear(self) -> None:
        self.rules = ()

    def rule_for(self, node: int, request: Request) -> Rule[Any] | None:
        """The first that applies; all that might have count it."""
        if request.client_id in self._peers:
            return None
        found = [rule for rule in self.rules if rule.applies(node, request)]
        return found[0] if found else None


class _Scripted(NamedTuple):
    """What is written in the place of the node's answer."""

    api_key: int
    api_version: int
    message: object | None
    """None: the connection is closed."""


class ScriptedEdge:
    """One life of one node, between its sockets and itself."""

    def __init__(self, node: int, script: Script) -> None:
        self._node = node
        self._script = script
        self._post: Callable[[Event], None]
        self._server: Server
        self._loop = asyncio.get_running_loop()
        self._held: dict[ConnectionId, deque[Received]] = {}
        self._scripted: dict[tuple[int, int], _Scripted] = {}

    def attach(self, post: Callable[[Event], None], server: Server) -> None:
        self._post = post
        self._server = server

    def on_event(self, event: Event) -> None:
        if isinstance(event, Received) and (self._script.rules or self._held):
            if event.connection in self._held:
                self._held[event.connection].append(event)
            else:
                self._take(event)
            return
        if isinstance(event, ConnectionLost):
            self._held.pop(event.connection, None)
            if self._scripted:
                gone = [key for key in self._scripted if key[0] == event.connection]
                for key in gone:
                    del self._scripted[key]
        self._post(event)

    def on_reply(self, reply: Respond) -> None:
        scripted = self._scripted.pop((reply.connection, reply.correlation_id), None)
        if scripted is None:
            self._server.respond(reply)
        elif scripted.message is None:
            self._close(ConnectionId(reply.connection))
        else:
            key, version, message = scripted
            self._server.respond(reply._replace(api_key=key, api_version=version, message=message))

    def _take(self, event: Received) -> None:
        """Hand on every request that no rule is for, and do with the others as the rules say."""
        passed: list[Request] = []
        for place, request in enumerate(event.requests):
            rule = self._script.rule_for(self._node, request)
            if rule is None:
                passed.append(request)
                continue
            if rule.delay:
                self._hand_on(event, passed)
                rest = event._replace(requests=event.requests[place + 1 :])
                self._held[event.connection] = deque([rest])
                self._loop.call_later(rule.delay, self._go_on, event, request, rule)
                return
            if not self._follow(event, request, rule, passed):
                return
        self._hand_on(event, passed)

    def _go_on(self, event: Received, request: Request, rule: Rule[Any]) -> None:
        """The delay of this request is over, and with it that of all behind it."""
        waiting = self._held.pop(event.connection, None)
        if waiting is None:
            return  # its connection is gone
        passed: list[Request] = []
        if self._follow(event, request, rule, passed):
            self._hand_on(event, passed)
            while waiting and event.connection not in self._held:
                self._take(waiting.popleft())
            if waiting:
                self._held[event.connection].extend(waiting)

    def _follow(
        self, event: Received, request: Request, rule: Rule[Any], passed: list[Request]
    ) -> bool:
        """False: its connection is closed."""
        if rule.close is Close.BEFORE:
            self._hand_on(event, passed)
            self._close(event.connection)
            return False
        place = (event.connection, request.correlation_id)
        is_answered = not isinstance(request.message, Produce) or request.message.acks != 0
        response = rule.response(request)
        if rule.close is Close.AFTER:
            if is_answered:
                self._scripted[place] = _Scripted(request.api_key, request.api_version, None)
            passed.append(request)
        elif response is None:
            passed.append(request)
        elif is_answered:
            self._scripted[place] = _Scripted(request.api_key, request.api_version, response)
            stand_in = request._replace(
                api_key=API_VERSIONS, api_version=0, message=ApiVersionsRequest()
            )
            passed.append(stand_in)
        return True

    def _hand_on(self, event: Received, requests: list[Request]) -> None:
        if requests:
            self._post(event._replace(requests=tuple(requests)))
            requests.clear()

    def _close(self, connection: ConnectionId) -> None:
        self._server.close_connection(CloseConnection(connection, "the script says so"))
