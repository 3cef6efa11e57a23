"""What the documentation says of the code is what the code says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import reference_pages
from cotidal.api.registry import APIS
from reference_apis import NOT_SERVED, compatibility, words_of
from reference_limits import quantity, read_bounds
from reference_settings import PENDING, contradictions
from reference_table import table

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def test_every_kind_of_generated_part_stands_on_some_page() -> None:
    told = {
        match["words"].split()[0]
        for page in DOCS.rglob("*.md")
        for match in reference_pages.REGION.finditer(page.read_text(encoding="utf-8"))
    }
    assert told == reference_pages.WRITERS.keys()


def test_every_served_api_stands_on_exactly_one_page_of_its_family() -> None:
    named = [
        name
        for page in (DOCS / "apis").glob("*.md")
        for match in reference_pages.REGION.finditer(page.read_text(encoding="utf-8"))
        for name in match["words"].split()[1:]
    ]
    assert sorted(named) == sorted(api.name for api in APIS.values())


def test_a_setting_has_an_effect_exactly_when_the_page_says_so() -> None:
    assert contradictions(ROOT / "src" / "cotidal") == []


def test_a_setting_that_begins_to_work_must_leave_the_pending_ones(tmp_path: Path) -> None:
    source = tmp_path / "cotidal"
    shutil.copytree(
        ROOT / "src" / "cotidal", source, ignore=shutil.ignore_patterns("codec", "__pycache__")
    )
    assert "socket.listen.backlog.size" in PENDING
    (source / "groups.py").write_text('SIZE = number("socket.listen.backlog.size")\n')
    (told,) = contradictions(source)
    assert told == "socket.listen.backlog.size is said to have no effect, but groups.py names it"


def test_a_setting_that_nothing_reads_must_be_pending(tmp_path: Path) -> None:
    told = contradictions(tmp_path)
    assert "retention.ms is said to have an effect, but no code names it" in told


def test_an_unserved_api_without_a_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = {
        reason: names
        for reason, names in NOT_SERVED.items()
        if reason != "no telemetry from clients"
    }
    monkeypatch.setattr("reference_apis.NOT_SERVED", fewer)
    with pytest.raises(ValueError, match="disagree about GetTelemetrySubscriptions, PushTelemetry"):
        compatibility(())


def test_an_unknown_kind_of_part_is_told() -> None:
    with pytest.raises(ValueError, match=r"page\.md: nothing writes 'poems'"):
        reference_pages.rewritten("<!-- generated: poems -->\n<!-- end generated -->\n", "page.md")


def test_a_part_is_replaced_and_prose_is_not() -> None:
    page = "before\n<!-- generated: limits -->\nSTALE\n<!-- end generated -->\nafter\n"
    once = reference_pages.rewritten(page, "page.md")
    assert once.startswith("before\n<!-- generated: limits -->\n")
    assert once.endswith("<!-- end generated -->\nafter\n")
    assert "STALE" not in once
    assert "`FRAME_BYTES_MAX`" in once
    assert reference_pages.rewritten(once, "page.md") == once


def test_what_is_not_served_is_taken_out_of_the_middle_of_a_docstring() -> None:
    doc = (
        "Fetch (key 1), versions 4-18.\n\nSessions. Not served yet: replicas,\nsnapshots. The end."
    )
    assert words_of(doc) == ("Sessions. The end.", "replicas, snapshots")


def test_nothing_left_out_is_no_omission() -> None:
    assert words_of("A (key 1), version 0. B.\n\nNot there: nothing of the protocol.") == ("B.", "")


def test_quantities_read_as_people_say_them() -> None:
    assert quantity("FRAME_BYTES_MAX", 100 << 20) == "100 MiB"
    assert quantity("REQUEST_BYTES_MAX", 8 << 10) == "8 KiB"
    assert quantity("NAME_BYTES", 1000) == "1,000"
    assert quantity("IDLE_MS", 600_000) == "600 s"
    assert quantity("SESSIONS_MAX", 1000) == "1,000"


def test_a_bound_without_a_section_is_told() -> None:
    with pytest.raises(ValueError, match="no section comment"):
        list(read_bounds('A: int = 1\n"""Why."""\n'))


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    assert table(("a",), [("x|y",)]).endswith("| x\\|y |")


def test_check_tells_the_page_that_is_out_of_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "limits.md"
    page.write_text("<!-- generated: limits -->\n<!-- end generated -->\n")
    monkeypatch.setattr(reference_pages, "ROOT", tmp_path)
    assert reference_pages.main(["--check"]) == 1
    assert "docs/limits.md is out of date" in capsys.readouterr().out
    assert reference_pages.main([]) == 0
    assert reference_pages.main(["--check"]) == 0
