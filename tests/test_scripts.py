"""Every story in tests/scripts, told again.

``COTIDAL_REWRITE_SCRIPTS=1 pytest tests/test_scripts.py`` (or ``make scripts-rewrite``) writes what
happened into the scripts; the diff is the review.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cotidal.testing.partition_commands import PartitionCommands
from cotidal.testing.scripts import difference, run_script

SCRIPTS = Path(__file__).parent / "scripts"
REWRITES = os.environ.get("COTIDAL_REWRITE_SCRIPTS") == "1"


def stories(kind: str) -> list[str]:
    return sorted(path.stem for path in (SCRIPTS / kind).glob("*.script"))


@pytest.mark.parametrize("story", stories("partition"))
def test_a_partition_behaves_as_its_story_says(story: str) -> None:
    path = SCRIPTS / "partition" / f"{story}.script"
    written = path.read_text(encoding="utf-8")
    happened = run_script(written, PartitionCommands())
    if REWRITES and happened != written:
        path.write_text(happened, encoding="utf-8")
    else:
        assert not difference(written, happened), difference(written, happened)
