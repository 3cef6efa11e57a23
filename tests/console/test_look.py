"""How the page looks and reads: no serious problem for axe-core, and pictures of it for the docs.

`COTIDAL_SCREENSHOTS=docs/img` writes the pictures anew; they are looked at before they are kept.
"""

import pytest

from browser import screenshot_path, serious_problems, shot

pytestmark = pytest.mark.xdist_group("browser")

VIEWS = {
    "sandbox": "#seed=7&at_us=4000000",
    "many": "#seed=7&partitions=100&replication=1&min_isr=1",
    "story": "#world=story&story=partition/reconciliation&at_us=6000000",
    "lesson": "#world=story&story=lesson/slow-region",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_no_serious_problem(open_page, server, axe, view, scheme):
    page = open_page(server.base + VIEWS[view], color_scheme=scheme)
    page.wait_for_timeout(300)
    assert serious_problems(page, axe) == []


DIALOGS = {
    "lessons": ("Lessons", "Lessons"),
    "runs": ("Runs", "Runs of the simulator"),
    "help": ("Help and keys", "What you see"),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", DIALOGS)
def test_axe_finds_no_serious_problem_in_a_dialog(open_page, server, axe, name, scheme):
    page = open_page(server.address, color_scheme=scheme)
    button, title = DIALOGS[name]
    page.get_by_role("button", name=button, exact=True).click()
    page.wait_for_selector(f"dialog[open] h2:text-is('{title}')")
    if name == "lessons":
        page.get_by_text("All other stories").click()
    assert serious_problems(page, axe) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_problem_in_the_lab(open_page, server, axe, scheme):
    page = open_page(server.address, color_scheme=scheme)
    page.get_by_role("button", name="Durability lab", exact=True).click()
    page.wait_for_selector("#lab h2")
    page.get_by_text("A configuration of your own").click()
    assert serious_problems(page, axe) == []


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


def test_a_picture_of_many_partitions(open_page, server):
    """A broker is dead: what it led is led by others, what it held is offline."""
    page = open_page(f"{server.base}#seed=7&nodes=5&partitions=300&rate=60")
    for command in (
        "{do: 'run-for', ms: 1000}",
        "{do: 'kill', node: 2}",
        "{do: 'run-for', ms: 1500}",
    ):
        page.evaluate(f"cotidal.link.ask({command})")
    page.get_by_label("unhealthy first").check()
    page.wait_for_selector("#partitions canvas[aria-label*='offline 180']")
    page.locator("#partitions").scroll_into_view_if_needed()
    path = screenshot_path("partitions")
    assert len(page.locator("#partitions").screenshot(path=path)) > 20_000
