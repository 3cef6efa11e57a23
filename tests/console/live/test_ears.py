"""Sockets at which nodes tell what they do, heard by a console."""

import json
import socket
import time
from contextlib import suppress

import pytest

from cotidal.broker.witness import WITNESS_SOCKET
from cotidal.console.live import ears as ears_module
from cotidal.console.live.ears import Ears

PATIENCE_S = 20


class Teller:
    """A node, as far as a console hears it."""

    def __init__(self, home, node, *, named="node-{}"):
        directory = home / named.format(node)
        directory.mkdir(exist_ok=True)
        (directory / WITNESS_SOCKET).unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(directory / WITNESS_SOCKET))
        self._listener.listen()
        self._listener.settimeout(PATIENCE_S)

    def accept(self):
        self._heard, _ = self._listener.accept()

    def say(self, data):
        self._heard.sendall(data)

    def crowd(self):
        """As many as may wait at its door."""
        waiting = []
        with suppress(BlockingIOError):
            while True:
                waiting.append(socket.socket(socket.AF_UNIX))
                waiting[-1].setblocking(False)
                waiting[-1].connect(self._listener.getsockname())
        return waiting

    def close(self):
        self._listener.close()

    def end(self):
        self._heard.close()
        self.close()


def line(number):
    return json.dumps({"at": number}).encode() + b"\n"


def until(ears, count):
    heard = []
    deadline = time.monotonic() + PATIENCE_S
    while len(heard) < count:
        assert time.monotonic() < deadline, heard
        heard += ears.hear(0.05)
    return heard


@pytest.fixture
def ears(tmp_path):
    made = Ears(str(tmp_path))
    yield made
    made.close()


def test_lines_are_heard_whole_however_they_are_cut(tmp_path, ears, monkeypatch):
    monkeypatch.setattr(ears_module, "SEEK_EVERY_S", 0)
    teller = Teller(tmp_path, 2)
    ears.hear(0)
    teller.accept()
    both, heard = line(1) + line(2), []
    for at in range(0, len(both), 3):
        teller.say(both[at : at + 3])
        heard += ears.hear(PATIENCE_S)
    assert heard == [(2, {"at": 1}), (2, {"at": 2})]
    teller.end()


def test_a_node_that_ends_and_comes_again_is_heard_again(tmp_path, ears):
    first = Teller(tmp_path, 1)
    ears.hear(0)
    first.accept()
    assert ears.nodes == (1,)
    first.say(line(1)[:4])
    first.end()
    deadline = time.monotonic() + PATIENCE_S
    while ears.nodes:
        assert time.monotonic() < deadline
        ears.hear(0.05)
    again = Teller(tmp_path, 1)
    while not ears.nodes:
        assert time.monotonic() < deadline
        ears.hear(0.05)
    again.accept()
    again.say(line(7))
    assert until(ears, 1) == [(1, {"at": 7})]
    again.end()


def test_a_node_that_ends_before_it_lets_anybody_in_is_let_go(tmp_path, ears):
    node = Teller(tmp_path, 1)
    ears.hear(0)
    assert ears.nodes == (1,)
    node.close()
    assert ears.hear(PATIENCE_S) == []
    assert ears.nodes == ()


def test_a_node_that_is_too_busy_to_let_anybody_in_holds_nobody_up(tmp_path, ears):
    node = Teller(tmp_path, 1)
    crowd = node.crowd()
    assert ears.hear(0) == []
    assert ears.nodes == ()
    for each in crowd:
        each.close()
    node.close()


def test_nobody_is_heard_where_nothing_runs(tmp_path, ears):
    (tmp_path / "node-1").mkdir()
    put_aside = Teller(tmp_path, 1, named="node-{}.old")
    assert ears.hear(0) == []
    assert ears.nodes == ()
    put_aside.close()
    assert Ears(str(tmp_path / "nowhere")).hear(0) == []
