"""How the page looks and reads: no serious problem for axe-core, and pictures of it for the docs.

`COTIDAL_SCREENSHOTS=docs/img` writes the pictures anew; they are looked at before they are kept.
"""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
AXE = "4.14.0"
pytestmark = pytest.mark.xdist_group("browser")

VIEWS = {
    "sandbox": "#seed=7&at_us=4000000",
    "story": "#world=story&story=partition/reconciliation&at_us=6000000",
    "lesson": "#world=story&story=lesson/slow-region",
}


@pytest.fixture(scope="module")
def axe():
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_no_serious_problem(open_page, server, axe, view, scheme):
    page = open_page(server.base + VIEWS[view], color_scheme=scheme)
    page.wait_for_timeout(300)
    page.evaluate(axe)
    found = page.evaluate("axe.run()")
    serious = [
        f"{each['id']}: {node['html'][:120]} {node['failureSummary'][:200]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
    assert serious == []


def shot(page, name):
    """Written where COTIDAL_SCREENSHOTS says; without it, only taken."""
    where = os.environ.get("COTIDAL_SCREENSHOTS")
    path = None if where is None else ROOT / where / f"{name}.png"
    assert len(page.screenshot(path=path)) > 20_000


def test_pictures_of_the_sandbox(open_page, server):
    """A failover: the old leader is down, the new epoch has another colour."""
    for scheme in ("light", "dark"):
        page = open_page(
            f"{server.base}#seed=7&rate=5", color_scheme=scheme, reduced_motion="reduce"
        )
        ask = "cotidal.link.ask"
        leader = page.evaluate("cotidal.store.picture.partitions['orders-0'].leader")
        for command in (
            "{do: 'run-for', ms: 2000}",
            f"{{do: 'kill', node: {leader}}}",
            "{do: 'run-for', ms: 2160}",
        ):
            page.evaluate(f"{ask}({command})")
        page.wait_for_selector(".cell.e1")
        page.wait_for_timeout(400)
        shot(page, f"page-{scheme}")


def test_a_picture_of_a_lesson(open_page, server):
    page = open_page(f"{server.base}#world=story&story=partition/reconciliation&at_us=6000000")
    page.set_viewport_size({"width": 1440, "height": 640})
    page.wait_for_timeout(300)
    shot(page, "lesson")


def test_a_picture_of_a_narrow_screen(open_page, server):
    page = open_page(f"{server.base}#seed=7&at_us=4000000")
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(300)
    shot(page, "page-narrow")
