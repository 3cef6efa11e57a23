"""The arithmetic of the table: medians, ratios, goals."""

from __future__ import annotations

import pytest

from bench.row import LOADS, ROWS, START, Better, Row, Sample, Standing, chains, standings
from bench.table import as_json, as_text

FASTER = Row("speed", "speed of a thing", "MB/s", Better.HIGHER, 1.5)
LIGHTER = Row("weight", "weight of a thing", "MB", Better.LOWER, 0.1)


def standing(row: Row, ours: list[float], theirs: list[float]) -> Standing:
    return Standing(
        row,
        {
            "cotidal": [Sample(value, 0.25, 1.0) for value in ours],
            "Kafka": [Sample(value, 0.5, 2.0) for value in theirs],
        },
    )


def test_ratio_is_of_medians_so_that_one_bad_sample_does_not_count() -> None:
    measured = standing(FASTER, [300, 310, 1], [100, 9999, 90])
    assert measured.ratio("cotidal", "Kafka") == 3.0


@pytest.mark.parametrize(
    ("row", "ours", "theirs", "met"),
    [
        (FASTER, 150, 100, True),
        (FASTER, 149, 100, False),
        (LIGHTER, 10, 100, True),
        (LIGHTER, 11, 100, False),
        (FASTER._replace(goal=None), 1, 100, None),
        (LIGHTER._replace(goal=None, most=10), 10, 1, True),
        (LIGHTER._replace(goal=None, most=10), 11, 100, False),
    ],
)
def test_goal_is_met_on_its_own_side(row: Row, ours: float, theirs: float, met: bool) -> None:
    assert standing(row, [ours], [theirs]).is_met("cotidal", "Kafka") is met


def test_contestant_that_did_not_run_has_no_number_and_meets_nothing() -> None:
    alone = Standing(FASTER, {"cotidal": [Sample(5)]})
    assert alone.ratio("cotidal", "Kafka") is None
    assert alone.is_met("cotidal", "Kafka") is None
    assert "| speed of a thing | MB/s |" in as_text([alone], "cotidal", "Kafka")


def test_table_shows_both_medians_ratio_goal_and_cores() -> None:
    text = as_text([standing(LIGHTER, [50], [400])], "cotidal", "Kafka")
    cells = [cell.strip() for cell in text.splitlines()[-1].strip("|").split("|")]
    assert cells == [
        *("weight of a thing", "MB", "400", "50.0", "0.125x", "<= 0.1x", "missed"),
        *("0.50+2.00", "0.25+1.00"),
    ]
    assert len({len(line) for line in text.splitlines()}) == 1


def test_json_keeps_every_sample() -> None:
    (row,) = as_json([standing(FASTER, [1, 2, 3], [1])], "cotidal", "Kafka")
    assert [sample["value"] for sample in row["contestants"]["cotidal"]["samples"]] == [1, 2, 3]
    assert row["ratio"] == 2.0
    assert row["met"] is True


def test_rows_have_keys_of_their_own() -> None:
    assert len({row.key for row in ROWS}) == len(ROWS)


def test_cluster_of_three_has_goals_of_its_own() -> None:
    alone, three = (
        {each.row.key: each.row.goal for each in standings({}, brokers)} for brokers in (1, 3)
    )
    assert (alone["p50_all"], three["p50_all"]) == (0.3, 0.4)
    assert alone[START.key] == three[START.key]


def test_cost_of_acks_all_is_taken_repetition_by_repetition() -> None:
    rows = {row.key: row for row in ROWS}
    measured = {
        rows["p50_all"]: {"cotidal": [Sample(30), Sample(500), Sample(31)]},
        rows["p50_1"]: {"cotidal": [Sample(10), Sample(470), Sample(12)]},
    }
    cost = {each.row.key: each for each in standings(measured, 3)}["cost_p50"]
    assert [sample.value for sample in cost.samples["cotidal"]] == [20, 30, 19]


def test_what_is_read_back_is_read_by_who_has_just_written_it() -> None:
    found = chains(LOADS)
    assert [load for chain in found for load in chain] == list(LOADS)
    assert not any(chain[0].reads for chain in found)
    assert all(load.reads for chain in found for load in chain[1:])
    assert max(map(len, found)) > 1
