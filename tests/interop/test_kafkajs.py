"""kafkajs, the client of Node, as an application uses it (its own tests are not in its package).

The program is node/client.js: administration, writing, groups, transactions; and a writer with a
group of readers that go on while brokers are killed.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.interop.suites import Missing, Ran, Suite, cache, fetch, run
from tests.interop.trios import Killer, Trio

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

PROGRAM: Final = Path(__file__).parent / "node" / "client.js"
PACKAGE: Final = PROGRAM.parent / "package.json"
VERSION: Final[str] = json.loads(PACKAGE.read_text())["dependencies"]["kafkajs"]
STEADY: Final = 8_000
"""At 200 a second: four kills."""

NOT_HERE: Final[dict[str, str]] = {}


@pytest.fixture(scope="module")
def modules() -> Path:
    home = cache(f"kafkajs-{VERSION}")
    try:
        if not home.exists():
            _install(home)
    except Missing as missing:
        pytest.skip(str(missing))
    return home / "node_modules"


def _install(home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as work:
        project = Path(work) / "project"
        project.mkdir()
        shutil.copy(PACKAGE, project)
        install = ("npm", "install", "--no-audit", "--no-fund", "--silent")
        fetch(install, 300, where=project, what="kafkajs")
        project.rename(home)


def run_program(modules: Path, cluster: Trio, *arguments: str) -> Ran:
    ended = run(
        ("node", str(PROGRAM), cluster.bootstrap, *arguments),
        400,
        where=modules.parent,
        NODE_PATH=str(modules),
        KAFKAJS_NO_PARTITIONER_WARNING="1",
    )
    assert ended.returncode == 0, ended.stdout
    checks = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    return Ran(
        tuple(each["name"] for each in checks if each["ok"]),
        {each["name"]: each["why"] for each in checks if not each["ok"]},
        (),
    )


def test_what_an_application_does(
    modules: Path, cluster: Trio, judge: Callable[..., dict[str, str]]
) -> None:
    ran = run_program(modules, cluster, "everything")
    suite = Suite("kafkajs", VERSION, "admin, produce, groups, transactions, RF 3")
    assert ran.passed
    assert judge(suite, ran, NOT_HERE) == {}


def test_writing_and_reading_while_brokers_are_killed(
    modules: Path, cluster: Trio, judge: Callable[..., dict[str, str]]
) -> None:
    with Killer(cluster) as killer:
        ran = run_program(modules, cluster, "steady", str(STEADY))
    assert killer.kills
    suite = Suite("kafkajs", VERSION, "writer and group, a broker killed every 10 s")
    assert judge(suite, ran, NOT_HERE) == {}
