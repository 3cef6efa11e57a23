"""Whoever cannot decide says so, whatever is asked of it."""

from __future__ import annotations

import importlib

import pytest

from cotidal.api.refusing import not_controller
from cotidal.api.registry import APIS, INTERNAL, Owner

DECIDED = sorted(
    (api.key, api.name)
    for api in (*APIS.values(), *INTERNAL.values())
    if api.owner in (Owner.CONTROLLER, Owner.ACTIVE)
)


@pytest.mark.parametrize(("key", "name"), DECIDED, ids=[name for _, name in DECIDED])
def test_every_question_for_the_controller_can_be_refused(key: int, name: str) -> None:
    module = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    messages = importlib.import_module(f"cotidal.messages.rpc.{module.lstrip('_')}")
    reply = not_controller(key, getattr(messages, f"{name}Request")())
    assert type(reply).__name__ == f"{name}Response"
