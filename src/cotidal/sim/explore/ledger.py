"""What is true of a world and what has gone wrong in it, by numbers. Pure."""

from __future__ import annotations

from collections.abc import Callable
from traceback import extract_tb
from typing import Generic, TypeVar

from cotidal.sim.explore.freezing import Table
from cotidal.sim.violation import Violation

TruthT = TypeVar("TruthT")
HeardT = TypeVar("HeardT")


class Ledger(Generic[TruthT, HeardT]):
    """``after``: the truth once something was heard; raises Violation if the two contradict."""

    def __init__(
        self, truth: TruthT, nothing: HeardT, after: Callable[[TruthT, HeardT], TruthT]
    ) -> None:
        self.truths: Table[TruthT] = Table(truth)
        self.heard: Table[HeardT] = Table(nothing)
        self._after = after
        self._faults: Table[tuple[str, str]] = Table(("", ""))
        self._learned: dict[tuple[int, int], tuple[int, int]] = {}

    def learned(self, truth: int, heard: int) -> tuple[int, int]:
        """The truth after it, and the fault that it is; 0 for none."""
        key = (truth, heard)
        known = self._learned.get(key)
        if known is None:
            try:
                after = self._after(self.truths.values[truth], self.heard.values[heard])
                known = (self.truths.number(after), 0)
            except Violation as wrong:
                known = (truth, self.fault(wrong))
            self._learned[key] = known
        return known

    def fault(self, wrong: AssertionError | Violation) -> int:
        """A machine's own assertion names a promise, or else is told by its line."""
        if isinstance(wrong, Violation):
            return self._faults.number((wrong.promise, wrong.sentence))
        where = extract_tb(wrong.__traceback__)[-1]
        sentence = f"an assertion fails in {where.name}: {str(wrong) or where.line}"
        return self._faults.number((str(wrong), sentence))

    def violation(self, fault: int) -> Violation:
        return Violation(*self._faults.values[fault])
