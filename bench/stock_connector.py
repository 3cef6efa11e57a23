"""Spark's own connector for Kafka, ``format("kafka")``: its jars, fetched through Maven.

Spark 4.3 has none to be had: the newest is of 4.2, and Spark 4.3 runs it. Its part for delegation
tokens is not to be had in that version; nothing of it is used without Kerberos, and the one of 4.0
has the classes that are asked for. The rest of what the connector needs is in Spark. So the jars
are taken one by one, not as Maven would resolve them.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

from bench import apache_kafka

VERSION: Final = "4.2.0"
_JARS: Final = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", VERSION),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)


@functools.cache
def jars() -> tuple[Path, ...]:
    """Fetched the first time; KafkaMissing where they cannot be had."""
    libs = apache_kafka.home().with_name(f"spark-sql-kafka-{VERSION}")
    found = tuple(libs / f"{artifact}-{version}.jar" for _, artifact, version in _JARS)
    if not all(jar.exists() for jar in found):
        apache_kafka.fetch(libs, _JARS, alone=True)
    return found
