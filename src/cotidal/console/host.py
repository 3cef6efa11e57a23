"""The server of the page in a process of its own."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Mapping

import uvicorn

from cotidal.console.server import application
from cotidal.console.session import Opener
from cotidal.limits import PAGE_COMMAND_BYTES_MAX


def run(
    worlds: Mapping[str, Opener],
    *,
    host: str,
    port: int,
    token: str,
    on_ready: Callable[[int], None],
) -> None:
    """Until it is interrupted; OSError if it cannot listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listener:
        on_ready(listener.getsockname()[1])
        serve(worlds, listener, host=host, token=token)


def serve(
    worlds: Mapping[str, Opener],
    listener: socket.socket,
    *,
    host: str,
    token: str,
    leash: int | None = None,
) -> None:
    """Until it is interrupted, or ``leash``, a pipe, comes to its end."""
    server = _Server(
        uvicorn.Config(
            application(worlds, host=host, token=token),
            log_level="critical",
            access_log=False,
            ws="websockets-sansio",
            ws_max_size=PAGE_COMMAND_BYTES_MAX + 1,
            timeout_graceful_shutdown=1,
            lifespan="off",
        )
    )
    asyncio.run(_serve(server, listener, leash))


async def _serve(server: uvicorn.Server, listener: socket.socket, leash: int | None) -> None:
    loop = asyncio.get_running_loop()

    def end() -> None:
        server.should_exit = True
        if leash is not None:
            loop.remove_reader(leash)  # it stays readable

    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, end)
    if leash is not None:
        loop.add_reader(leash, end)
    await server.serve(sockets=[listener])


class _Server(uvicorn.Server):
    """Signals are ours: an interrupted page ends quietly."""

    def install_signal_handlers(self) -> None:
        return None
