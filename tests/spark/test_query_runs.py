"""Queries that a busy machine keeps from starting are begun again; others are not."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from cotidal.spark.failures import Unusable
from cotidal.spark.query_runs import STARTS_MAX, TOO_SLOW, to_the_end


class Query:
    """A writer and its query: fails so often, with these words."""

    def __init__(self, words: str, times: int) -> None:
        self._words = words
        self._left = times
        self.starts = 0

    def start(self) -> Query:
        self.starts += 1
        return self

    def awaitTermination(self) -> None:
        if self._left:
            self._left -= 1
            raise StreamingQueryException(f"[STREAM_FAILED] {self._words}. SQLSTATE: XXKST")


def run(words: str, times: int) -> int:
    query: Any = Query(words, times)
    to_the_end(query)
    return int(query.starts)


def test_a_query_whose_python_came_too_late_is_begun_again() -> None:
    assert run(TOO_SLOW, 0) == 1
    assert run(TOO_SLOW, STARTS_MAX - 1) == STARTS_MAX
    with pytest.raises(Unusable, match="too busy: Python did not start within the ten seconds"):
        run(TOO_SLOW, STARTS_MAX)


def test_a_query_that_failed_by_itself_is_not() -> None:
    query: Any = Query("the disk is full", 1)
    with pytest.raises(StreamingQueryException, match="the disk is full"):
        to_the_end(query)
    assert query.starts == 1
