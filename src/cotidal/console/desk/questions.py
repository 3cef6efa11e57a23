"""Every question, by the name under which a page asks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cotidal.console.desk.leaders import elect
from cotidal.console.desk.question import Question

QUESTIONS: Final[Mapping[str, Question]] = {
    "elect": Question(elect, changes=True),
}
