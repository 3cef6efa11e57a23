"""`cotidal sim lab`: a table for people, objects for programs, a picture, stories."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cotidal.cli.heat_map import shade
from cotidal.cli.lab import _draw_grid, command
from cotidal.cli.verb import Failed
from cotidal.sim.lab.comparison import Row
from cotidal.sim.lab.configuration import COMPARED, Configuration
from cotidal.sim.lab.measures import Measures
from cotidal.sim.plans import PLANS

QUICK = ("--plan", "calm", "--seeds", "1", "--jobs", "1")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(PLANS, "calm", PLANS["calm"]._replace(seconds=1))
    monkeypatch.chdir(tmp_path)


def said(*arguments: str) -> str:
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def refused(*arguments: str) -> Failed:
    done = CliRunner().invoke(command, arguments)
    assert isinstance(done.exception, Failed), done.output
    return done.exception


def test_a_configuration_is_measured_and_told_by_what_it_is() -> None:
    told = said(*QUICK, "--acks", "1", "--unclean", "--no-elr", "--flush-messages", "5")
    name = "acks=1, min ISR 2 of 3, unclean, no ELR, flush messages 5"
    assert f"{name}  0 of 1, 0.0 % [0.0..79.3]" in told
    assert "may lose  kept all" in told


def test_rows_for_programs_and_a_picture_are_written(tmp_path: Path) -> None:
    told = json.loads(said(*QUICK, "--json", "--rows", "runs.jsonl", "--plot", "lab.svg"))
    assert [(row["runs"], row["lost"], row["keeps"]) for row in told] == [(1, 0, True)]
    runs = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert [(run["seed"], run["plan"], run["lost"]) for run in runs] == [(1, "calm", 0)]
    assert (tmp_path / "lab.svg").read_text().startswith("<svg ")


def test_a_loss_is_told_as_a_script_that_can_be_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cotidal.cli.sim import command as sim

    monkeypatch.setitem(PLANS, "ebb", PLANS["ebb"]._replace(seconds=14))
    told = ("--stories", "told", "--tries", "6")
    said("--acks", "1", "--seeds", "4", "--jobs", "1", *told)
    (script,) = (tmp_path / "told").iterdir()
    assert script.name == "acks-1-min-ISR-2-of-3.script"
    assert script.read_text().startswith("# acks=1, min ISR 2 of 3: ")
    replayed = CliRunner().invoke(sim, ("replay", str(script)))
    assert isinstance(replayed.exception, Failed)
    assert str(replayed.exception).endswith("loses acknowledged records, which its settings allow")


def test_more_replicas_than_nodes_are_refused() -> None:
    assert refused(*QUICK, "--replicas", "4").status == 2


def test_parquet_without_pyarrow_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "--parquet needs pyarrow" in str(refused(*QUICK, "--parquet", "runs.parquet"))


def test_every_run_is_a_row_of_a_parquet_file(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is nobody's dependency here")
    said(*QUICK, "--rows", "runs.jsonl", "--parquet", "runs.parquet")
    lines = (tmp_path / "runs.jsonl").read_text().splitlines()
    assert parquet.read_table(tmp_path / "runs.parquet").to_pylist() == [
        json.loads(line) for line in lines
    ]


def test_models_are_put_beside_the_real_thing() -> None:
    told = json.loads(said("models", "--partitions", "3", "--seeds", "1", "--json"))
    assert {"log": "majority of 3", "copies": 3, "lost_max": 1}.items() <= told["logs"][0].items()
    assert told["failovers"][0]["zookeeper_model_ms"] == 18_000 + 6 + 5
    assert told["failovers"][0]["kraft_killed_ms"] < 500


def test_a_grid_is_drawn_of_configurations_against_plans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [COMPARED[0], COMPARED[-1]]
    monkeypatch.setattr("cotidal.sim.lab.configuration.COMPARED", few)
    monkeypatch.setitem(PLANS, "mild", PLANS["mild"]._replace(seconds=1))
    told = said("grid", "--plan", "calm", "--plan", "mild", "--seeds", "1", "--jobs", "1")
    assert told.startswith("4 runs: availability.svg, loss.svg")
    loss = (tmp_path / "grid" / "loss.svg").read_text()
    assert all(each.name.split(",")[0] in loss for each in few)
    assert loss.count("<title>") == 4
    assert all(f">{plan}</text>" in loss for plan in ("calm", "mild"))


def test_a_square_of_the_grid_tells_the_share_of_its_own_runs(tmp_path: Path) -> None:
    def row(acks: int, *lost: int) -> Row:
        silent = -1 if acks == 0 else 6_000
        runs = [
            Measures(at, "", 100, each, 0, 24_000, silent, 1, 2) for at, each in enumerate(lost)
        ]
        return Row(Configuration(f"acks {acks}", acks=acks), tuple(runs), ())

    found = {"ebb": [row(0, 5, 0), row(-1, 0, 0)], "harsh": [row(0, 3, 9)]}
    _draw_grid(found, 2, str(tmp_path))

    def told(picture: str) -> list[tuple[str, str]]:
        """Colours, and the first word of what is told, line by line."""
        text = (tmp_path / picture).read_text()
        squares = re.findall(r'fill="(#\w+)" stroke="#\w+"><title>(\S+) %', text)
        labels = re.findall(r'text-anchor="middle">(\S+)</text>', text)
        assert labels == [share for _, share in squares]
        return squares

    assert told("loss.svg") == [
        (shade(0), "0.0"), (shade(0.35), "50.0"), (shade(0.7), "100.0"),
    ]  # fmt: skip
    assert told("availability.svg") == [(shade(0.175), "25.0")], "with acks=0 nobody knows"
