"""The programs that the documentation shows run as they stand, against a real node."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from real_node import RealNode, real_node

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.S | re.M)


def programs() -> Iterator[tuple[str, str]]:
    for page in (ROOT / "README.md", ROOT / "docs" / "getting-started.md"):
        for number, program in enumerate(PROGRAM.findall(page.read_text(encoding="utf-8")), 1):
            yield f"{page.stem}-{number}", program


SHOWN = dict(programs())


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    with real_node(tmp_path_factory.mktemp("node")) as running:
        yield running


def test_there_is_a_program_for_each_client_that_is_named() -> None:
    assert len(SHOWN) == 4


@pytest.mark.parametrize("name", SHOWN)
def test_a_program_prints_the_record_that_it_wrote(name: str, node: RealNode) -> None:
    # A topic for each, so that every one of them reads its own record.
    program = SHOWN[name].replace("localhost:9092", node.bootstrap).replace('"orders"', f'"{name}"')
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "b'three herrings'\n"), done.stderr


def test_the_commands_shown_write_and_read(node: RealNode, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    block = re.search(r"## Write and read\n\n```\n(.*?)^```$", page, re.S | re.M)
    assert block is not None
    done = subprocess.run(
        ["bash", "-ec", block[1].replace("cotidal ", f"{sys.executable} -m cotidal ")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"COTIDAL_BOOTSTRAP": node.bootstrap, "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\d/0 42 = three herrings$", done.stdout, re.M), done.stdout
    assert re.search(r"^\d/\d 43 = a crate of limes$", done.stdout, re.M), done.stdout
