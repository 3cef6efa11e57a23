"""The syntax of Java .properties files: text <-> names and values. Pure.

    # a comment            ! another
    name = value           name: value          name value
    long = one, \\
           two             a backslash at the end continues the line, leading blanks are dropped
    \\u0041, \\t, \\n, \\=, \\:  escapes in names and values

A later line wins over an earlier one with the same name, as in Java. Nothing here knows what a
name means: config.py does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class PropertiesError(ValueError):
    """A file that no Java program would read either. The message names the line."""


def parse_properties(text: str) -> dict[str, str]:
    return dict(_pairs(text))


def properties_text(values: Mapping[str, str]) -> str:
    """One ``name=value`` line each, escaped so that parse_properties gives the same back."""
    return "".join(f"{_escaped(n, True)}={_escaped(v, False)}\n" for n, v in values.items())


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for number, line in _logical_lines(text):
        split, after = _split(line)
        try:
            yield _unescaped(line[:split]), _unescaped(line[after:])
        except ValueError as wrong:
            raise PropertiesError(f"line {number}: {wrong}") from None


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined, without comments and empty ones, with line numbers."""
    held = ""
    begun = 0
    for number, natural in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        line = natural.lstrip(_BLANKS)
        if not begun:
            if not line or line[0] in "#!":
                continue
            begun = number
        if _ends_in_open_backslash(line):
            held += line[:-1]
            continue
        if held + line:
            yield begun, held + line
        held, begun = "", 0
    if held:
        yield begun, held


def _ends_in_open_backslash(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[int, int]:
    """Where the name ends and where the value begins."""
    end = len(line)
    at = 0
    while at < end and line[at] not in "=:" + _BLANKS:
        at += 2 if line[at] == "\\" else 1
    split = min(at, end)
    after = split
    while after < end and line[after] in _BLANKS:
        after += 1
    if after < end and line[after] in "=:":
        after += 1
        while after < end and line[after] in _BLANKS:
            after += 1
    return split, after


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\\" or at == len(text):
            out.append(char if char != "\\" else "")
            continue
        char = text[at]
        at += 1
        if char == "u":
            digits = text[at : at + 4]
            if len(digits) != 4 or not all(c in "0123456789abcdefABCDEF" for c in digits):
                raise ValueError(f"\\u is followed by '{digits}', not by four hexadecimal digits")
            out.append(chr(int(digits, 16)))
            at += 4
        else:
            out.append(_ESCAPES.get(char, char))
    return "".join(out)


def _escaped(text: str, is_name: bool) -> str:
    out: list[str] = []
    for place, char in enumerate(text):
        if char in "\t\n\r\f":
            out.append({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}[char])
        elif char == "\\" or (is_name and char in "=: #!") or (char == " " and place == 0):
            out.append("\\" + char)
        else:
            out.append(char)
    return "".join(out)
