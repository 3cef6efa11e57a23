"""Bytes of a record as text that a person can read. Pure.

  text   as UTF-8; what is not UTF-8 becomes a replacement character
  json   the same characters, laid out over lines: no number and no key is written anew
  hex    sixteen bytes a line, with their characters
  auto   text where it is UTF-8, else hex

Characters that would not be seen, or would turn the text around them, are written as escapes: what
is shown is what is there. A long one is cut, and says how long it is.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

from cotidal.limits import DESK_JSON_BYTES_MAX

FORMS: Final = ("auto", "text", "json", "hex")

_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0d\x0e-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
"""Controls but tab and line feed, zero-width characters, and those that change direction."""
_HEX_LINE: Final = 16


class Shown(NamedTuple):
    form: str
    """As which it is shown: text, json, hex, or null."""
    text: str
    is_cut: bool
    note: str = ""
    """Why it is not shown as was asked."""


def show(data: bytes | None, form: str, *, longest: int) -> Shown:
    """``longest``: bytes of the data that are looked at, where it is not JSON."""
    if data is None:
        return Shown("null", "", False)
    match form:
        case "hex":
            return _hex(data, longest)
        case "json":
            return _json(data, longest)
        case "text":
            return _text(data, longest)
        case _:
            return _text(data, longest) if is_text(data[:longest]) else _hex(data, longest)


def is_text(data: bytes) -> bool:
    """UTF-8, but for a character that the end cuts through, and free of NULs."""
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError as wrong:
        return wrong.reason == "unexpected end of data" and wrong.start > 0
    return True


def visible(text: str) -> str:
    return _HIDDEN.sub(lambda found: _escape(ord(found[0])), text)


def name_shown(name: str) -> str:
    """Of a header: bytes that are not UTF-8 stand in it as surrogates."""
    return visible(name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _text(data: bytes, longest: int) -> Shown:
    return Shown("text", visible(data[:longest].decode("utf-8", "replace")), len(data) > longest)


def _hex(data: bytes, longest: int) -> Shown:
    lines = []
    for at in range(0, min(len(data), longest), _HEX_LINE):
        line = data[at : min(at + _HEX_LINE, longest)]
        printable = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in line)
        lines.append(f"{at:06x}  {line.hex(' '):{3 * _HEX_LINE - 1}}  {printable}")
    return Shown("hex", "\n".join(lines), len(data) > longest)


def _json(data: bytes, longest: int) -> Shown:
    if len(data) > DESK_JSON_BYTES_MAX:
        shown = _text(data, longest)
        return shown._replace(note="too long to be laid out as JSON")
    try:
        text = data.decode()
        json.loads(text)
    except (ValueError, RecursionError):
        shown = show(data, "auto", longest=longest)
        return shown._replace(note="not JSON")
    laid_out = visible(_laid_out(text))
    return Shown("json", laid_out[:longest], len(laid_out) > longest)


def _laid_out(text: str) -> str:
    """Valid JSON over lines; every token stays as it was written."""
    out: list[str] = []
    depth = 0
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+', text, re.DOTALL)
    for at, token in enumerate(tokens):
        if token in "[{":
            depth += 1
            is_empty = tokens[at + 1] in "]}"
            out.append(token if is_empty else f"{token}\n{'  ' * depth}")
        elif token in "]}":
            depth -= 1
            is_empty = tokens[at - 1] in "[{"
            out.append(token if is_empty else f"\n{'  ' * depth}{token}")
        elif token == ",":
            out.append(f",\n{'  ' * depth}")
        else:
            out.append(": " if token == ":" else token)
    return "".join(out)
