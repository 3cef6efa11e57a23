"""``host:port`` lists, as users write them. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

DEFAULT_PORT: Final = 9092


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bootstrap(text: str) -> tuple[Address, ...]:
    """``a:9092,b,[::1]:9093`` -> addresses; ValueError with one sentence for anything else.

    >>> parse_bootstrap("a:1, [::1]")
    (Address(host='a', port=1), Address(host='::1', port=9092))
    """
    addresses = tuple(_parse_address(part.strip()) for part in text.split(",") if part.strip())
    if not addresses:
        raise ValueError("the list of brokers is empty; write it as host:port,host:port")
    return addresses


def _parse_address(text: str) -> Address:
    if text.startswith("["):
        host, bracket, port = text[1:].partition("]")
        sound = bool(bracket) and (not port or port.startswith(":"))
        port = port[1:]
    elif text.count(":") > 1:
        host, port, sound = text, "", True
    else:
        host, colon, port = text.partition(":")
        sound = bool(port) or not colon
    if not sound or not host or (port and not (port.isdecimal() and 0 < int(port) < 65536)):
        raise ValueError(f"'{text}' is not an address of a broker; write it as host:port")
    return Address(host, int(port) if port else DEFAULT_PORT)
