"""The table of client suites says what was measured, and a new run replaces only its own rows."""

from __future__ import annotations

from pathlib import Path

from client_results import Failure, Result, load, merged, save, told

OURS = Result("some-client", "1.0", "its suite", "cotidal", 5, (), 1, "abc")
THEIRS = OURS._replace(server="Kafka 4.3.0", passed=6, skipped=0)
FAILED = OURS._replace(failed=(Failure("a", "not there"), Failure("b", "not there")))


def test_what_is_saved_is_loaded_again(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    assert load(file) == ()
    save((FAILED, THEIRS), file)
    assert load(file) == (FAILED, THEIRS)


def test_a_new_row_takes_the_place_of_the_old_one_and_of_no_other() -> None:
    newer = OURS._replace(passed=7, commit="def")
    other = OURS._replace(ran="another suite")
    assert set(merged((OURS, THEIRS, other), (newer,))) == {newer, THEIRS, other}


def test_the_servers_stand_beside_each_other() -> None:
    row = told((OURS, THEIRS)).splitlines()[2]
    assert row == "| some-client 1.0 | its suite | 5 passed, 1 skipped | 6 passed |  |"


def test_a_reason_is_told_once_for_all_that_fail_by_it() -> None:
    assert "| 5 passed, 2 failed, 1 skipped | a, b: not there |" in told((FAILED,))


def test_a_suite_that_never_met_a_server_says_so() -> None:
    row = told((OURS, THEIRS._replace(client="other-client"))).splitlines()[2]
    assert row == "| some-client 1.0 | its suite | 5 passed, 1 skipped | not run |  |"


def test_the_commits_of_our_rows_are_named() -> None:
    newer = OURS._replace(client="z", commit="def")
    assert told((OURS, newer)).endswith("Measured on abc, def.")
