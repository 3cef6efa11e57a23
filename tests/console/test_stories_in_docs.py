"""The stories in the documentation: all of them are told, and they play where they are told."""

import functools
import http.server
import importlib.util
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cotidal.console import stories

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.xdist_group("browser")
TEXT = (ROOT / "docs" / "stories.md").read_text(encoding="utf-8")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def served(tmp_path):
    """A directory over HTTP, and its address."""
    handler = functools.partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield tmp_path, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_every_story_has_its_place_in_the_documentation():
    placed = re.findall(r'data-story="([^"]+)"', TEXT)
    assert sorted(placed) == sorted(stories.names())
    assert placed[: len(stories.TOUR)] == [name for _, name in stories.TOUR]


def test_a_story_is_loaded_when_it_is_played_and_not_before(chromium, errors, served):
    where, address = served
    shutil.copytree(ROOT / "docs" / "assets", where / "assets")
    (where / "page").mkdir()
    (where / "page" / "index.html").write_text("<p id=frame>the page</p>", encoding="utf-8")
    places = "\n".join(re.findall(r'<p class="story".*', TEXT))
    script = '<script src="assets/stories.js"></script>'
    (where / "stories.html").write_text(f"<!doctype html>{places}{script}", encoding="utf-8")
    page = chromium.new_page()
    page.set_default_timeout(30_000)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{address}/stories.html")
    buttons = page.get_by_role("button", name="Play it here")
    assert buttons.count() == len(stories.names())
    assert page.locator("iframe").count() == 0
    page.get_by_role("button", name="Play it here: Min ISR").click()
    page.frame_locator("iframe").locator("#frame").wait_for()
    assert page.locator("iframe").get_attribute("src") == (
        f"{address}/page/index.html?embed#world=story&story=partition%2Fmin-isr"
    )
    page.close()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_story_plays_in_the_documentation_and_asks_no_other_host(chromium, errors, served):
    if importlib.util.find_spec("material") is None:
        pytest.skip("mkdocs-material is not installed: `make docs` installs it")
    if shutil.which("npm") is None and not list((ROOT / "build").glob("pyodide-*.tgz")):
        pytest.skip("npm is not installed: it is where Pyodide comes from")
    where, address = served
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(where)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    tool = [sys.executable, str(ROOT / "tools" / "page_site.py"), str(where / "page")]
    subprocess.run(tool, check=True, stdout=subprocess.DEVNULL)
    asked = []
    page = chromium.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{address}/stories.html")
    page.get_by_role("button", name="Play it here: The high watermark").click()
    frame = page.frame_locator("iframe")
    frame.locator(".lesson .caption:has-text('Committed is what')").wait_for(timeout=250_000)
    frame.locator(".lesson .next").first.click()
    frame.locator(".lesson .place:has-text('2 of')").wait_for(timeout=60_000)
    assert frame.locator(".row .name").count() >= 2
    assert frame.locator(".top").is_hidden()
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    page.close()
