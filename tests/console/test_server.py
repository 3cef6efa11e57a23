"""Who may come in, and what a page is told by a server that goes and comes back."""

import asyncio
import itertools
import json
import re
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest
from starlette.websockets import WebSocketDisconnect
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from browser import PageServer
from cotidal.console import server as server_module
from cotidal.console.server import TURN_MS_MAX, serve

pytestmark = pytest.mark.xdist_group("browser")

ASKED_OF_NOBODY = """async () => {
  const late = new Promise((done) => setTimeout(() => done("nothing was said"), 5000));
  const ask = () => cotidal.link.ask({ do: "back" }).catch((error) => error.message);
  const before = ask();
  cotidal.link.socket.close();
  const said = [await Promise.race([before, late])];
  said.push(await Promise.race([ask(), late]));
  return said;
}"""


def get(address, **headers):
    request = urllib.request.Request(address, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def socket_address(server):
    return re.sub(r"^http", "ws", server.base.replace("?", "world?")).rstrip("/") + (
        "" if "?" in server.base else "/world"
    )


def origin(server):
    return "/".join(server.base.split("/")[:3])


def test_a_page_of_another_origin_opens_no_world(server):
    with pytest.raises(InvalidStatus, match="403"):
        connect(socket_address(server), origin="http://evil.example", proxy=None)


def test_a_socket_without_an_origin_opens_no_world(server):
    with pytest.raises(InvalidStatus, match="403"):
        connect(socket_address(server), proxy=None)


def test_its_own_page_opens_a_world(server):
    with connect(socket_address(server), origin=origin(server), proxy=None) as socket:
        socket.send(json.dumps({"do": "open", "world": "simulator"}))
        assert json.loads(socket.recv(20))["tell"] == "opened"


def test_a_name_that_is_made_to_point_here_is_refused(server):
    status, _, text = get(server.base, Host="rebound.example")
    assert (status, text) == (403, "this page is served to this machine only\n")


def test_the_page_may_load_nothing_from_elsewhere(server):
    status, headers, text = get(server.base)
    assert status == 200
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]  # nor stand in another
    assert "http://" not in text
    assert "https://" not in text


def test_others_need_the_token():
    made = PageServer("--port", "0", "--host", "0.0.0.0")
    try:
        address = made.base.replace("0.0.0.0", "127.0.0.1")
        bare, token = address.split("?token=")
        assert get(bare)[0] == 403
        assert get(f"{bare}?token=wrong")[0] == 403
        assert get(address)[0] == 200
        where = re.sub("^http", "ws", bare) + "world"
        with pytest.raises(InvalidStatus, match="403"):
            connect(where, origin=bare.rstrip("/"), proxy=None)
        with connect(f"{where}?token={token}", origin=bare.rstrip("/"), proxy=None) as socket:
            socket.send("{}")
            assert json.loads(socket.recv(10))["tell"] == "refused"
    finally:
        made.stop()


def test_a_server_that_was_held_up_does_not_make_up_for_it_in_one_turn(monkeypatch):
    moments = itertools.count(0, 10)
    clock = SimpleNamespace(monotonic=lambda: next(moments))
    monkeypatch.setattr(server_module, "time", clock)
    passed = []

    async def whole():
        loop, seen = asyncio.get_running_loop(), asyncio.Event()

        class Page:
            async def receive_text(self):
                await seen.wait()
                raise WebSocketDisconnect

        class Turned:
            def turn(self, passed_ms):
                passed.append(passed_ms)
                loop.call_soon_threadsafe(seen.set)

            def take(self):
                return ()

        await serve(Page(), Turned())

    asyncio.run(whole())
    assert passed[0] == TURN_MS_MAX


def test_what_is_asked_of_a_server_that_is_gone_is_refused(page):
    """Before it went, and before it is found again."""
    assert page.evaluate(ASKED_OF_NOBODY) == ["the server is gone"] * 2
    page.wait_for_selector("#connection.good")


def test_a_server_that_comes_back_finds_the_same_run(open_page, errors):
    made = PageServer("--port", "0", "--seed", "5")
    port = re.search(r":(\d+)/", made.address)[1]
    try:
        page = open_page(made.address)
        page.get_by_role("button", name="Kill broker 2", exact=True).click()
        for _ in range(3):
            page.get_by_role("button", name="Step", exact=True).click()
        page.wait_for_selector("#headline:not(:empty)")
        page.wait_for_timeout(500)
        before = page.evaluate("cotidal.store.picture")
        page.evaluate("cotidal.store.about.isOld = true")
        made.stop()
        page.wait_for_selector("#banner:has-text('The server is gone')")
        page.wait_for_selector("#connection.bad:text('disconnected')")
        made = PageServer("--port", port)
        page.wait_for_selector("#banner:has-text('Connected again')")
        page.wait_for_function("() => !cotidal.store.about.isOld")
        for _ in range(300):
            if page.evaluate("cotidal.store.picture.now_us") == before["now_us"]:
                break
            page.wait_for_timeout(100)
        assert page.evaluate("cotidal.store.picture") == before
        page.wait_for_selector("#banner", state="hidden")
        page.context.close()
    finally:
        made.stop()
    errors.clear()  # the browser tells of every attempt to connect that failed
