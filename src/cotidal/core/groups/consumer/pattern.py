"""Regular expressions over names of topics, in time that grows with the name alone. Pure.

Members say what they subscribe to with an expression in RE2's syntax, which Kafka hands to RE2J.
Whoever sends one must not be able to stop a coordinator, so nothing here ever goes back: an
expression becomes a set of places, and one character moves all of them at once. What has been
worked out for a set of places and a character is remembered.

Names consist of 65 characters; of a class only those matter. The whole name must match.

Taken: characters, ``.``, ``[...]`` with ranges and ``[:alpha:]`` and the like, ``\\d \\w \\s`` and
their opposites, ``\\Q...\\E``, groups (``(?:...)``, named or not, with flags ``i m s U``), ``|``,
``* + ? {m,n}`` greedy or not, ``^ $ \\A \\z``.
Not there: ``\\b \\B``, ``\\p{...}`` (names are ASCII), ``\\C``; back-references and look-around, as
in RE2.
"""

from __future__ import annotations

from string import ascii_letters, digits, hexdigits
from typing import Final, NamedTuple, TypeAlias

from cotidal.limits import (
    PATTERN_DEPTH_MAX,
    PATTERN_LENGTH_MAX,
    PATTERN_MOVES_MAX,
    PATTERN_PLACES_MAX,
    PATTERN_REPEAT_MAX,
)

ALPHABET: Final = ascii_letters + digits + "._-"
_WORD: Final = frozenset(ascii_letters + digits + "_")
_DIGIT: Final = frozenset(digits)
_ALL: Final = frozenset(ALPHABET)
_NONE: Final[frozenset[str]] = frozenset()
_CLASSES: Final = {
    "d": _DIGIT,
    "D": _ALL - _DIGIT,
    "w": _WORD,
    "W": _ALL - _WORD,
    "s": _NONE,
    "S": _ALL,
}
_POSIX: Final = {
    "alnum": frozenset(ascii_letters + digits),
    "alpha": frozenset(ascii_letters),
    "ascii": _ALL,
    "blank": _NONE,
    "cntrl": _NONE,
    "digit": _DIGIT,
    "graph": _ALL,
    "lower": frozenset(each for each in ascii_letters if each.islower()),
    "print": _ALL,
    "punct": frozenset("._-"),
    "space": _NONE,
    "upper": frozenset(each for each in ascii_letters if each.isupper()),
    "word": _WORD,
    "xdigit": frozenset(hexdigits),
}
_FLAGS: Final = "imsU"


class BadPattern(ValueError):
    """What is wrong with an expression, in one sentence."""


# What an expression says


class Chars(NamedTuple):
    of: frozenset[str]


class Edge(NamedTuple):
    """The beginning of the name, or its end."""

    start: bool


class Cat(NamedTuple):
    parts: tuple[object, ...]


class Alt(NamedTuple):
    ways: tuple[object, ...]


class Repeat(NamedTuple):
    part: object
    least: int
    most: int | None
    """None: any number."""


