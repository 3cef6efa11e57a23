"""What each customer has spent so far, from one topic into another, exactly once.

    python examples/exactly_once.py --orders orders --totals totals --checkpoint totals.checkpoint

An order is a record whose key is the customer and whose value is an amount. Every micro-batch
writes one record for each customer: how many orders by now, and their sum. Kill it whenever you
like and start it again with the same checkpoint: no batch of totals is written twice, and none is
left out. Read them with isolation.level=read_committed.
"""

from __future__ import annotations

import argparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f


def totals(orders: DataFrame) -> DataFrame:
    """One row for each customer that has ordered, as it stands now."""
    spent = orders.select(
        f.col("key").cast("string").alias("customer"),
        f.col("value").cast("string").cast("long").alias("amount"),
    )
    by_customer = spent.groupBy("customer").agg(
        f.count("*").alias("orders"), f.sum("amount").alias("spent")
    )
    return by_customer.select(
        f.col("customer").alias("key"), f.to_json(f.struct("orders", "spent")).alias("value")
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--bootstrap", default="localhost:9092")
    parser.add_argument("--orders", default="orders")
    parser.add_argument("--totals", default="totals")
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--per-batch", default="1000", help="orders in one micro-batch at most")
    parser.add_argument("--once", action="store_true", help="end when all that is there is read")
    asked = parser.parse_args()
    spark = (
        SparkSession.builder.appName("exactly-once")
        .master(asked.master)
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    orders = (
        spark.readStream.format("cotidal")
        .option("kafka.bootstrap.servers", asked.bootstrap)
        .option("subscribe", asked.orders)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", asked.per_batch)
        .load()
    )
    writer = (
        totals(orders)
        .writeStream.format("cotidal")
        .outputMode("complete")
        .option("kafka.bootstrap.servers", asked.bootstrap)
        .option("topic", asked.totals)
        .option("checkpointLocation", asked.checkpoint)
    )
    if asked.once:
        writer = writer.trigger(availableNow=True)
    writer.start().awaitTermination()


if __name__ == "__main__":
    main()
