r"""How ``consume`` prints a record: a format string, or one JSON object a line. Pure.

  %v value   %k key   %o offset   %p partition   %t topic   %T timestamp in ms   %h headers
  %% a per cent sign; \n \t \\ as usual

A null key or value prints as nothing in a format, as null in JSON. Bytes go out as they came in;
in JSON, bytes that are not UTF-8 are written in base64 under ``key_base64``, ``value_base64``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cotidal.client.consumer import Fetched

Piece = Callable[["Fetched"], bytes]

ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "\\": b"\\", "0": b"\0"}


def headers_text(record: Fetched) -> bytes:
    return b",".join(key.encode() + b"=" + (value or b"") for key, value in record.headers)


FIELDS: Final[dict[str, Piece]] = {
    "v": lambda record: record.value or b"",
    "k": lambda record: record.key or b"",
    "o": lambda record: b"%d" % record.offset,
    "p": lambda record: b"%d" % record.partition,
    "t": lambda record: record.topic.encode(),
    "T": lambda record: b"%d" % record.timestamp,
    "h": headers_text,
}


def compile_format(text: str) -> Callable[[Fetched], bytes]:
    """The format as a function of a record; ValueError names a directive that does not exist."""
    pieces: list[Piece] = []
    literal = b""
    at = 0
    while at < len(text):
        mark = text[at]
        if mark not in "%\\":
            literal += mark.encode()
            at += 1
            continue
        letter = text[at + 1 : at + 2]
        at += 2
        if mark == "%" and letter == "%":
            literal += b"%"
        elif mark == "%" and letter in FIELDS:
            if literal:
                pieces.append(_constant(literal))
                literal = b""
            pieces.append(FIELDS[letter])
        elif mark == "\\" and letter in ESCAPES:
            literal += ESCAPES[letter]
        else:
            known = " ".join("%" + name for name in FIELDS)
            raise ValueError(f"'{mark}{letter}' means nothing in a format; there are {known} %%")
    if literal:
        pieces.append(_constant(literal))
    parts = tuple(pieces)
    return lambda record: b"".join([piece(record) for piece in parts])


def json_line(record: Fetched) -> bytes:
    import json

    fields: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        **bytes_field("key", record.key),
        **bytes_field("value", record.value),
    }
    if record.headers:
        fields["headers"] = [
            {"name": name, **bytes_field("value", value)} for name, value in record.headers
        ]
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def bytes_field(name: str, value: bytes | None) -> dict[str, str | None]:
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        import base64

        return {f"{name}_base64": base64.b64encode(value).decode()}


def _constant(literal: bytes) -> Piece:
    return lambda _: literal