class _Parser:
    __slots__ = ("_at", "_depth", "_text", "_whatever_case")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._whatever_case = False

    def parse(self) -> object:
        node = self._ways()
        if self._at < len(self._text):
            raise BadPattern("there is a ')' too many")
        return node

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _take(self) -> str:
        if self._at >= len(self._text):
            raise BadPattern("it ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _ways(self) -> object:
        ways = [self._sequence()]
        while self._peek("|"):
            self._at += 1
            ways.append(self._sequence())
        return ways[0] if len(ways) == 1 else Alt(tuple(ways))

    def _sequence(self) -> object:
        parts: list[object] = []
        while self._at < len(self._text) and not self._peek("|") and not self._peek(")"):
            if self._peek("\\Q"):
                *rest, last = self._quoted()
                parts.extend((*rest, self._repeated(last)))
            else:
                parts.append(self._repeated(self._one()))
        return Cat(tuple(parts))

    def _quoted(self) -> list[object]:
        end = self._text.find("\\E", self._at)
        inside = self._text[self._at + 2 : end if end >= 0 else len(self._text)]
        self._at = end + 2 if end >= 0 else len(self._text)
        return [self._chars(frozenset(each)) for each in inside] or [Cat(())]

    def _repeated(self, node: object) -> object:
        """The node, and how often; ``a**`` is an error, ``a*?`` is only a matter of taste."""
        bounds = self._bounds()
        if bounds is None:
            return node
        if self._peek("?"):
            self._at += 1
        if self._bounds() is not None:
            raise BadPattern("a repetition cannot be repeated; put it in a group")
        return Repeat(node, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._peek(sign):
                self._at += 1
                return bounds
        if not self._peek("{"):
            return None
        inside, closed, _ = self._text[self._at + 1 :].partition("}")
        low, comma, high = inside.partition(",")
        if not closed or not low.isdecimal() or not (high.isdecimal() or high == ""):
            return None  # a brace is a character then
        least = int(low)
        most = (int(high) if high else None) if comma else least
        if max(least, most or 0) > PATTERN_REPEAT_MAX or (most is not None and most < least):
            raise BadPattern(f"a repetition goes from a number to one of {PATTERN_REPEAT_MAX}")
        self._at += len(inside) + 2
        return least, most

    def _one(self) -> object:
        char = self._take()
        match char:
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "\\":
                return self._escaped()
            case ".":
                return Chars(_ALL)
            case "^":
                return Edge(start=True)
            case "$":
                return Edge(start=False)
            case "*" | "+" | "?":
                raise BadPattern(f"there is nothing before '{char}' to repeat")
            case _:
                return self._chars(frozenset(char))

    def _chars(self, of: frozenset[str]) -> Chars:
        if self._whatever_case:
            of = frozenset(each for char in of for each in (char.lower(), char.upper()))
        return Chars(of & _ALL)

    def _group(self) -> object:
        self._depth += 1
        if self._depth > PATTERN_DEPTH_MAX:
            raise BadPattern(f"groups are nested more than {PATTERN_DEPTH_MAX} deep")
        outside = self._whatever_case
        if self._peek("?"):
            self._at += 1
            if self._flags():
                self._depth -= 1
                return Cat(())  # (?i) holds for the rest of the group around it
        node = self._ways()
        if not self._peek(")"):
            raise BadPattern("a ')' is missing")
        self._at += 1
        self._depth -= 1
        self._whatever_case = outside
        return node

    def _flags(self) -> bool:
        """After ``(?``: a name or flags; true if the group ends with them."""
        named = "P<" if self._peek("P<") else "<"
        if self._peek(named):
            name, closed, _ = self._text[self._at + len(named) :].partition(">")
            if not closed or not name.isidentifier():
                raise BadPattern("groups are (...), (?:...) and (?P<name>...)")
            self._at += len(named) + len(name) + 1
            return False
        on = True
        while True:
            char = self._take()
            if char in ":)":
                return char == ")"
            if char == "-" and on:
                on = False
            elif char == "i":
                self._whatever_case = on
            elif char not in _FLAGS:
                raise BadPattern(
                    "groups are (...), (?:...) and (?P<name>...); nothing looks around"
                )

    def _escaped(self) -> object:
        char = self._take()
        if char in "Az":
            return Edge(start=char == "A")
        return self._chars(self._escape(char))

    def _escape(self, char: str) -> frozenset[str]:
        if char in _CLASSES:
            return _CLASSES[char]
        if char == "x":
            code = self._take() + self._take()
            if not all(each in hexdigits for each in code):
                raise BadPattern("\\x takes two hexadecimal digits")
            return frozenset(chr(int(code, 16)))
        if char in "tnrfva":
            return _NONE
        if char.isalnum() or not char.isascii():
            raise BadPattern(f"'\\{char}' is not understood")
        return frozenset(char)

    def _class(self) -> object:
        negated = self._peek("^")
        if negated:
            self._at += 1
        found: set[str] = set()
        first = True
        while first or not self._peek("]"):
            first = False
            if self._peek("[:"):
                found.update(self._posix())
                continue
            low = self._class_char()
            if len(low) == 1 and self._peek("-") and not self._peek("-]"):
                self._at += 1
                (bottom,) = low
                top = self._class_char()
                if len(top) != 1 or bottom > next(iter(top)):
                    raise BadPattern("a range in [...] goes from a character to a later one")
                found.update(chr(each) for each in range(ord(bottom), ord(next(iter(top))) + 1))
            else:
                found.update(low)
        self._at += 1
        inside = self._chars(frozenset(found)).of
        return Chars(_ALL - inside if negated else inside)

    def _class_char(self) -> frozenset[str]:
        char = self._take()
        return self._escape(self._take()) if char == "\\" else frozenset(char)

    def _posix(self) -> frozenset[str]:
        name, closed, _ = self._text[self._at + 2 :].partition(":]")
        opposite = name.startswith("^")
        known = _POSIX.get(name.removeprefix("^"))
        if not closed or known is None:
            raise BadPattern("there is no such class of characters")
        self._at += len(name) + 4
        return _ALL - known if opposite else known


# Places, and how one moves between them


class _Step(NamedTuple):
    """One of these characters leads on."""

    of: frozenset[str]
    to: int


class _Fork(NamedTuple):
    to: tuple[int, ...]


class _Gate(NamedTuple):
    """Leads on at the beginning of a name, or at its end."""

    start: bool
    to: int


_Place: TypeAlias = "_Step | _Fork | _Gate"
_Places: TypeAlias = "tuple[int, ...]"
_END: Final = 0


class Pattern:
    """A compiled expression."""

    __slots__ = ("_begin", "_known", "_moves", "_places", "_sets", "text")

    def __init__(self, text: str) -> None:
        """Raises BadPattern."""
        if len(text) > PATTERN_LENGTH_MAX:
            raise BadPattern(f"it is longer than {PATTERN_LENGTH_MAX} characters")
        self.text = text
        self._places: list[_Place] = [_Fork(())]
        self._moves: dict[tuple[int, str], int] = {}
        """From one set of places to the next, by their numbers."""
        self._sets: list[_Places] = []
        self._known: dict[_Places, int] = {}
        first = self._lay(_Parser(text).parse(), _END)
        self._begin = self._reach((first,), start=True, end=False)

    def matches(self, name: str) -> bool:
        if not name:
            return _END in self._reach(self._begin, start=True, end=True)
        if len(self._moves) >= PATTERN_MOVES_MAX:
            self._moves.clear()
            self._sets.clear()
            self._known.clear()
        at = self._number(self._begin)
        for char in name:
            known = self._moves.get((at, char))
            at = self._move(at, char) if known is None else known
            if not self._sets[at]:
                return False
        return _END in self._reach(self._sets[at], start=False, end=True)

    def _number(self, places: _Places) -> int:
        found = self._known.get(places)
        if found is None:
            found = self._known[places] = len(self._sets)
            self._sets.append(places)
        return found

    def _add(self, place: _Place) -> int:
        if len(self._places) >= PATTERN_PLACES_MAX:
            raise BadPattern(f"with its repetitions it has more than {PATTERN_PLACES_MAX} places")
        self._places.append(place)
        return len(self._places) - 1

    def _lay(self, node: object, to: int) -> int:
        """Lay out what a node says, so that it leads to a place; where it begins."""
        match node:
            case Chars(of):
                return self._add(_Step(of, to))
            case Edge(start):
                return self._add(_Gate(start, to))
            case Cat(parts):
                for part in reversed(parts):
                    to = self._lay(part, to)
                return to
            case Alt(ways):
                return self._add(_Fork(tuple(self._lay(way, to) for way in ways)))
            case Repeat(part, least, most):
                if most is None:
                    again = self._add(_Fork(()))
                    self._places[again] = _Fork((self._lay(part, again), to))
                    to = again
                else:
                    leave = to
                    for _ in range(most - least):
                        to = self._add(_Fork((self._lay(part, to), leave)))
                for _ in range(least):
                    to = self._lay(part, to)
                return to
            case _:
                raise AssertionError(node)

    def _reach(self, places: _Places, *, start: bool, end: bool) -> _Places:
        """All places that can be come to from these without a character."""
        found: dict[int, None] = {}
        todo = list(places)
        while todo:
            at = todo.pop()
            if at in found:
                continue
            found[at] = None
            place = self._places[at]
            if isinstance(place, _Fork):
                todo.extend(place.to)
            elif isinstance(place, _Gate) and (start if place.start else end):
                todo.append(place.to)
        return tuple(sorted(found))

    def _move(self, at: int, char: str) -> int:
        steps = tuple(
            place.to
            for place in (self._places[each] for each in self._sets[at])
            if isinstance(place, _Step) and char in place.of
        )
        reached = self._number(self._reach(steps, start=False, end=False))
        self._moves[at, char] = reached
        return reached
