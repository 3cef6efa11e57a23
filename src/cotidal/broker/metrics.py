"""Counters -> Prometheus's exposition format; and the small HTTP responder that hands it out.

``/metrics`` for Prometheus, ``/healthz`` (200 while the node serves, otherwise 503) for a probe, on
a port of their own. Each answer closes its connection; a request is bounded in size and time.
The prometheus_client package is imported by the first scrape: it costs 40 ms that a starting node
does not have. Every node has its own registry; nothing is process-wide.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from cotidal.broker.counters import LATENCY_BOUNDS_S, Counters, Histogram
from cotidal.limits import METRICS_CONNECTIONS_MAX, METRICS_REQUEST_BYTES_MAX

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import HistogramMetricFamily, Metric

REQUEST_SECONDS_MAX: Final = 10.0


class Gauges(NamedTuple):
    """What is looked up when somebody asks, not counted."""

    partitions: int
    log_bytes: int
    parked_requests: int
    disk_jobs: int
    offline_logs: int
    offline_directories: int


class NodeCollector:
    """Makes a node's metric families from its counters at each scrape."""

    def __init__(
        self, counters: Counters, gauges: Callable[[], Gauges], api_name: Callable[[int], str]
    ) -> None:
        self._counters = counters
        self._gauges = gauges
        self._api_name = api_name

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        counters = self._counters
        by_api = CounterMetricFamily("cotidal_requests", "Requests by API", labels=["api"])
        for key, count in sorted(counters.requests.items()):
            by_api.add_metric([self._api_name(key)], count)
        yield by_api
        for name, text, total in (
            ("bytes_in", "Bytes read from clients", counters.bytes_in),
            ("bytes_out", "Bytes written to clients", counters.bytes_out),
            ("peer_bytes_in", "Bytes that other nodes answered", counters.peer_bytes_in),
            ("peer_bytes_out", "Bytes asked of other nodes", counters.peer_bytes_out),
            ("connections_opened", "Connections accepted", counters.connections_opened),
            ("connections_refused", "Connections past a bound", counters.connections_refused),
            ("connections_idle_closed", "Connections closed as idle", counters.idle_closed),
            ("malformed_frames", "Requests that could not be read", counters.malformed_frames),
            ("log_failures", "Failures that took a log offline", counters.log_failures),
            ("compacted_bytes", "Bytes read for compaction", counters.compacted_bytes),
            ("turns", "Turns of the event loop that stepped the node", counters.turns),
        ):
            yield CounterMetricFamily(f"cotidal_{name}", text, value=total)
        gauges = self._gauges()
        for name, text, value in (
            ("connections", "Open connections", counters.connections),
            ("held_bytes", "Bytes of requests not yet whole or written", counters.held_bytes),
            ("partitions", "Partitions with a log on this node", gauges.partitions),
            ("log_bytes", "Size of all logs", gauges.log_bytes),
            ("parked_requests", "Requests waiting for data or replicas", gauges.parked_requests),
            ("disk_jobs", "Work waiting for a disk thread", gauges.disk_jobs),
            ("offline_logs", "Logs that the disk has failed", gauges.offline_logs),
            (
                "offline_log_directories",
                "Log directories that have failed",
                gauges.offline_directories,
            ),
        ):
            yield GaugeMetricFamily(f"cotidal_{name}", text, value=value)
        yield _family(
            "cotidal_request_turn_seconds",
            "From the read of a request to the end of the turn that handled it",
            counters.latency,
        )
        yield _family("cotidal_loop_lag_seconds", "Length of loop turns", counters.loop_lag)


def _family(name: str, text: str, histogram: Histogram) -> HistogramMetricFamily:
    from prometheus_client.core import HistogramMetricFamily

    buckets: list[tuple[str, float]] = []
    running = 0
    for bound, count in zip((*map(str, LATENCY_BOUNDS_S), "+Inf"), histogram.buckets, strict=True):
        running += count
        buckets.append((bound, running))
    return HistogramMetricFamily(name, text, buckets=buckets, sum_value=histogram.total)


class Exposition:
    """The texts behind the two paths."""

    __slots__ = ("_collector", "_healthy", "_registry")

    def __init__(self, collector: NodeCollector, healthy: Callable[[], bool]) -> None:
        self._collector = collector
        self._healthy = healthy
        self._registry: CollectorRegistry | None = None

    def answer(self, request_line: bytes) -> tuple[int, str, bytes]:
        """Status, content type and body."""
        method, _, rest = request_line.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return 405, "text/plain", b"only GET is answered here\n"
        if path == b"/healthz":
            return (200, "text/plain", b"ok\n") if self._healthy() else (503, "text/plain", b"no\n")
        if path == b"/metrics":
            return 200, "text/plain; version=0.0.4; charset=utf-8", self._scrape()
        return 404, "text/plain", b"there are /metrics and /healthz\n"

    def _scrape(self) -> bytes:
        from prometheus_client import CollectorRegistry, generate_latest

        if self._registry is None:
            self._registry = CollectorRegistry(auto_describe=False)
            self._registry.register(self._collector)
        return generate_latest(self._registry)


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
            self._answer(*self._endpoint.exposition.answer(request_line))
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
    __slots__ = ("_servers", "exposition", "loop", "open")

    def __init__(self, loop: asyncio.AbstractEventLoop, exposition: Exposition) -> None:
        self.loop = loop
        self.exposition = exposition
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
