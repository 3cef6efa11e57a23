"""A forked child ends by itself, with what it was told, and nothing of its parent runs in it."""

from __future__ import annotations

import os

import pytest

from cotidal.broker.child import EXIT_FAULT, fork


def status_of(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_it_exits_with_what_it_returns() -> None:
    assert status_of(fork(lambda: 3)) == 3


def test_whatever_it_raises_is_told_and_ends_it(capfd: pytest.CaptureFixture[str]) -> None:
    def be() -> int:
        raise SystemExit("not by the parent's way out")

    assert status_of(fork(be)) == EXIT_FAULT
    assert "not by the parent's way out" in capfd.readouterr().err


def test_it_is_a_process_group_of_its_own() -> None:
    parent = os.getpgid(0)
    assert status_of(fork(lambda: int(os.getpgid(0) == os.getpid() != parent))) == 1
