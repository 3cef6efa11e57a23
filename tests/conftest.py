"""For all tests: a machine may be busy.

No generated example has to come quickly. A test that starts processes, a browser or Spark and fails
is run once more; whatever needed that is named at the end of the run, with the end of what it said
the first time, and wants to be looked at. What is pure has one try.

A test that is over its time is interrupted, unless it is in a library that never comes back to
Python (librdkafka's, say). Then its worker tells where every thread is, and ends
(`faulthandler_exit_on_timeout`). xdist waits for ever where a group's worker has died, so the whole
run ends with it, and says so with its status: `make test` begins once more.

Where several workers share the tests out (`--dist loadgroup`), those of one file stay together, so
that what a file starts is started once; so do all that share Spark's session, or a browser.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

REAL: Final = (
    *("bench", "broker", "chaos", "cli", "client", "clients", "console", "docs", "fuzz"),
    *("interop", "processes", "spark", "testing"),
)
"""Rooms whose tests share the machine with what they start."""
LINES_TOLD: Final = 30
"""Of a first try that failed."""
WORKER_DIED: Final = 75
"""Exit status; the Makefile knows it."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    home = Path(__file__).parent
    for item in items:
        if not item.path.is_relative_to(home):
            continue
        path = item.path.relative_to(home)
        if path.parts[0] in REAL:
            item.add_marker(pytest.mark.flaky(reruns=1))
        if item.get_closest_marker("xdist_group") is None:
            shares_spark = "spark" in getattr(item, "fixturenames", ())
            item.add_marker(pytest.mark.xdist_group("spark" if shares_spark else str(path)))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object, error: object) -> None:
    if error:
        print(f"\na worker has died ({error}): this run ends", file=sys.stderr, flush=True)
        os._exit(WORKER_DIED)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A second try may pass, or fail because of the first."""
    failed = terminalreporter.stats.get("rerun", ())
    if failed:
        terminalreporter.section("first tries that failed")
    for report in failed:
        terminalreporter.write_line(f"{report.nodeid}, {report.when}", bold=True)
        for line in report.longreprtext.splitlines()[-LINES_TOLD:]:
            terminalreporter.write_line(f"  {line}")
