"""Every link leads somewhere, and every path, target, verb and setting that a page names exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cotidal import invariants, limits, settings
from cotidal.cli.main import VERBS
from cotidal.errors import ErrorCode

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY", "CHANGELOG")),
        ROOT / "ARCHITECTURE.md",
    ]
)
FENCE = re.compile(r"^```.*?^```$", re.S | re.M)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
PATH = re.compile(r"(?:[\w.-]+/)+[\w.-]*")
MADE = ("build", "site", "dist")
"""Directories that are there once something was built, with more or less in them."""
ROOMS = ("core", "api", "node", "log", "broker", "wire", "messages", "client", "cli")


@pytest.fixture(params=PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def page(request: pytest.FixtureRequest) -> Path:
    assert isinstance(request.param, Path)
    return request.param


def test_every_link_leads_to_a_page_and_a_heading_that_exist(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), target
        if anchor:
            assert anchor in set(anchors(there)), target


def test_every_path_of_the_code_that_is_named_exists(page: Path) -> None:
    for span in SPAN.findall(prose(page)):
        if PATH.fullmatch(span) and is_ours(span):
            assert any((base / span).exists() for base in (ROOT, ROOT / "src" / "cotidal")), span


def test_every_make_target_that_is_named_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|^|\$ )make ([a-z-]+)", text, re.M))
    assert named <= targets


def test_every_verb_that_is_named_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|^|\$ |\| )cotidal ([a-z]+)(?![a-z:])", text, re.M))
    assert named - {"is", "has"} <= VERBS.keys()


def test_every_setting_bound_promise_and_error_that_is_named_exists(page: Path) -> None:
    names = {*settings.BROKER, *settings.TOPIC, *settings.GROUP, *settings.REFUSED}
    constants = {*vars(limits), *vars(invariants), *ErrorCode.__members__}
    for span in SPAN.findall(prose(page)):
        name = span.partition("=")[0]
        if re.fullmatch(
            r"(?!(?:kafka|spark)\.)[a-z]+(\.[a-z]+)+\.(ms|bytes|messages|enable|type|policy|port|host)",
            name,
        ):
            assert name in names, name
        if re.fullmatch(r"[A-Z]+(_[A-Z]+)+", span) and span not in OTHER_CONSTANTS:
            assert span in constants, span


OTHER_CONSTANTS = {
    "COTIDAL_BOOTSTRAP",
    "COTIDAL_LOG_DIRS",
    "COTIDAL_RACK",
    "DATA_SOURCE_NOT_FOUND",  # Spark's
    "NO_COLOR",
    "PYSPARK_PYTHON",  # Spark's, as is the next
    "SPARK_CONF_DIR",
    "NOT_SERVED",  # tools/reference_apis.py
    "TYPE_CHECKING",  # Python's
}


def test_no_page_names_a_place_of_one_machine(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"/(?:work|home|root|Users)/\w", text)


def test_the_picture_is_readable_on_light_and_dark() -> None:
    picture = (ROOT / "docs" / "img" / "data-path.svg").read_text(encoding="utf-8")
    light, _, dark = picture.partition("prefers-color-scheme: dark")
    for kind in ("page", "pure", "edge", "name", "text", "small", "values", "bytes"):
        assert f".{kind}" in light, kind
        assert f".{kind}" in dark, kind
    assert "<title" in picture


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> Iterator[str]:
    for heading in re.findall(r"^#+ (.+)$", prose(page), re.M):
        yield re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")


def is_ours(path: str) -> bool:
    first = path.split("/")[0]
    return first not in (".", *MADE) and ((ROOT / first).is_dir() or first in ROOMS)
