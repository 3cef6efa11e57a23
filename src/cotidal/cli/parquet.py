"""Rows as a Parquet file, for whoever computes further; needs PyArrow, which Spark brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cotidal.cli.verb import Failed


def write_parquet(rows: Sequence[Mapping[str, Any]], path: str) -> None:
    try:
        import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]
        import pyarrow.parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise Failed(
            "--parquet needs pyarrow, which is not installed: `pip install pyarrow`, or take the"
            " rows as JSON"
        ) from None
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)
