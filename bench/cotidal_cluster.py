"""cotidal as its users start it: ``cotidal up``, one process tree."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.server import Recipe, free_ports

PORTS_PER_BROKER: Final = 3
"""Room above ``--port`` for what `up` opens besides the client listeners (controllers, console)."""


def recipe(
    brokers: int,
    directory: Path,
    python: str = sys.executable,
    overrides: Sequence[str] = (),
    controllers: int = 0,
) -> Recipe:
    """A new cluster with its data under ``directory``, not started. ``overrides``: NAME=VALUE;
    ``controllers``: so many beside the brokers."""
    _compile_bytecode(python)
    ports = free_ports(brokers * PORTS_PER_BROKER)
    command = (
        *(python, "-m", "cotidal", "up"),
        *("--brokers", str(brokers)),
        *(("--controllers", str(controllers)) if controllers else ()),
        *("--data", str(directory / "data")),
        *("--port", str(ports[0])),
        "--no-console",
        *(part for override in overrides for part in ("--override", override)),
    )
    homes = [home(directory, node) for node in range(1, brokers + 1)]
    if brokers == 1:
        homes = [directory / "data"]
    pid_files = tuple(home / "pid" for home in homes)
    return Recipe("cotidal", (command,), ports[:brokers], directory, pid_files)


def home(directory: Path, node: int) -> Path:
    """Where one of several nodes has its data."""
    return directory / f"data/node-{node}"


def _compile_bytecode(python: str) -> None:
    """As an installer does: a start is measured, not the compilation of the sources."""
    program = (
        "import compileall, cotidal; "
        "all(compileall.compile_dir(path, quiet=2) for path in cotidal.__path__)"
    )
    subprocess.run([python, "-c", program], check=True)
