"""The pages about claims and rules name rules, stories and tests: all of them exist."""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = ROOT / "docs" / "claims.md"
RULES = ROOT / "docs" / "rules.md"
SCRIPTS = ROOT / "tests" / "scripts"

SPAN = re.compile(r"`([^`\n]+)`")
HEADING = re.compile(r"^### (\d+)\. (.+)$", re.M)
PART = re.compile(r"^- (rule|story|test): (.+?)(?=^- |^#|^$|\Z)", re.M | re.S)
TEST = re.compile(r"[\w/]+/test_\w+\.py::\w+|test_\w+\.py::\w+")


def named(kind: str) -> list[str]:
    """Everything that the claims name as a rule, a story or a test."""
    text = CLAIMS.read_text(encoding="utf-8")
    return sorted({s for k, part in PART.findall(text) if k == kind for s in SPAN.findall(part)})


@cache
def functions_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def assert_is_a_test(name: str) -> None:
    file, _, function = name.partition("::")
    path = ROOT / "tests" / file
    assert path.is_file(), name
    assert f"test_{function}" in functions_in(path), name


@pytest.mark.parametrize("name", named("rule"))
def test_every_rule_that_is_named_exists(name: str) -> None:
    module, parts = f"cotidal.{name}", []
    while True:
        try:
            found: object = importlib.import_module(module)
            break
        except ModuleNotFoundError:
            module, _, part = module.rpartition(".")
            assert module, name
            parts.insert(0, part)
    for part in parts:
        found = getattr(found, part)


@pytest.mark.parametrize("name", named("story"))
def test_every_story_that_is_named_exists(name: str) -> None:
    assert (SCRIPTS / f"{name}.script").is_file()


@pytest.mark.parametrize("name", named("test"))
def test_every_test_that_guards_a_claim_exists(name: str) -> None:
    assert_is_a_test(name)


@pytest.mark.parametrize("name", sorted(set(TEST.findall(RULES.read_text(encoding="utf-8")))))
def test_every_test_that_guards_a_rule_exists(name: str) -> None:
    assert_is_a_test(name)


def test_every_row_of_the_rules_names_a_test_or_says_that_there_is_none() -> None:
    rows = [row for row in RULES.read_text(encoding="utf-8").splitlines() if row.startswith("| ")]
    rules = [row for row in rows if not row.startswith(("| rule", "|---"))]
    assert len(rules) > 80
    for row in rules:
        assert TEST.search(row) or "not yet" in row, row


def test_every_claim_is_numbered_in_order_and_has_somebody_who_answers_for_it() -> None:
    text = CLAIMS.read_text(encoding="utf-8")
    numbers = [int(number) for number, _ in HEADING.findall(text)]
    assert numbers == list(range(1, len(numbers) + 1))
    for section in re.split(r"^### ", text, flags=re.M)[1:]:
        assert re.search(r"^- (rule|test|exactly): ", section, re.M), section


def test_every_story_there_is_stands_beside_a_claim_or_a_rule() -> None:
    stories = {f"{path.parent.name}/{path.stem}" for path in SCRIPTS.glob("*/*.script")}
    beside_rules = SPAN.findall(RULES.read_text(encoding="utf-8"))
    assert stories <= {*named("story"), *beside_rules}
