"""Listeners: names, hosts and ports, in Kafka's notation; and the sockets they are bound to.

``PLAINTEXT://localhost:9092,CONTROLLER://:9093``. An empty host means every interface, port 0 any
free one. A host that has several addresses (localhost: 127.0.0.1 and ::1) is bound on each of
them, always with the same port.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from typing import Final, NamedTuple

from cotidal.limits import LISTEN_BACKLOG

_PORT_ATTEMPTS = 20


class ListenerError(ValueError):
    """One sentence about what is wrong with a listener."""


class Listener(NamedTuple):
    name: str
    host: str
    """Empty: every interface."""
    port: int
    """0: any free one, known once it is bound."""

    def __str__(self) -> str:
        return f"{self.name}://{bracketed(self.host)}:{self.port}"


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def parse_listeners(text: str, setting: str) -> tuple[Listener, ...]:
    """Comma-separated listeners; ListenerError names the setting and the part that is wrong."""
    found: list[Listener] = []
    for part in (piece.strip() for piece in text.split(",")):
        if not part:
            continue
        listener = _parse_one(part, setting)
        if any(listener.name == other.name for other in found):
            raise ListenerError(f"{setting}: the listener name {listener.name} stands there twice")
        if listener.port and any(
            (listener.host, listener.port) == (other.host, other.port) for other in found
        ):
            raise ListenerError(
                f"{setting}: {bracketed(listener.host)}:{listener.port} stands there twice;"
                " each listener needs a port of its own"
            )
        found.append(listener)
    return tuple(found)


def _parse_one(part: str, setting: str) -> Listener:
    name, separator, address = part.partition("://")
    host, colon, port_text = address.rpartition(":")
    if not separator or not name or not colon:
        raise ListenerError(f"{setting}: '{part}' is not of the form NAME://host:port")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ListenerError(f"{setting}: write the IPv6 address of '{part}' in brackets: [{host}]")
    if not (port_text.isascii() and port_text.isdigit() and int(port_text) <= 65535):
        raise ListenerError(f"{setting}: '{port_text}' in '{part}' is not a port from 0 to 65535")
    return Listener(name.upper(), host, int(port_text))


class SocketBuffers(NamedTuple):
    """Sizes that connections inherit; None leaves them to the system, which adapts them."""

    send_bytes: int | None = None
    receive_bytes: int | None = None


NO_BUFFERS: Final = SocketBuffers()


def bind(
    listener: Listener, buffers: SocketBuffers = NO_BUFFERS
) -> tuple[Listener, tuple[socket.socket, ...]]:
    """Bind and listen; the listener comes back with its real port."""
    addresses = _addresses(listener)
    for attempt in range(_PORT_ATTEMPTS):
        try:
            port, sockets = _bind_all(addresses, listener.port)
            for sock in sockets:
                _set_buffers(sock, buffers)
        except OSError as wrong:
            # A free port of one address may be taken on the other: draw again.
            again = listener.port == 0 and wrong.errno == errno.EADDRINUSE
            if again and attempt < _PORT_ATTEMPTS - 1:
                continue
            raise ListenerError(_why_not(listener, wrong)) from wrong
        return listener._replace(port=port), sockets
    raise AssertionError("the last attempt raises")


def _set_buffers(sock: socket.socket, buffers: SocketBuffers) -> None:
    if buffers.send_bytes is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffers.send_bytes)
    if buffers.receive_bytes is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffers.receive_bytes)


def _addresses(listener: Listener) -> list[tuple[socket.AddressFamily, str]]:
    if not listener.host:
        families = [(socket.AF_INET, "0.0.0.0")]
        return [*families, (socket.AF_INET6, "::")] if socket.has_ipv6 else families
    try:
        found = socket.getaddrinfo(
            listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as wrong:
        raise ListenerError(
            f"cannot listen on {listener}: the host name '{listener.host}' has no address ({wrong})"
        ) from wrong
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))


def _bind_all(
    addresses: list[tuple[socket.AddressFamily, str]], port: int
) -> tuple[int, tuple[socket.socket, ...]]:
    with contextlib.ExitStack() as undo:
        sockets: list[socket.socket] = []
        missing: OSError | None = None
        for family, host in addresses:
            try:
                sock = undo.enter_context(_bind_one(family, host, port))
            except OSError as wrong:
                if wrong.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL) and len(addresses) > 1:
                    missing = wrong  # a host without IPv6 still has "::1" in its hosts file
                    continue
                raise
            port = sock.getsockname()[1]
            sockets.append(sock)
        if not sockets and missing is not None:
            raise missing
        undo.pop_all()
        return port, tuple(sockets)


def _bind_one(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((host, port))
        sock.listen(LISTEN_BACKLOG)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


def _why_not(listener: Listener, wrong: OSError) -> str:
    if wrong.errno == errno.EADDRINUSE:
        return f"cannot listen on {listener}: the port is in use; stop its owner or choose another"
    if wrong.errno == errno.EACCES:
        return f"cannot listen on {listener}: ports below 1024 need more rights than this user has"
    return f"cannot listen on {listener}: {wrong.strerror or wrong}"
