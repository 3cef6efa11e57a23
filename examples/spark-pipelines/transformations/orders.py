"""A topic as a table, what customers have spent as a view of it, and large orders as a topic.

Brokers are those of COTIDAL_BOOTSTRAP. An order is a record whose key is the customer and whose
value is an amount; large ones are written to the topic large-orders, exactly once.
"""

from __future__ import annotations

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

BOOTSTRAP = os.environ.get("COTIDAL_BOOTSTRAP", "localhost:9092")
LARGE = 90

spark = SparkSession.active()


@dp.table
def orders() -> DataFrame:
    """Every order once."""
    records = (
        spark.readStream.format("cotidal")
        .option("kafka.bootstrap.servers", BOOTSTRAP)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    return records.select(
        f.col("key").cast("string").alias("customer"),
        f.col("value").cast("string").cast("long").alias("amount"),
        "timestamp",
    )


@dp.materialized_view
def spent() -> DataFrame:
    """One row for each customer."""
    by_customer = spark.read.table("orders").groupBy("customer")
    return by_customer.agg(f.count("*").alias("orders"), f.sum("amount").alias("spent"))


dp.create_sink(
    "large_orders",
    "cotidal",
    {"kafka.bootstrap.servers": BOOTSTRAP, "topic": "large-orders"},
)


@dp.append_flow(target="large_orders")
def large_orders_to_topic() -> DataFrame:
    found = spark.readStream.table("orders").where(f.col("amount") >= LARGE)
    return found.select(
        f.col("customer").alias("key"), f.col("amount").cast("string").alias("value")
    )
