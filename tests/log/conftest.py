"""Every test that takes a shelf runs on both file systems."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cotidal.log.files import OsFiles
from tests.log.shelf import Shelf, memory_shelf, os_shelf


@pytest.fixture(autouse=True)
def nothing_stays_open(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A test may leave its log as a crash would; its descriptors would stay for all tests after
    it, and libraries that wait with select() know no more than 1,024."""
    made: list[OsFiles] = []
    begin = OsFiles.__init__

    def noted(self: OsFiles, *arguments: Any, **named: Any) -> None:
        begin(self, *arguments, **named)
        made.append(self)

    monkeypatch.setattr(OsFiles, "__init__", noted)
    yield
    for files in made:
        files.give_up_all()


@pytest.fixture(params=["os", "memory"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Shelf:
    return os_shelf(tmp_path) if request.param == "os" else memory_shelf()
