"""Opening a connection to another node: one attempt, and how it failed.

A *refusal* is evidence: on every address of the host there is a machine that says that nobody
listens. Anything else (no answer, no route, no such name) says nothing about the process there.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Any, Final, TypeVar

from cotidal.broker.sockets import prepare
from cotidal.node.effects import Endpoint

ProtocolT = TypeVar("ProtocolT", bound=asyncio.BaseProtocol)

_NOT_HERE: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.ENETUNREACH)
"""This machine has no such network: says nothing of the other one (::1 where IPv6 is off)."""

Address = tuple[socket.AddressFamily, tuple[Any, ...]]


class Unreachable(Exception):
    """One sentence; ``refused``: nobody listens there."""

    def __init__(self, reason: str, *, refused: bool) -> None:
        super().__init__(reason)
        self.refused = refused


async def dial(
    loop: asyncio.AbstractEventLoop, endpoint: Endpoint, protocol: Callable[[], ProtocolT]
) -> ProtocolT:
    """Connect to the first address that answers; Unreachable if none does."""
    refusals = 0
    others: list[OSError] = []
    for family, address in await _addresses(loop, endpoint):
        try:
            sock = await _connect(loop, family, address)
        except ConnectionRefusedError:
            refusals += 1
        except OSError as wrong:
            if wrong.errno not in _NOT_HERE:
                others.append(wrong)
        else:
            _, made = await loop.create_connection(protocol, sock=sock)
            return made
    where = f"{endpoint.host}:{endpoint.port}"
    if others or not refusals:
        why = (others[0].strerror or str(others[0])) if others else "it has no address from here"
        raise Unreachable(f"{where} cannot be reached: {why}", refused=False)
    raise Unreachable(f"nobody listens on {where}", refused=True)


async def _connect(
    loop: asyncio.AbstractEventLoop, family: socket.AddressFamily, address: tuple[Any, ...]
) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        prepare(sock, str(address[0]))
        await loop.sock_connect(sock, address)
        if sock.getsockname() == sock.getpeername():
            # TCP may join a socket to itself when nobody listens on a port of the range from which
            # the system takes a caller's: then the process there could never bind it again.
            raise ConnectionRefusedError(errno.ECONNREFUSED, "it is this very socket")
    except BaseException:
        sock.close()
        raise
    return sock


async def _addresses(loop: asyncio.AbstractEventLoop, endpoint: Endpoint) -> list[Address]:
    kind, numeric = socket.SOCK_STREAM, socket.AI_NUMERICHOST
    try:
        found = socket.getaddrinfo(endpoint.host, endpoint.port, type=kind, flags=numeric)
    except OSError:  # a name: looked up in a thread
        try:
            found = await loop.getaddrinfo(endpoint.host, endpoint.port, type=kind)
        except OSError as wrong:
            reason = f"the host name '{endpoint.host}' has no address ({wrong.strerror})"
            raise Unreachable(reason, refused=False) from wrong
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))
