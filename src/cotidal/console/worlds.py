"""The worlds that a page can open where nothing but the simulator is there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cotidal.console.session import Opener
from cotidal.console.simulated import Simulated

WORLDS: Final[Mapping[str, Opener]] = {"simulator": Simulated.opened}
