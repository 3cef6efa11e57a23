"""The static site: Python and the simulator in the browser, and nothing from elsewhere."""

import functools
import http.server
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cotidal.console.sandbox import Start
from cotidal.console.simulated import Simulated
from cotidal.console.world import Command

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.xdist_group("browser")]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if shutil.which("npm") is None and not list((ROOT / "build").glob("pyodide-*.tgz")):
        pytest.skip("npm is not installed: it is where Pyodide comes from")
    target = tmp_path_factory.mktemp("site") / "page"
    tool = [sys.executable, str(ROOT / "tools" / "page_site.py"), str(target)]
    subprocess.run(tool, check=True, stdout=subprocess.DEVNULL)
    handler = functools.partial(Quiet, directory=str(target))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_reader_s_browser_runs_the_same_run_as_we_do(chromium, errors, site):
    context = chromium.new_context()
    asked = []
    context.route("**/*", lambda route: (asked.append(route.request.url), route.continue_()))
    page = context.new_page()
    page.on("console", lambda told: errors.append(told.text) if told.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{site}/#seed=7")
    page.wait_for_selector(".row .name", timeout=200_000)
    page.get_by_role("button", name="Kill broker 2", exact=True).click()
    page.wait_for_selector(".row:has-text('down')")
    page.evaluate("cotidal.link.ask({do: 'run-for', ms: 3000})")
    page.wait_for_timeout(500)
    shown = page.evaluate("cotidal.store.picture")
    told = page.evaluate("cotidal.store.logs.told")
    ours = Simulated(Start(seed=7))
    ours.obey(Command({"do": "kill", "node": 2}))
    ours.obey(Command({"do": "run-for", "ms": 3000}))
    assert shown == ours.picture()
    assert told == list(ours.logs["told"])
    assert asked
    assert [url for url in asked if not url.startswith(site)] == []
    context.close()
