"""Bytes as text that a person can read."""

import pytest

from cotidal.console.desk.decoding import name_shown, show
from cotidal.limits import DESK_JSON_BYTES_MAX


def test_text_that_is_utf8_is_shown_as_it_is():
    assert show("héllo <script>".encode(), "auto", longest=100)[:3] == (
        "text",
        "héllo <script>",
        False,
    )


def test_bytes_that_are_no_text_are_shown_in_hex_with_their_characters():
    shown = show(b"\xff\xfeAB", "auto", longest=100)
    assert shown.form == "hex"
    assert shown.text.split("  ")[1] == "ff fe 41 42"
    assert shown.text.endswith("..AB")


def test_a_character_that_the_cut_goes_through_does_not_make_it_hex():
    assert show("aé".encode() * 100, "auto", longest=5).form == "text"


def test_a_null_is_not_an_empty_value():
    assert show(None, "auto", longest=9).form == "null"
    assert show(b"", "auto", longest=9)[:3] == ("text", "", False)


@pytest.mark.parametrize("hidden", ["\u202e", "\u200b", "\x1b", "\r", "\ufeff", "\u2028"])
def test_what_would_hide_or_turn_the_text_is_shown_as_an_escape(hidden):
    shown = show(f"a{hidden}b".encode(), "text", longest=100).text
    assert hidden not in shown
    assert shown.startswith("a\\")


def test_lines_and_tabs_stay():
    assert show(b"a\n\tb", "text", longest=100).text == "a\n\tb"


def test_json_is_laid_out_and_nothing_in_it_is_written_anew():
    data = b'{"price":1.10,"big":12345678901234567890,"a":[],"b":[1,{"c":"x, {y}"}],"a":2}'
    shown = show(data, "json", longest=1_000)
    assert shown.text == (
        '{\n  "price": 1.10,\n  "big": 12345678901234567890,\n  "a": [],\n  "b": [\n    1,\n'
        '    {\n      "c": "x, {y}"\n    }\n  ],\n  "a": 2\n}'
    )


@pytest.mark.parametrize("data", [b"{", b"\xff", b"[" * 100_000 + b"]" * 100_000, b"1" * 5_000])
def test_what_is_not_json_says_so_and_is_shown_all_the_same(data):
    shown = show(data, "json", longest=100)
    assert shown.note == "not JSON"
    assert shown.text


def test_json_that_is_too_long_is_not_parsed():
    shown = show(b"[" + b"1," * DESK_JSON_BYTES_MAX + b"1]", "json", longest=50)
    assert (shown.note, len(shown.text)) == ("too long to be laid out as JSON", 50)


def test_hex_is_cut_at_the_byte():
    shown = show(bytes(range(40)), "hex", longest=20)
    assert shown.is_cut
    assert shown.text.splitlines()[1].split("  ")[1] == "10 11 12 13"


def test_the_name_of_a_header_may_hold_anything():
    assert name_shown(b"\xffid".decode("utf-8", "surrogateescape")) == "\ufffdid"
