"""The small HTTP responder that hands out metrics and health.

``/metrics`` for Prometheus, ``/healthz`` (200 while the node serves, otherwise 503) for a probe, on
a port of their own. Each answer closes its connection; a request is bounded in size and time.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final, cast

from cotidal.broker.exposition import CONTENT_TYPE
from cotidal.limits import METRICS_CONNECTIONS_MAX, METRICS_REQUEST_BYTES_MAX

REQUEST_SECONDS_MAX: Final = 10.0


class Answers:
    """The texts behind the two paths."""

    __slots__ = ("_healthy", "_scrape")

    def __init__(self, *, scrape: Callable[[], bytes], healthy: Callable[[], bool]) -> None:
        self._scrape = scrape
        self._healthy = healthy

    def answer(self, request_line: bytes) -> tuple[int, str, bytes]:
        """Status, content type and body."""
        method, _, rest = request_line.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return 405, "text/plain", b"only GET is answered here\n"
        if path == b"/healthz":
            return (200, "text/plain", b"ok\n") if self._healthy() else (503, "text/plain", b"no\n")
        if path == b"/metrics":
            return 200, CONTENT_TYPE, self._scrape()
        return 404, "text/plain", b"there are /metrics and /healthz\n"


_REASONS = {
    200: "OK",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


class _Scrape(asyncio.Protocol):
    """One request, one answer."""

    __slots__ = ("_endpoint", "_received", "_timer", "_transport")

    def __init__(self, endpoint: MetricsEndpoint) -> None:
        self._endpoint = endpoint
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._timer = self._endpoint.loop.call_later(REQUEST_SECONDS_MAX, self._transport.abort)
        self._endpoint.open.add(self._transport)
        if len(self._endpoint.open) > METRICS_CONNECTIONS_MAX:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if b"\r\n\r\n" in self._received or b"\n\n" in self._received:
            request_line = self._received.split(b"\n", 1)[0].strip()
            self._answer(*self._endpoint.answers.answer(request_line))
        elif len(self._received) > METRICS_REQUEST_BYTES_MAX:
            self._answer(431, "text/plain", b"the request is too long\n")

    def connection_lost(self, error: Exception | None) -> None:
        self._timer.cancel()
        self._endpoint.open.discard(self._transport)

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        head = (
            f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        ).encode()
        if self._received.startswith(b"HEAD "):
            body = b""
        self._received = b""
        self._transport.write(head + body)
        self._transport.close()


class MetricsEndpoint:
    __slots__ = ("_servers", "answers", "loop", "open")

    def __init__(self, loop: asyncio.AbstractEventLoop, answers: Answers) -> None:
        self.loop = loop
        self.answers = answers
        self.open: set[asyncio.Transport] = set()
        self._servers: list[asyncio.Server] = []

    async def listen(self, sockets: tuple[socket.socket, ...]) -> None:
        for sock in sockets:
            self._servers.append(await self.loop.create_server(lambda: _Scrape(self), sock=sock))

    def close(self) -> None:
        for server in self._servers:
            server.close()
        for transport in list(self.open):
            transport.abort()
