"""The second table of Spark's queries: what a row costs, whatever else the machine does."""

from __future__ import annotations

import pytest

from bench.row import Sample, Standing

queries = pytest.importorskip("bench.spark_queries", reason="Spark is not here: make test has it")


def test_a_row_costs_the_cpu_of_its_session_and_not_the_time_that_it_waited() -> None:
    row = queries.QUERIES[0].row
    idle, busy = Sample(100_000.0, 1.0, 0.5), Sample(10_000.0, 0.1, 0.05)
    theirs = [idle._replace(client_cores=2.0), busy._replace(client_cores=0.2)]
    standing = Standing(row, {queries.THEIRS: theirs, queries.OURS: [idle, busy]})
    told = queries.cpu_text([standing]).splitlines()
    assert told[1:] == [f"{row.title:<36}stock on Kafka 20.00, cotidal 10.00 (2.00x)"]


def test_what_is_measured_in_milliseconds_has_no_rows() -> None:
    last = queries.QUERIES[-1].row
    assert last.unit == "ms"
    samples = [Sample(300.0, 0.5, 0.1)]
    told = queries.cpu_text([Standing(last, {queries.THEIRS: samples, queries.OURS: samples})])
    assert len(told.splitlines()) == 1
