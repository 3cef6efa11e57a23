from __future__ import annotations

import pytest

from cotidal.client.addresses import Address, parse_bootstrap


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        ("a", [("a", 9092)]),
        ("a:1, b:2 ,", [("a", 1), ("b", 2)]),
        ("[::1]:7", [("::1", 7)]),
        ("[::1]", [("::1", 9092)]),
        ("::1", [("::1", 9092)]),
    ],
)
def test_a_bootstrap_list_reads_as_addresses(text: str, addresses: list[tuple[str, int]]) -> None:
    assert list(parse_bootstrap(text)) == [Address(*address) for address in addresses]


@pytest.mark.parametrize("text", ["", " , ", "a:", "a:x", "a:0", "a:65536", ":1", "[::1", "[::1]7"])
def test_what_is_no_address_is_refused_with_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        parse_bootstrap(text)


def test_an_address_prints_as_it_is_written() -> None:
    assert [str(Address("a", 1)), str(Address("::1", 1))] == ["a:1", "[::1]:1"]
