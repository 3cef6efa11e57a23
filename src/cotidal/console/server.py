"""The page over HTTP: its files, and a WebSocket with a session for each tab.

Bound to loopback unless told otherwise, and then a token is needed: in the address of the page
(``?token=...``), which hands it on to the WebSocket. A WebSocket is opened only by a page of our
own: browsers say where a page is from, and any other origin is refused, as is a Host that we do not
have (a name that is made to point at us).

A session's work is done in a thread, so that one tab does not hold up another.
"""

from __future__ import annotations

import asyncio
import hmac
import importlib.resources
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket, WebSocketDisconnect

from cotidal.console.session import Opener, Session

TURN_S: Final = 0.04
"""Between two pictures: 25 a second; the page draws what moves in between."""
TURN_MS_MAX: Final = 250
"""A server that was held up does not make up for it in one turn."""
POLICY_VIOLATION: Final = 1008
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " style-src 'self' 'unsafe-inline'; script-src 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def page_directory() -> Path:
    return Path(str(importlib.resources.files("cotidal.console"))) / "page"


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Door:
    """Who may come in."""

    def __init__(self, *, host: str, token: str) -> None:
        """``token``: empty where none is needed."""
        self._is_local = is_loopback(host)
        self._token = token

    def refuses(self, connection: HTTPConnection, *, is_socket: bool) -> str:
        """Why; empty if it may."""
        served = urlsplit(f"//{connection.headers.get('host', '')}").hostname or ""
        if self._is_local and not is_loopback(served):
            return "this page is served to this machine only"
        if is_socket:
            origin = urlsplit(connection.headers.get("origin", ""))
            if origin.netloc != connection.headers.get("host", ""):
                return "a WebSocket is opened by this server's own page only"
        if self._token and (is_socket or connection.url.path == "/"):
            given = connection.query_params.get("token", "")
            if not hmac.compare_digest(given.encode(), self._token.encode()):
                return "the address of the page lacks its token: ?token=..."
        return ""


def application(
    worlds: Mapping[str, Opener], *, host: str = "127.0.0.1", token: str = ""
) -> Starlette:
    """``worlds``: what the page can open, by name."""
    door = Door(host=host, token=token)

    async def guard(request: Request, call_next: RequestResponseEndpoint) -> Response:
        why = door.refuses(request, is_socket=False)
        response: Response = (
            PlainTextResponse(f"{why}\n", status_code=403) if why else await call_next(request)
        )
        response.headers.update(HEADERS)
        return response

    async def socket(websocket: WebSocket) -> None:
        why = door.refuses(websocket, is_socket=True)
        if why:
            await websocket.close(POLICY_VIOLATION, why)
            return
        await websocket.accept()
        await serve(websocket, Session(worlds))

    return Starlette(
        routes=[
            WebSocketRoute("/world", socket),
            Mount("/", StaticFiles(directory=page_directory(), html=True)),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)],
    )


async def serve(websocket: WebSocket, session: Session) -> None:
    """Until the page goes. What it says is heard in order, between turns."""
    heard: asyncio.Queue[str | None] = asyncio.Queue()

    async def listen() -> None:
        with suppress(WebSocketDisconnect, RuntimeError, KeyError):
            while True:
                await heard.put(await websocket.receive_text())
        await heard.put(None)

    listener = asyncio.create_task(listen())
    try:
        await _take_turns(websocket, session, heard)
    except (WebSocketDisconnect, RuntimeError):
        pass  # gone while something was being sent
    finally:
        listener.cancel()


async def _take_turns(
    websocket: WebSocket, session: Session, heard: asyncio.Queue[str | None]
) -> None:
    last = time.monotonic()
    while True:
        try:
            text = await asyncio.wait_for(heard.get(), TURN_S)
            if text is None:
                return
            work = partial(session.hear, text)
        except TimeoutError:
            now = time.monotonic()
            passed_ms, last = round((now - last) * 1000), now
            work = partial(session.turn, min(passed_ms, TURN_MS_MAX))
        await asyncio.to_thread(work)
        for message in session.take():
            await websocket.send_text(message)
