from __future__ import annotations

import json
from typing import Any

import pytest

plain = pytest.mark.plain

SMALL = (
    *("sim", "explore", "replicas", "--bound", "records=1", "--bound", "crashes=0"),
    *("--bound", "fences=0", "--bound", "late=0", "--bound", "decisions=1"),
)


@plain
def test_a_world_is_told_with_its_bounds_and_its_size(offline: Any) -> None:
    outcome = offline(*SMALL)
    assert (outcome.status, outcome.err) == (0, "")
    bounds, size = outcome.out.splitlines()
    assert bounds.startswith("replicas: min-isr=2 records=1 crashes=0")
    assert size.startswith("  complete: ")
    assert " states, " in size


@plain
def test_sleep_sets_see_as_many_states(offline: Any) -> None:
    plain = json.loads(offline(*SMALL, "--json").out)
    reduced = json.loads(offline(*SMALL, "--sleep-sets", "--json").out)
    assert (reduced["states"], reduced["complete"]) == (plain["states"], True)


@plain
def test_json_has_one_object_a_world(offline: Any) -> None:
    told = json.loads(offline(*SMALL, "--json").out)
    assert (told["world"], told["complete"], told["broken"]) == ("replicas", True, [])
    assert told["states"] > 100
    assert told["bounds"]["decisions"] == 1


@plain
def test_a_search_that_a_limit_ends_is_not_called_complete(offline: Any) -> None:
    outcome = offline("sim", "explore", "replicas", "--states", "500")
    assert outcome.status == 0
    assert "ended by 500 states" in outcome.out


@plain
def test_a_plant_that_is_found_is_a_success_with_a_story(offline: Any) -> None:
    outcome = offline("sim", "explore", "--plant", "acks-early")
    assert outcome.status == 0
    assert "ACKED_IS_KEPT" in outcome.out
    assert "broken after 2 moves" in outcome.out
    assert "a producer writes at broker 1, acks=all" in outcome.out


@plain
def test_a_plant_that_is_not_found_is_a_failure(offline: Any) -> None:
    outcome = offline(
        "sim", "explore", "--plant", "acks-early", "--bound", "records=0", "--states", "9"
    )
    assert outcome.status == 1
    assert "was not found" in outcome.err


def test_what_there_is_to_choose_from_is_listed(offline: Any) -> None:
    out = offline("sim", "explore", "--list").out
    assert "quorum" in out
    assert "vote-not-written" in out


@plain
def test_a_wrong_name_is_answered_with_those_there_are(offline: Any) -> None:
    for arguments, said in (
        (("replica",), "there are replicas"),
        (("quorum", "--bound", "shrinks=1"), "it has epochs, "),
        (("quorum", "--bound", "epochs"), "NAME=N"),
        (("--plant", "weed"), "there are acks-early"),
        (("quorum", "--plant", "acks-early"), "grows in the world 'replicas'"),
    ):
        outcome = offline("sim", "explore", *arguments)
        assert outcome.status == 2
        assert said in outcome.err


def test_the_compiled_build_says_that_it_cannot(
    offline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotidal.cli.tally.build", lambda: "compiled")
    outcome = offline(*SMALL)
    assert (outcome.status, outcome.out) == (1, "")
    assert "runs on the plain build" in outcome.err
