"""The page in a real browser, over a server in a process of its own."""

from pathlib import Path

import pytest

from browser import PageServer, axe_source, executable, launch
from controls import CONTROLS, SCRIPT


def pytest_collection_modifyitems(items):
    """The page's worlds derive from classes that are closed in the compiled build."""
    here = Path(__file__).parent
    for item in items:
        if item.path.parent == here:
            item.add_marker("plain")
    items.sort(key=lambda item: item.path == here / "test_controls.py")  # after all others


def pytest_runtest_logreport(report):
    if report.when == "call" and report.passed:
        CONTROLS.passed.add(report.nodeid)


@pytest.fixture(scope="module")
def server():
    made = PageServer("--port", "0", "--seed", "7")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def chromium():
    executable()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe():
    return axe_source()


@pytest.fixture
def errors():
    """What the browser's console says; a test that leaves something here fails."""
    found = []
    yield found
    assert found == []


@pytest.fixture
def open_page(chromium, errors, request):
    """Opens a page at an address, in a context of its own."""
    contexts = []
    test = request.node.nodeid

    def opened(address, **options):
        context = chromium.new_context(viewport={"width": 1440, "height": 1000}, **options)
        contexts.append(context)
        context.add_init_script(SCRIPT)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: _note(errors, message))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: CONTROLS.hear(message.text, test))
        page.goto(address)
        page.wait_for_selector(".row .name")
        return page

    yield opened
    for context in contexts:
        context.close()


def _note(errors, message):
    if message.type == "error":
        errors.append(message.text)


@pytest.fixture
def page(open_page, server):
    return open_page(server.address)
