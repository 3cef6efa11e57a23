"""Regular expressions that members subscribe by, and some that nobody can."""

from __future__ import annotations

from typing import Final

PATTERNS: Final = (
    "orders|events",
    "(?:orders|events)",
    r"\Aorders\z|^events$",
    "(?i)ORDERS|Events",
    "(?P<which>o[q-s]ders|[[:alpha:]]ven[s-u]s)",
    "[oe][rv](?:d|e)(?:e|n)(?<letter>r|t)s",
    r"\Qorders\E|\Qevents\E?",
    r"o\w{4}s|e\w{2,4}?s",
    r"ord(?i:ER)s{1}|ev[^\d-]nts+",
    r"\x6frders|e+v+e*nt?s{1,}",
    r"[[:^digit:]]rders\Q\E|[\w]vents|\S\t|(?i-s:a{,2})",
)
"""Each matches the workload's topics, and no other."""

WRONG_PATTERNS: Final = (
    ")", "(", "(a", "a**", "*a", "[z-a]", "[a-", "[[:none:]]", r"\1", r"\xzz", "\\", "(?=a)",
    "(?P<1>a)", "(?i", "a{2000}", "a{3,2}", "(a{100}){100}", "(" * 60, "a" * 1_001, r"\p{L}",
)  # fmt: skip
