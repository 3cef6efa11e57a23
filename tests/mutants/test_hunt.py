"""The hunters themselves: what they look at, in which order, and what they say of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants import report
from tests.mutants.__main__ import Verdict, first_script, runs, stories, tell
from tests.mutants.catalogue import MUTANTS
from tests.mutants.hunt import Task, in_turn
from tests.mutants.mutant import HOUSE, plant

QUICK = "consumers-read-to-the-end"
"""Breaks a promise though nothing happens to the cluster, and a script."""


def test_plans_take_turns_seed_by_seed() -> None:
    tasks = in_turn(("mild", "harsh"), first=7, count=3)
    assert tasks == [Task("mild", 7), Task("harsh", 7), Task("mild", 8)]


def test_a_run_finds_a_planted_bug_that_the_house_does_not_have(tmp_path: Path) -> None:
    for name, broken in ((QUICK, "CONSUMED_NEVER_CHANGES"), (None, None)):
        tree = tmp_path / str(name)
        plant(tree, None if name is None else MUTANTS[name])
        assert runs(tree, "--only", "calm:1", "--jobs", "1")["broken"] == broken


def test_the_run_that_found_a_bug_is_made_short_and_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert tell(MUTANTS[QUICK], tries=3, lines=5) == 0
    told = capsys.readouterr().out
    assert "breaks CONSUMED_NEVER_CHANGES" in told, "a script"
    assert "-> respond" in told, "and the end of its story"


def test_a_script_finds_a_planted_bug_that_the_house_does_not_have(tmp_path: Path) -> None:
    plant(tmp_path / "house", None)
    assert first_script(tmp_path / "house") is None
    plant(tmp_path / "bug", MUTANTS[QUICK])
    told = first_script(tmp_path / "bug")
    assert told is not None
    assert " and " in told, "many stories tell what a consumer reads"


def test_a_hunt_refuses_to_look_at_the_installed_product(tmp_path: Path) -> None:
    plant(tmp_path, None)
    told = subprocess.run(
        [sys.executable, "-m", "tests.mutants.hunt", str(tmp_path), "--only", "calm:1"],
        cwd=HOUSE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 1
    assert "start with PYTHONPATH=" in told.stderr


def test_every_story_is_of_a_bug_that_is_still_planted() -> None:
    for story in stories():
        assert set(story) == {"mutant", "plan", "seed", "broken"}
        assert story["plan"] in MUTANTS[story["mutant"]].plans


@pytest.mark.parametrize(
    ("script", "run", "expected"),
    [
        (None, None, "ALIVE "),
        (None, {"runs": 9, "expired": True, "broken": None}, "not found in 9 runs (time is up)"),
        ("acks and 2 more", None, "script acks and 2 more"),
        (
            None,
            {"runs": 1, "expired": False, "broken": "FAULT", "plan": "mild", "seed": 4},
            "FAULT in mild seed 4 after 1 run",
        ),
    ],
)
def test_a_line_says_who_found_a_bug(
    script: str | None, run: dict[str, object] | None, expected: str
) -> None:
    verdict = Verdict(MUTANTS[QUICK], script, run)
    assert expected in report.line(verdict)
    assert verdict.is_killed == ("ALIVE" not in report.line(verdict))
