"""Starting and stopping processes, with a stand-in that answers Metadata."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from bench.server import Recipe, Server, ServerFailed, brokers_known_to, free_ports, serving

STAND_IN = """
import socket, struct, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    connection, _ = listener.accept()
    (size,) = struct.unpack(">i", connection.recv(4))
    connection.recv(size)
    connection.sendall(struct.pack(">iii", 8, 7, int(sys.argv[2])))
    connection.close()
"""


def recipe(directory: Path, program: str, brokers_told: int = 1) -> Recipe:
    (port,) = free_ports(1)
    command = (sys.executable, "-c", program, str(port), str(brokers_told))
    return Recipe("stand-in", (command,), (port,), directory)


def test_server_serves_when_metadata_names_every_broker(tmp_path: Path) -> None:
    with serving(recipe(tmp_path, STAND_IN)) as server:
        (port,) = server.recipe.ports
        assert brokers_known_to(port) == 1
        assert server.start_seconds > 0
        (pid,) = server.pids()
    assert not psutil.pid_exists(pid)
    assert brokers_known_to(port) == 0


def test_server_that_ends_by_itself_is_reported_with_what_it_said(tmp_path: Path) -> None:
    program = "import sys; sys.exit('the disk is on fire')"
    with pytest.raises(ServerFailed, match="the disk is on fire"):
        Server(recipe(tmp_path, program)).start()


def test_server_is_not_ready_while_a_broker_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.server.START_SECONDS_MAX", 0.5)
    with pytest.raises(ServerFailed, match="does not serve"):
        Server(recipe(tmp_path, STAND_IN, brokers_told=0)).start()


@pytest.mark.parametrize("end", [Server.stop, Server.kill])
def test_children_do_not_outlive_their_parent(
    tmp_path: Path, end: Callable[[Server], None]
) -> None:
    run_child = f"subprocess.run([sys.executable, '-c', {STAND_IN!r}, *sys.argv[1:]])"
    server = Server(recipe(tmp_path, f"import subprocess, sys; {run_child}")).start()
    pids = server.pids()
    assert len(pids) == 2
    end(server)
    assert not any(
        psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        for pid in pids
    )
