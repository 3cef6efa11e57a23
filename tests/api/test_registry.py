from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from cotidal import api as api_package
from cotidal.api.registry import APIS, INTERNAL, OURS, Owner, handler
from cotidal.messages.rpc.apis import APIS as KNOWN

KAFKA_4_3 = {
    0: (0, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6), 11: (0, 9),
    12: (0, 4), 13: (0, 5), 14: (0, 5), 15: (0, 6), 16: (0, 5), 18: (0, 4), 19: (2, 7), 20: (1, 6),
    17: (0, 1), 29: (1, 3), 30: (1, 3), 31: (1, 3), 36: (0, 2), 38: (1, 3), 39: (1, 2), 40: (1, 2),
    41: (1, 3), 50: (0, 0), 51: (0, 0),
    21: (0, 2), 22: (0, 5), 23: (2, 4), 24: (0, 5), 25: (0, 4), 26: (0, 5), 27: (1, 2), 28: (0, 5),
    32: (1, 4), 33: (0, 2), 34: (1, 2), 35: (1, 5), 37: (0, 3), 42: (0, 2),
    43: (0, 2), 44: (0, 1), 45: (0, 1), 46: (0, 0), 47: (0, 0), 48: (0, 1), 49: (0, 1),
    55: (0, 2), 57: (0, 2), 60: (0, 2),
    61: (0, 0), 64: (0, 0), 65: (0, 0), 66: (0, 2), 68: (0, 1), 69: (0, 1), 74: (0, 1), 75: (0, 0),
    80: (0, 1), 81: (0, 0),
}  # fmt: skip
"""What Apache Kafka 4.3 answers to ApiVersions, for the APIs served here."""

KAFKA_4_3_BETWEEN_NODES = {
    56: (2, 3), 58: (0, 0), 62: (0, 4), 63: (0, 2), 67: (0, 0), 70: (0, 0), 73: (0, 0),
}  # fmt: skip
"""What its controllers answer on their own listener alone."""

EVERY = [*APIS.values(), *INTERNAL.values(), *OURS.values()]


def test_table_advertises_what_kafka_does():
    assert {key: (api.advertised_oldest, api.newest) for key, api in APIS.items()} == KAFKA_4_3


def test_what_nodes_ask_each_other_has_kafkas_versions():
    assert {key: (api.oldest, api.newest) for key, api in INTERNAL.items()} == (
        KAFKA_4_3_BETWEEN_NODES
    )


def test_what_nodes_ask_each_other_is_for_controllers_alone():
    assert not INTERNAL.keys() & APIS.keys()
    for key in INTERNAL:
        assert KNOWN[key].listeners == ("controller",)


@pytest.mark.parametrize("api", EVERY, ids=lambda api: api.name)
def test_row_agrees_with_the_messages(api):
    known = KNOWN[api.key]
    assert known.name == api.name
    assert (known.first_version, known.last_stable_version) == (api.oldest, api.newest)
    assert api.controller_listener == ("controller" in known.listeners)


def test_our_own_keys_are_far_from_kafkas():
    assert min(OURS) >= 30_000 > 100 * max(KAFKA_4_3)


def test_keys_ascend():
    assert list(APIS) == sorted(APIS)
    assert list(INTERNAL) == sorted(INTERNAL)


@pytest.mark.parametrize("api", EVERY, ids=lambda api: api.name)
def test_handler_has_what_its_owner_calls(api):
    module = handler(api.key)
    if api.owner in (Owner.BROKER, Owner.CONNECTION):
        assert callable(module.answer)
    elif api.owner in (Owner.CONTROLLER, Owner.ACTIVE):
        assert callable(module.decide)
    elif api.owner is Owner.COORDINATOR:
        assert callable(module.parts)
        assert callable(module.response)
    versions = {f"version {api.oldest}", f"versions {api.oldest}-{api.newest}"}
    source = Path(api_package.__path__[0], f"{module.__name__.rpartition('.')[2]}.py")
    head = ast.get_docstring(ast.parse(source.read_text()))  # compiled modules have none
    assert head is not None
    assert f"{api.name} (key {int(api.key)})" in head
    assert any(version in head for version in versions)


def test_produce_is_served_from_3_though_advertised_from_0():
    assert not APIS[0].serves(2)
    assert APIS[0].serves(3)
    assert not APIS[0].serves(14)


def test_table_imports_no_handler():
    code = (
        "import sys; import cotidal.api.registry; "
        "print(sorted(m for m in sys.modules if m.startswith('cotidal.api.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "['cotidal.api.registry']"
