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
        on_ready(listener.getsockname()[1])
        asyncio.run(_serve(server, listener))


async def _serve(server: uvicorn.Server, listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, lambda: setattr(server, "should_exit", True))
    await server.serve(sockets=[listener])


class _Server(uvicorn.Server):
    """Signals are ours: an interrupted page ends quietly."""

    def install_signal_handlers(self) -> None:
        return None
