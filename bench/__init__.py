"""Measurements: cotidal beside Apache Kafka, in one run on one machine (``python -m bench``).

Loopback only, bounded in time and disk, and it ends only processes that it has started.
"""
