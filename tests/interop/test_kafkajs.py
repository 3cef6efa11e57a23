"""kafkajs, the client of Node, as an application uses it (its own tests are not in its package).

The program is node/client.js: administration, writing, groups, transactions. What it does while
brokers are killed is in test_killed_brokers.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

import pytest

from tests.interop import telling_kafkajs
from tests.interop.suites import Missing, Ran, Suite, run
from tests.interop.trios import Trio

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

NOT_HERE: Final[dict[str, str]] = {}


def run_program(cluster: Trio) -> Ran:
    ended = run(
        ("node", str(telling_kafkajs.PROGRAMS / "client.js"), cluster.bootstrap),
        400,
        where=telling_kafkajs.PROGRAMS,
        **telling_kafkajs.environment(),
    )
    assert ended.returncode == 0, ended.stdout
    checks = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    return Ran(
        tuple(each["name"] for each in checks if each["ok"]),
        {each["name"]: each["why"] for each in checks if not each["ok"]},
        (),
    )


def test_what_an_application_does(cluster: Trio, judge: Callable[..., dict[str, str]]) -> None:
    try:
        ran = run_program(cluster)
    except Missing as missing:
        pytest.skip(str(missing))
    suite = Suite("kafkajs", telling_kafkajs.VERSION, "admin, produce, groups, transactions, RF 3")
    assert ran.passed
    assert judge(suite, ran, NOT_HERE) == {}
