"""The catalogue of planted bugs does not rot: each still has its place, and is still Python."""

from __future__ import annotations

import ast

import pytest

from cotidal.sim.plans import PLANS
from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import PRODUCT, Mutant, plant


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_has_its_place_and_compiles(name: str) -> None:
    mutant = MUTANTS[name]
    text = (PRODUCT / mutant.file).read_text(encoding="utf-8")
    patched = mutant.patched(text)
    compile(patched, mutant.file, "exec")
    assert ast.dump(ast.parse(patched)) != ast.dump(ast.parse(text)), "it changes nothing"


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_looked_for_with_plans_that_exist(name: str) -> None:
    assert MUTANTS[name].plans
    assert set(MUTANTS[name].plans) <= set(PLANS)


def test_a_text_that_is_not_there_once_is_told() -> None:
    mutant = Mutant("m", "", "f", before="a", after="b", plans=("calm",))
    for text in ("", "a a"):
        with pytest.raises(LookupError, match="m: its text is"):
            mutant.patched(text)


def test_a_bug_is_planted_in_a_copy(tmp_path_factory: pytest.TempPathFactory) -> None:
    tree = tmp_path_factory.mktemp("tree")
    mutant = next(iter(MUTANTS.values()))
    before = (PRODUCT / mutant.file).read_text(encoding="utf-8")
    plant(tree, mutant)
    assert (tree / "cotidal" / mutant.file).read_text(encoding="utf-8") == mutant.patched(before)
    assert (PRODUCT / mutant.file).read_text(encoding="utf-8") == before
