"""The console beside a cluster of `cotidal up`: a process that waits at a port until a page comes.

It is forked before the cluster starts and imports nothing of the console until somebody connects,
so that a cluster that nobody looks at pays neither time nor memory for it. It ends with its parent,
however that ends: the pipe between them does.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from cotidal.broker.child import fork
from cotidal.cli.verb import Failed

HOST: Final = "127.0.0.1"
PORT: Final = 8088
PORTS_TRIED: Final = 20
"""From the usual one on, where none was asked for."""
END_S: Final = 3.0
"""How long it may take to close the connections of its pages."""


def missing_package() -> str:
    """What the console needs and is not installed; empty if nothing is missing."""
    from importlib.util import find_spec

    names = ("starlette", "uvicorn", "websockets")
    return next((name for name in names if find_spec(name) is None), "")


def listen(port: int | None) -> socket.socket | None:
    """At this port, or Failed; without one, at the first that is free, if any is."""
    if port is not None:
        try:
            return socket.create_server((HOST, port))
        except OSError as error:
            raise Failed(f"cannot listen on {HOST}:{port}: {error.strerror or error}") from None
    for tried in range(PORT, PORT + PORTS_TRIED):
        try:
            return socket.create_server((HOST, tried))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                break
    return None


@contextmanager
def attendant(listener: socket.socket, *, bootstrap: str, home: str | None) -> Iterator[None]:
    """A console at ``listener``, which is its from now on. ``home``: as Controls have it."""
    reading, writing = os.pipe()

    def be() -> int:
        os.close(writing)
        _attend(listener, reading, bootstrap, home)
        return 0

    pid = fork(be)
    os.close(reading)
    listener.close()
    try:
        yield
    finally:
        os.close(writing)
        _end(pid)


def _end(pid: int) -> None:
    deadline = time.monotonic() + END_S
    with suppress(ChildProcessError, ProcessLookupError):
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return
            time.sleep(0.005)


def _attend(listener: socket.socket, leash: int, bootstrap: str, home: str | None) -> None:
    waited: list[socket.socket | int] = [listener, leash]
    ready, _, _ = select.select(waited, [], [])
    if leash not in ready:
        from cotidal.console.host import serve
        from cotidal.console.live.worlds import worlds_with

        worlds = worlds_with(bootstrap, home=home, allow_changes=True)
        serve(worlds, listener, host=HOST, token="", leash=leash)
