"""Expressions over names of topics: RE2's syntax, and no way to stop a coordinator."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotidal.core.groups.consumer.pattern import ALPHABET, BadPattern, Pattern
from cotidal.limits import PATTERN_LENGTH_MAX, PATTERN_PLACES_MAX


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("orders", ["orders"], ["order", "orders2", "xorders"]),
        ("orders.*", ["orders", "orders-eu"], ["my-orders"]),
        (r"orders\.eu", ["orders.eu"], ["orders-eu"]),
        ("a|b|", ["a", "b", ""], ["ab"]),
        ("(a|bc)+d?", ["a", "bca", "abcd"], ["d", "b"]),
        ("[a-c_]{2,3}", ["ab", "c_a"], ["a", "abcd", "ad"]),
        ("x{0}y{2}", ["yy"], ["xyy", "y"]),
        ("[^a-z]+", ["A9_"], ["a", "Ab"]),
        ("[]a]b[a-]", ["ab-", "aba"], ["b-"]),
        (r"\d+\w\D", ["12_a", "1aa"], ["a", "111"]),
        ("(?i)Ab[c]", ["aBC", "abc"], ["ab"]),
        ("(?i:a)b", ["Ab"], ["AB"]),
        ("(?P<name>a)(?:b)(?<other>c)", ["abc"], ["ac"]),
        ("^a$|^b", ["a", "b"], ["ab"]),
        (r"\Aa\z", ["a"], ["aa"]),
        ("a^b", [], ["ab"]),
        (r"\Q\Ea\Q.", ["a."], ["aa", "a"]),
        (r"\Qa.b\E+", ["a.b", "a.bbb"], ["axb", "a.ba.b"]),
        ("[[:upper:][:digit:]]+", ["A1"], ["a"]),
        ("[[:^alpha:]]", ["1", "."], ["a"]),
        (r"\x61", ["a"], ["x61"]),
        ("a*?b+?c??", ["aab", "bc"], ["a"]),
        ("(a*)*b", ["aaab", "b"], ["a" * 200]),
        ("a{,2}", [], ["a", "aa"]),
        ("", [""], ["a"]),
    ],
)
def test_what_an_expression_matches(text, yes, no):
    pattern = Pattern(text)
    assert [name for name in yes if not pattern.matches(name)] == []
    assert [name for name in no if pattern.matches(name)] == []


@pytest.mark.parametrize(
    "text",
    [
        "(", ")", "a)", "(a", "[a", "*", "a|*b", "a**", "a{2}{3}", "a{3,2}", "a{1001}", "[b-a]",
        r"\1", r"\b", r"\pL", r"\xg0", "a\\", "(?=a)", "(?!a)", "(?<=a)", "(?x)", "(?P<1>a)",
        "[[:no:]]", "(" * 51 + ")" * 51, "a" * (PATTERN_LENGTH_MAX + 1), "(a{1000}){1000}",
    ],
)  # fmt: skip
def test_what_cannot_be_understood_is_refused_with_a_reason(text):
    with pytest.raises(BadPattern, match=r"."):
        Pattern(text)


def test_the_costliest_expressions_take_steps_and_not_for_ever():
    # Engines that go back take 2 to the power of 200 steps for the first.
    for text in ("(a|a)*" * 20 + "b", "(a*)*(a*)*(a*)*c", "(.?){100}a{200}"):
        pattern = Pattern(text)
        assert not pattern.matches("a" * 199 + "-")
        assert len(pattern._places) <= PATTERN_PLACES_MAX


_ATOMS = st.sampled_from(
    ["a", "b", "-", ".", "[ab]", "[^a]", r"\d", r"\.", "c?", "b*", "a+", "a{1,2}"]
)


@st.composite
def _expressions(draw: st.DrawFn) -> str:
    parts = draw(st.lists(_ATOMS, min_size=1, max_size=5))
    text = "".join(parts)
    if draw(st.booleans()):
        text = f"(?:{text}|{draw(_ATOMS)})" + draw(st.sampled_from(["", "*", "+", "?", "{2}"]))
    return text


@settings(max_examples=200, deadline=None)
@given(_expressions(), st.text(alphabet="abc-.1", max_size=8))
def test_it_agrees_with_another_engine(text, name):
    assert Pattern(text).matches(name) == (re.fullmatch(text, name) is not None)


def test_every_character_that_a_name_may_have_is_known():
    assert Pattern(".*").matches(ALPHABET)
