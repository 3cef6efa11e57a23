"""A program: Spark's own connector and ours, each writing what both read, as batches and streams.

``python both_formats.py BOOTSTRAP PREFIX DIRECTORY JAR ...`` prints the rows that were read for
each (writer, reader, kind), as JSON. Topics are PREFIX and the name of the format that writes. A
process of its own: a JVM takes jars only when it starts.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from cotidal.spark import query_runs, session

FORMATS = ("kafka", "cotidal")
ROWS = 200


def read(reader: Any, form: str, bootstrap: str, topic: str) -> DataFrame:
    records = (
        reader.format(form)
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .option("kafka.isolation.level", "read_committed")
        .load()
    )
    columns = ("cast(key as string) as key", "cast(value as string) as value", "topic")
    first = "cast(headers[0].value as string) as header"
    return records.selectExpr(*columns, "partition", "timestampType", first)


def rows(found: DataFrame) -> list[list[Any]]:
    return sorted(list(row) for row in found.collect())


def main(bootstrap: str, prefix: str, directory: str, *jars: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session.spare_compiling()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(jars))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    told: list[Any] = []
    for writer in FORMATS:
        header = f"array(named_struct('key', 'by', 'value', cast('{writer}' as binary))) as headers"
        made = spark.range(ROWS, numPartitions=2).selectExpr(
            "cast(id as string) as key", "concat('value ', id) as value", header
        )
        topic = f"{prefix}{writer}"
        (
            made.write.format(writer)
            .mode("append")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", topic)
            .save()
        )
        for reader in FORMATS:
            told.append((writer, reader, "batch", rows(read(spark.read, reader, bootstrap, topic))))
            name = f"{writer}_{reader}"
            stream = (
                read(spark.readStream, reader, bootstrap, topic)
                .writeStream.format("parquet")
                .option("path", f"{directory}/{name}")
                .option("checkpointLocation", f"{directory}/{name}.checkpoint")
                .trigger(availableNow=True)
            )
            query_runs.to_the_end(stream)
            told.append((writer, reader, "stream", rows(spark.read.parquet(f"{directory}/{name}"))))
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
