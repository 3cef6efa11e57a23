"""How the outcome of a suite is read and judged; runs without Kafka and without the suites."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.suites import Missing, Ran, Suite, fetch, judged, run
from tests.interop.test_franz_go import parts

SUITE = Suite("some-client", "1.0", "its suite")

GO_SAYS = """\
=== RUN   TestGroupETL
--- FAIL: TestGroupETL (19.20s)
    --- PASS: TestGroupETL/sticky (17.33s)
    --- FAIL: TestGroupETL/sticky/static (17.65s)
    --- FAIL: TestGroupETL/deep (1.00s)
        --- FAIL: TestGroupETL/deep/one (1.00s)
--- SKIP: TestShare (0.00s)
--- PASS: TestPing (0.02s)
FAIL
"""


def test_a_test_with_parts_counts_as_its_parts_whatever_they_are_called() -> None:
    assert parts(GO_SAYS) == {
        "TestGroupETL/sticky": "PASS",
        "TestGroupETL/sticky/static": "FAIL",
        "TestGroupETL/deep/one": "FAIL",
        "TestShare": "SKIP",
        "TestPing": "PASS",
    }


def test_only_what_fails_here_without_a_reason_is_a_failure() -> None:
    ran = Ran(("a",), {"known/1": "x", "new": "it broke"}, ("b",))
    row, unknown = judged(SUITE, "cotidal", ran, {"known/.*": "not there yet"})
    assert unknown == {"new": "it broke"}
    assert (row.passed, row.skipped) == (1, 1)
    assert [each.why for each in row.failed] == ["not there yet", "not known yet"]


def test_what_fails_on_kafka_is_counted_and_not_judged() -> None:
    row, unknown = judged(SUITE, "Kafka 4.3.0", Ran((), {"new": "it broke"}, ()), {})
    assert len(row.failed) == 1
    assert unknown == {}


def test_a_reason_holds_for_the_whole_name() -> None:
    _, unknown = judged(SUITE, "cotidal", Ran((), {"known-not": ""}, ()), {"known": "there"})
    assert unknown == {"known-not": ""}


def test_what_is_not_installed_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Missing, match=r"^no-such-program is not installed$"):
        run(("no-such-program",), 5, where=tmp_path)


def test_what_cannot_be_fetched_is_said_with_its_last_line(tmp_path: Path) -> None:
    with pytest.raises(Missing, match=r"^the suite could not be had: second$"):
        fetch(("sh", "-c", "echo first; echo second; false"), 5, where=tmp_path, what="the suite")
