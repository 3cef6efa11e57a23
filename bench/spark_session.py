"""A Spark session as a process of its own that does queries when told to, and times them.

``python -m bench.spark_session FORMAT [JAR ...]``: a line of JSON in, a line of JSON out. FORMAT is
``kafka`` (Spark's own connector, from the jars) or ``cotidal``. A query has a ``verb``:

  read       a whole topic to `noop`
  count      a whole topic, counted
  available  a whole topic as a stream, availableNow, to `noop`
  write      so many rows of so many bytes into a topic
  follow     what comes into a topic for so many seconds: how long its micro-batches take

The answer has ``rows``, ``seconds`` and ``cpu_seconds`` (of this process, its JVM and its Python
workers); of ``follow`` it has ``batches_ms``, how long each took.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from typing import Any, Final

import psutil
from pyspark.sql import DataFrame, SparkSession

from bench.usage import cpu_seconds

CORES: Final = 2
TASKS: Final = 6
"""Of a write: as many as the topics have partitions."""
UNMEASURED: Final = 2
"""Micro-batches at the beginning of a stream."""


class Session:
    def __init__(self, form: str, jars: list[str]) -> None:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        builder = (
            SparkSession.builder.master(f"local[{CORES}]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.streaming.numRecentProgressUpdates", "10000")
        )
        if jars:
            builder = builder.config("spark.jars", ",".join(jars))
        self._spark = builder.getOrCreate()
        self._spark.sparkContext.setLogLevel("OFF")
        self._form = form

    def do(self, asked: dict[str, Any]) -> dict[str, Any]:
        cpu, begun = self._cpu_seconds(), time.monotonic()
        answer = self._query(asked)
        return answer | {
            "seconds": time.monotonic() - begun,
            "cpu_seconds": self._cpu_seconds() - cpu,
        }

    def _query(self, asked: dict[str, Any]) -> dict[str, Any]:
        match asked["verb"]:
            case "read":
                self._table(asked).write.format("noop").mode("overwrite").save()
                return {"rows": asked["rows"]}
            case "count":
                return {"rows": self._table(asked).count()}
            case "available":
                return {"rows": self._available(asked)}
            case "write":
                self._write(asked)
                return {"rows": asked["rows"]}
            case "follow":
                return self._follow(asked)
        raise ValueError(f"no such query: {asked}")

    def _table(self, asked: dict[str, Any]) -> DataFrame:
        return self._source(self._spark.read, asked).load()

    def _source(self, reader: Any, asked: dict[str, Any]) -> Any:
        return (
            reader.format(self._form)
            .option("kafka.bootstrap.servers", asked["bootstrap"])
            .option("subscribe", asked["topic"])
            .option("startingOffsets", asked.get("from", "earliest"))
        )

    def _stream(self, asked: dict[str, Any], checkpoint: str) -> Any:
        rows = self._source(self._spark.readStream, asked).load()
        return rows.writeStream.format("noop").option("checkpointLocation", checkpoint)

    def _available(self, asked: dict[str, Any]) -> int:
        with tempfile.TemporaryDirectory() as checkpoint:
            query = self._stream(asked, checkpoint).trigger(availableNow=True).start()
            query.awaitTermination()
            return sum(each["numInputRows"] for each in query.recentProgress)

    def _write(self, asked: dict[str, Any]) -> None:
        rows = self._spark.range(asked["rows"], numPartitions=TASKS).selectExpr(
            "cast(cast(id as string) as binary) as key",
            f"cast(rpad(cast(id as string), {asked['size']}, 'x') as binary) as value",
        )
        writer = (
            rows.write.format(self._form)
            .mode("append")
            .option("kafka.bootstrap.servers", asked["bootstrap"])
            .option("topic", asked["topic"])
        )
        if self._form == "cotidal":
            writer = writer.option("delivery", asked["delivery"])
        writer.save()

    def _follow(self, asked: dict[str, Any]) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as checkpoint:
            query = self._stream(asked | {"from": "latest"}, checkpoint).start()
            query.awaitTermination(asked["seconds"])
            query.stop()
            told = [each for each in query.recentProgress if each["numInputRows"]][UNMEASURED:]
        return {
            "rows": sum(each["numInputRows"] for each in told),
            "batches_ms": [each["durationMs"]["triggerExecution"] for each in told],
        }

    def _cpu_seconds(self) -> float:
        """A worker that has ended counts with whoever waited for it."""
        mine = psutil.Process()
        family = [mine, *mine.children(recursive=True)]
        ended = sum(
            each.cpu_times().children_user + each.cpu_times().children_system for each in family
        )
        return cpu_seconds(each.pid for each in family) + ended


def main() -> int:
    tell = os.fdopen(os.dup(1), "w")  # what Spark prints must not get between the answers
    os.dup2(2, 1)
    session = Session(sys.argv[1], sys.argv[2:])
    print(json.dumps({"ready": True}), file=tell, flush=True)
    for line in sys.stdin:
        print(json.dumps(session.do(json.loads(line))), file=tell, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
