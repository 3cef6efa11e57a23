"""Where Spark looks: it imports every top-level module named ``pyspark_*`` for a DefaultSource.

Without the extra this module can still be imported, because one that cannot takes every other
Python data source with it; the sentence comes when the format is used.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import DataSource

DefaultSource: type[DataSource]

try:
    from cotidal.spark.source import CotidalSource

    DefaultSource = CotidalSource
except ModuleNotFoundError as missing:
    LACKING = missing.name

    class Unavailable(DataSource):
        """Says what lacks."""

        @classmethod
        def name(cls) -> str:
            return "cotidal"

        def __init__(self, options: Any) -> None:
            raise ModuleNotFoundError(
                f"format('cotidal') needs {LACKING}: install cotidal[spark] where the driver and "
                "the executors run"
            )

    DefaultSource = Unavailable
