from __future__ import annotations

import pytest

from cotidal.client.start import EARLIEST, LATEST, AtOffset, AtTime, BeforeEnd, Start, parse_start


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", EARLIEST),
        ("latest", LATEST),
        ("0", AtOffset(0)),
        ("1200", AtOffset(1200)),
        ("-10", BeforeEnd(10)),
        ("@1767225600000", AtTime(1767225600000)),
        ("2026-01-01T00:00:00Z", AtTime(1767225600000)),
        ("2026-01-01T01:00:00+01:00", AtTime(1767225600000)),
    ],
)
def test_a_start_reads_as_users_write_it(text: str, start: Start) -> None:
    assert parse_start(text) == start


@pytest.mark.parametrize("text", ["", "soon", "@", "@-1", "2026-13-01", "1.5", "1969-01-01"])
def test_what_is_no_start_is_refused_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(ValueError, match="earliest, latest, an offset"):
        parse_start(text)
