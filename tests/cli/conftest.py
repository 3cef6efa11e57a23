"""The command line, run as users run it, against a node that ``cotidal up`` started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from cotidal.testing.cluster import Cluster
from cotidal.testing.ports import quiet_port

PYTHON = [sys.executable, "-W", "error", "-m", "cotidal"]


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


def environment(bootstrap: str | None = None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COTIDAL_")}
    return kept | ({"COTIDAL_BOOTSTRAP": bootstrap} if bootstrap else {})


def launch(*arguments: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PYTHON, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment() | variables,
    )


def launch_up(*arguments: str, **variables: str) -> tuple[subprocess.Popen[str], str]:
    """``cotidal up`` as a process, and the line in which it says that it is up. One broker and no
    console, unless a test says otherwise."""
    if "--brokers" not in arguments:
        arguments = ("--brokers", "1", *arguments)
    if "--console-port" not in arguments:
        arguments = ("--no-console", *arguments)
    process = launch("up", *arguments, **variables)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("cotidal is up"):
            return process, line
    process.wait(10)
    assert process.stderr is not None
    raise AssertionError(f"cotidal up ended with {process.returncode}: {process.stderr.read()}")


def stop(process: subprocess.Popen[str]) -> Outcome:
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    return Outcome(process.returncode, out, err)


Cotidal = Callable[..., Outcome]


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap address of a node that lives as long as the test run."""
    port = quiet_port()
    data = tmp_path_factory.mktemp("up") / "data"
    process, _ = launch_up("--data", str(data), "--port", str(port))
    yield f"localhost:{port}"
    assert stop(process).status == 0


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    """Three brokers, shared by the tests of a module."""
    with Cluster(3) as cluster:
        yield cluster


@pytest.fixture
def cotidal(request: pytest.FixtureRequest) -> Cotidal:
    """``cotidal("topic", "list")`` against the node; ``stdin=`` and ``bootstrap=`` where needed."""

    def run(*arguments: str, stdin: str | bytes = "", bootstrap: str | None = None) -> Outcome:
        address = bootstrap if bootstrap is not None else request.getfixturevalue("node")
        done = subprocess.run(
            [*PYTHON, *arguments],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            timeout=60,
            env=environment(address),
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def offline(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cotidal:
    """The command line in this process, for what needs no cluster."""
    from cotidal.cli.main import run

    monkeypatch.delenv("COTIDAL_BOOTSTRAP", raising=False)

    def call(*arguments: str) -> Outcome:
        status = run(arguments)
        out, err = capsys.readouterr()
        return Outcome(status, out, err)

    return call


@pytest.fixture
def topic(request: pytest.FixtureRequest, cotidal: Cotidal) -> str:
    """A topic of this test's own, with one partition."""
    name = "t-" + "".join(c if c.isalnum() else "-" for c in request.node.name)[:200]
    assert cotidal("topic", "create", name, "-p", "1").status == 0
    return name


@pytest.fixture
def start_up() -> Callable[..., tuple[subprocess.Popen[str], str]]:
    return launch_up


@pytest.fixture
def start_process() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """``start_process("broker", ...)``: a command line that runs until the test is over."""
    running: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        running.append(launch(*arguments))
        return running[-1]

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
            process.communicate(timeout=20)


@pytest.fixture
def port() -> int:
    """Free, and so are the next few: a cluster listens on them."""
    return quiet_port(3)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"
