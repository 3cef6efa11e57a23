"""A promise that was broken, by its name in invariants.py."""

from __future__ import annotations

from cotidal import invariants


class Violation(Exception):
    """``promise``: the text of a constant in invariants.py."""

    def __init__(self, promise: str, sentence: str) -> None:
        super().__init__(sentence)
        self.promise = promise
        self.sentence = sentence

    @property
    def name(self) -> str:
        return promise_name(self.promise)


def promise_name(promise: str) -> str:
    """The constant's name; FAULT for a text that is no promise's."""
    for name, text in vars(invariants).items():
        if name.isupper() and text == promise:
            return name
    return "FAULT"
