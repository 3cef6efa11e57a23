"""A real browser for tests of the page: the Chrome, Chromium or Edge that is there."""

import os
import shutil
import subprocess
import sys

import pytest

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


class PageServer:
    """`cotidal sim serve` in a process of its own."""

    def __init__(self, *options):
        self._options = options
        self.start()

    def start(self):
        command = [sys.executable, "-m", "cotidal", "sim", "serve", *self._options]
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
