"""The tool that counts what simulation reaches notes the lines that are come to, and no others."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

HOUSE = Path(__file__).parents[2]

SOURCE = '''"""What it is."""

from __future__ import annotations

LIMIT = 3
"""Why three."""


def looked_at(value: int) -> str:
    """Says what it is."""
    match value:
        case 1:
            return "one"
        case 2:
            return "two"
    try:
        if value > LIMIT:
            raise ValueError
    except ValueError:
        return "many"
    else:
        return "some"
'''


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "sim_coverage", HOUSE / "tools" / "sim_coverage.py"
    )
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_lines_that_are_come_to_are_noted(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "noted_room.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(tool, "ROOMS", ("noted_",))
    monkeypatch.setattr(sys, "meta_path", [tool._Finder(), *sys.meta_path])
    module = importlib.import_module("noted_room")

    def noted() -> list[int]:
        (notes,) = tool.reached.values()
        return [line for line, come_to in enumerate(notes) if come_to]

    assert noted() == [3, 5, 6, 9]
    assert module.looked_at(2) == "two"
    assert noted() == [3, 5, 6, 9, 11, 14, 15]
    assert module.looked_at(7) == "many"
    assert noted() == [3, 5, 6, 9, 11, 14, 15, 16, 17, 18, 19, 20]
