"""cotidal as its users start it: ``cotidal up``, one process tree."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from bench.server import Recipe, free_ports

PORTS_PER_BROKER: Final = 3
"""Room above ``--port`` for what `up` opens besides the client listeners (controllers, console)."""


def recipe(brokers: int, directory: Path) -> Recipe:
    """A new cluster with its data under ``directory``, not started."""
    ports = free_ports(brokers * PORTS_PER_BROKER)
    command = (
        *(sys.executable, "-m", "cotidal", "up"),
        *("--brokers", str(brokers)),
        *("--data", str(directory / "data")),
        *("--port", str(ports[0])),
    )
    return Recipe("cotidal", (command,), ports[:brokers], directory)
