"""The streaming queries of the pipelines, run to their end.

Spark gives the Python process of a source ten seconds to start, which cannot be set; a machine that
is busy needs longer now and then. A query that failed so is begun again: it goes on where its
checkpoint says.
"""

from __future__ import annotations

from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Final

from cotidal.spark.failures import Unusable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.streaming.readwriter import DataStreamWriter

STARTS_MAX: Final = 5
TOO_SLOW: Final = "Python worker failed to connect back"


def to_the_end(writer: DataStreamWriter) -> None:
    """Start it, and wait until it has ended."""
    from pyspark.errors import StreamingQueryException

    for _ in range(STARTS_MAX):
        try:
            writer.start().awaitTermination()
            return
        except StreamingQueryException as failed:
            if TOO_SLOW not in str(failed):
                raise
    raise Unusable(
        "the driver's machine is too busy: Python did not start within the ten seconds that Spark"
        f" gives it, {STARTS_MAX} times in a row"
    )


def together(writers: Sequence[DataStreamWriter]) -> None:
    """Each ``to_the_end``, at the same time; the first that fails ends this."""
    pool = ThreadPoolExecutor(len(writers))
    try:
        done, _ = wait(
            [pool.submit(to_the_end, writer) for writer in writers], return_when=FIRST_EXCEPTION
        )
        for each in done:
            each.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
