"""The console that `cotidal up` has beside it."""

import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from cotidal.cli import attendant, up
from cotidal.cli.verb import Failed
from cotidal.testing.ports import quiet_port


@pytest.fixture
def launched(start_up: Any, tmp_path: Path) -> Iterator[Any]:
    running = []

    def begin(*arguments: str) -> Any:
        port, page = quiet_port(), quiet_port()
        process, _ = start_up(
            *("--data", str(tmp_path / "data"), "--port", str(port)),
            *("--console-port", str(page)),
            *arguments,
        )
        running.append(process)
        return process, page

    yield begin
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=20)


def text_of(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20) as answer:
        return str(answer.read().decode())


def children(process: Any) -> list[psutil.Process]:
    return psutil.Process(process.pid).children()


def until_gone(port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            text_of(port)
        except (urllib.error.URLError, OSError):
            return
        time.sleep(0.02)
    raise AssertionError(f"port {port} still answers")


def test_up_says_where_its_console_is_and_takes_it_along(launched: Any) -> None:
    process, page = launched()
    assert process.stdout.readline() == f"its console is at http://localhost:{page}/\n"
    assert "<title>cotidal</title>" in text_of(page)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 0
    until_gone(page)


def test_a_console_ends_with_an_up_that_is_killed(launched: Any) -> None:
    process, page = launched()
    assert "<title>cotidal</title>" in text_of(page)
    process.kill()
    until_gone(page)


def test_a_console_that_nobody_opens_has_imported_nothing(launched: Any) -> None:
    process, page = launched()
    (waiting,) = children(process)
    before = waiting.memory_full_info().uss
    text_of(page)
    assert waiting.memory_full_info().uss > before + 5_000_000


def test_a_port_that_was_asked_for_must_be_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Failed, match=f"cannot listen on 127.0.0.1:{port}"):
            attendant.listen(port)


def test_without_one_asked_for_the_next_free_port_is_taken(monkeypatch: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(attendant, "PORT", port)
        with attendant.listen(None) as found:
            assert found.getsockname()[1] > port


def test_where_all_of_them_are_taken_the_cluster_goes_without(
    monkeypatch: Any, capsys: Any
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(attendant, "PORT", port)
        monkeypatch.setattr(attendant, "PORTS_TRIED", 1)
        assert up.console_listener(None) is None
        told = f"there is no console: ports {port} to {port} are taken; see --console-port\n"
        assert capsys.readouterr().err == told


def test_where_its_packages_are_missing_the_cluster_goes_without(
    monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setattr(attendant, "missing_package", lambda: "starlette")
    assert up.console_listener(None) is None
    assert capsys.readouterr().err == (
        "there is no console, because starlette is not installed:"
        " `pip install 'cotidal[console]'`\n"
    )
