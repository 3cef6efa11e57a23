"""A real browser for tests of the page: the Chrome, Chromium or Edge that is there."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
AXE = "4.14.0"
NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "msedge",
)
MACS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
)
HOW = (
    "no browser was found: install Chrome, Chromium or Edge (Debian: apt-get install chromium),"
    " or say where one is with COTIDAL_BROWSER"
)


def executable():
    """Its path; skips the test if there is none."""
    told = os.environ.get("COTIDAL_BROWSER")
    found = told or next(filter(None, map(shutil.which, NAMES)), None)
    found = found or next((path for path in MACS if os.path.exists(path)), None)
    if found is None:
        pytest.skip(HOW)
    return found


def launch(playwright):
    """Without a sandbox where this user is root: the browser would not start."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return playwright.chromium.launch(
        executable_path=executable(), args=["--no-sandbox"] if is_root else []
    )


def axe_source():
    """axe-core as npm has it, kept in build/."""
    kept = ROOT / "build" / f"axe-core-{AXE}.tgz"
    if not kept.exists():
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed: it is where axe-core comes from")
        kept.parent.mkdir(exist_ok=True)
        command = ["npm", "pack", "--silent", f"axe-core@{AXE}"]
        if subprocess.run(command, cwd=kept.parent, capture_output=True).returncode:
            pytest.skip(f"npm could not fetch axe-core {AXE}")
    with tarfile.open(kept) as package:
        return package.extractfile("package/axe.min.js").read().decode()


def serious_problems(page, axe, within="html"):
    """What axe-core finds in a page, or in parts of it, as it is now; as lines."""
    page.evaluate(axe)
    return [
        f"{each['id']}: {node['html'][:120]} {node['failureSummary'][:200]}"
        for each in page.evaluate("(within) => axe.run(within)", within)["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def shot(page, name):
    """Written where COTIDAL_SCREENSHOTS says; without it, only taken."""
    assert len(page.screenshot(path=screenshot_path(name), animations="disabled")) > 20_000


def screenshot_path(name):
    told = os.environ.get("COTIDAL_SCREENSHOTS")
    return None if told is None else ROOT / told / f"{name}.png"


class PageServer:
    """`cotidal sim serve`, or `cotidal console`, in a process of its own."""

    def __init__(self, *options, verb=("sim", "serve")):
        self._options = (*verb, *options)
        self.start()

    def start(self):
        command = [sys.executable, "-m", "cotidal", *self._options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address = self._process.stdout.readline().strip()
        assert self.address.startswith("http://"), self.address

    @property
    def base(self):
        return self.address.split("#")[0]

    def stop(self):
        self._process.terminate()
        self._process.wait(20)
        self._process.stdout.close()
