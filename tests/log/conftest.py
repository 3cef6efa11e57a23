"""Every test that takes a shelf runs on both file systems."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.log.shelf import Shelf, memory_shelf, os_shelf


@pytest.fixture(params=["os", "memory"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Shelf:
    return os_shelf(tmp_path) if request.param == "os" else memory_shelf()
