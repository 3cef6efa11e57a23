"""Java's properties syntax, as its class documentation describes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotidal.broker.properties import PropertiesError, parse_properties, properties_text


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=b", {"a": "b"}),
        ("  a = b ", {"a": "b "}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a", {"a": ""}),
        ("a==b", {"a": "=b"}),
        ("# a=b\n! c=d\n\n   \ne=f", {"e": "f"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a = one, \\\n    two", {"a": "one, two"}),
        ("a = one\\\\\nb=2", {"a": "one\\", "b": "2"}),
        ("a = one \\\n# not a comment", {"a": "one # not a comment"}),
        ("a\\=b\\:c=d", {"a=b:c": "d"}),
        ("a\\ b = c", {"a b": "c"}),
        ("a=\\u0041\\t\\n\\x", {"a": "A\t\nx"}),
        ("log.dirs=/a/b=c:d", {"log.dirs": "/a/b=c:d"}),
        ("a=b\\", {"a": "b"}),
        ("", {}),
    ],
)
def test_a_file_is_read_as_java_reads_it(text: str, values: dict[str, str]) -> None:
    assert parse_properties(text) == values


def test_a_broken_unicode_escape_is_told_with_its_line() -> None:
    with pytest.raises(PropertiesError, match=r"line 3: \\u is followed by '00G1'"):
        parse_properties("a=1\n\nb=\\u00G1x\n")


_TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(_TEXTS.filter(bool), _TEXTS, max_size=4))
def test_what_is_written_is_read_back(values: dict[str, str]) -> None:
    assert parse_properties(properties_text(values)) == values


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_with_a_line(text: str) -> None:
    refusal = None
    try:
        parse_properties(text)
    except PropertiesError as wrong:
        refusal = str(wrong)
    assert refusal is None or refusal.startswith("line ")
