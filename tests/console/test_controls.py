"""Every control of the page is used by a test, on simulated and on live clusters.

Pages tell what they offer and what is used (tests/support/controls.py). This comes after all other
tests that open pages, in the same process; where only some of them are run, it has nothing to say.
"""

from pathlib import Path

import pytest

from controls import CONTROLS

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]
"""Slow, because some controls are: the shortest story of a loss takes a minute."""

KNOWN = {"simulated: controls / play", "live: controls / play", "live: tabs / tab-topics"}


def test_every_control_that_a_page_offered_was_used(request):
    asked = [item for item in request.session.items if "open_page" in item.fixturenames]
    reason = why_not(request.config, asked)
    if reason:
        pytest.skip(reason)
    assert CONTROLS.used >= KNOWN
    unused = CONTROLS.unused()
    assert not unused, "no test uses: " + "; ".join(f"{n} (of {at})" for n, at in unused.items())


def why_not(config, asked):
    """What keeps us from knowing, if not all tests of the page were run, here, to their end."""
    if hasattr(config, "workerinput") and not config.getoption("loadgroup"):
        return "the tests of the page are not in one process: --dist loadgroup keeps them together"
    files = {path for path in Path(__file__).parent.rglob("test_*.py") if _opens_pages(path)}
    names = {item.nodeid for item in asked}
    if config.getoption("keyword") or files != {item.path for item in asked}:
        return "only some of the tests of the page are run"
    if names != CONTROLS.passed & names:
        return "some of the tests of the page were skipped, or have failed"
    return None


def _opens_pages(path):
    return path != Path(__file__) and "open_page" in path.read_text()
