"""Every story in tests/scripts, told again.

``COTIDAL_REWRITE_SCRIPTS=1 pytest tests/test_scripts.py`` (or ``make scripts-rewrite``) writes what
happened into the scripts; the diff is the review.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cotidal.testing.scripts import difference, run_script, world_of

SCRIPTS = Path(__file__).parent / "scripts"
REWRITES = os.environ.get("COTIDAL_REWRITE_SCRIPTS") == "1"
STORIES = sorted(SCRIPTS.glob("*/*.script"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_it_happens_as_the_story_says(path: Path) -> None:
    written = path.read_text(encoding="utf-8")
    happened = run_script(written, world_of(path))
    if REWRITES and happened != written:
        path.write_text(happened, encoding="utf-8")
    else:
        assert not difference(written, happened), difference(written, happened)


@pytest.mark.parametrize("path", STORIES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_story_begins_with_what_it_is_about(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith("# ")


def test_every_kind_of_story_is_told() -> None:
    kinds = {path.parent.name for path in STORIES}
    assert kinds == {"partition", "cluster", "quorum"}
