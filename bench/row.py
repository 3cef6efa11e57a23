"""The rows of the table: what is measured, which way is better, and what cotidal aims at. Pure.

A goal is a ratio, cotidal to Kafka in the same run on the same machine: absolute numbers of two
machines, or of two days, say little about each other.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple


class Better(Enum):
    HIGHER = "higher"
    LOWER = "lower"


class Row(NamedTuple):
    key: str
    title: str
    unit: str
    better: Better
    goal: float | None = None
    """Of the ratio: at least this where higher is better, at most this where lower is."""
    most: float | None = None
    """A goal of its own, where one was set: at most this much, whatever Kafka does."""


class Sample(NamedTuple):
    """One measurement of one row."""

    value: float
    client_cores: float | None = None
    """CPU time of the client per second of wall time; None where there is no client."""
    server_cores: float | None = None


class Standing(NamedTuple):
    """A row with what was measured: medians, and whether the goal is met."""

    row: Row
    samples: Mapping[str, Sequence[Sample]]
    """By contestant. A contestant without samples is absent."""

    def median(self, contestant: str) -> float | None:
        samples = self.samples.get(contestant)
        return statistics.median(sample.value for sample in samples) if samples else None

    def cores(self, contestant: str) -> tuple[float, float] | None:
        """Medians of what client and server used."""
        pairs = [
            (sample.client_cores, sample.server_cores)
            for sample in self.samples.get(contestant, ())
            if sample.client_cores is not None and sample.server_cores is not None
        ]
        if not pairs:
            return None
        clients, servers = zip(*pairs, strict=True)
        return statistics.median(clients), statistics.median(servers)

    def ratio(self, contestant: str, to: str) -> float | None:
        ours, theirs = self.median(contestant), self.median(to)
        return ours / theirs if ours is not None and theirs else None

    def is_met(self, contestant: str, to: str) -> bool | None:
        """None where there is no goal or nothing to compare."""
        if self.row.most is not None:
            reached = self.median(contestant)
            return None if reached is None else reached <= self.row.most
        ratio = self.ratio(contestant, to)
        if ratio is None or self.row.goal is None:
            return None
        return (
            ratio >= self.row.goal if self.row.better is Better.HIGHER else ratio <= self.row.goal
        )


START: Final = Row("start_seconds", "start to first Metadata", "s", Better.LOWER, 0.1)
IDLE_RESIDENT: Final = Row("idle_resident_mb", "resident memory, idle", "MB", Better.LOWER, 0.1)
IDLE_PSS: Final = Row("idle_pss_mb", "proportional memory, idle", "MB", Better.LOWER)
LOADED_RESIDENT: Final = Row(
    "loaded_resident_mb", "resident memory, after load", "MB", Better.LOWER, 0.1
)
LOADED_PSS: Final = Row("loaded_pss_mb", "proportional memory, after load", "MB", Better.LOWER)
IDLE_CPU: Final = Row("idle_cpu_percent", "CPU when idle", "% of a core", Better.LOWER, 0.2)

REBALANCE: Final = Row(
    "rebalance_seconds", "group of 50: one leaves, all are assigned", "s", Better.LOWER, most=1.5
)
COMMIT: Final = Row("commit_p99", "group of 50: commit, p99", "ms", Better.LOWER, most=10)
TRANSACTIONS: Final = Row(
    "transactions_per_s", "transactions of 100 records and an offset", "1/s", Better.HIGHER, 1.5
)
LOADING: Final = Row(
    "loading_seconds", "100,000 committed offsets after a restart", "s", Better.LOWER, most=2
)
LOADING_CPU: Final = Row("loading_cpu_seconds", "the same, CPU of the servers", "s", Better.LOWER)
APPLICATIONS: Final = (REBALANCE, COMMIT, TRANSACTIONS, LOADING, LOADING_CPU)

FAILOVER: Final = Row(
    "failover_seconds", "kill -9 of a leader to the next write", "s", Better.LOWER, 0.1
)
"""Only of clusters (CLUSTER_BROKERS_MIN): one node alone does not fail over."""
CLUSTER_BROKERS_MIN: Final = 3

CLUSTER_GOALS: Final = {
    LOADED_RESIDENT.key: 0.15,
    IDLE_CPU.key: 0.25,
    "drain_1k": 1.5,
    "p50_all": 0.4,
    "rd_p50_all": 0.4,
}
"""What is aimed at otherwise with three brokers and more."""


class Client(Enum):
    FRANZ_GO = "franz-go"
    """Compiled, batched and raw: shows what the server can do."""
    LIBRDKAFKA = "librdkafka"
    """As a Python program has it."""


class Load(NamedTuple):
    """One run of a client, and the rows that its result fills."""

    verb: str
    acks: str
    size_bytes: int
    partitions: int
    rows: tuple[tuple[Row, str], ...]
    """Row, and the field of the generator's answer that is its value."""
    reads: bool = False
    """Whether the load reads back the topic that the load before it has written."""
    client: Client = Client.FRANZ_GO


FRANZ_GO_LOADS: Final = (
    Load(
        *("produce", "1", 1024, 6),
        ((Row("produce_1k_1", "produce 1 KB, acks=1", "MB/s", Better.HIGHER, 1.5), "mb_per_s"),),
    ),
    Load(
        *("produce", "all", 1024, 6),
        (
            (
                Row("produce_1k_all", "produce 1 KB, acks=all", "MB/s", Better.HIGHER, 1.5),
                "mb_per_s",
            ),
        ),
    ),
    Load(
        *("consume", "all", 1024, 6),
        ((Row("consume_1k", "consume 1 KB", "MB/s", Better.HIGHER, 1.5), "mb_per_s"),),
        reads=True,
    ),
    Load(
        *("drain", "all", 1024, 6),
        ((Row("drain_1k", "fetch 1 KB, records not decoded", "MB/s", Better.HIGHER), "mb_per_s"),),
        reads=True,
    ),
    Load(
        *("produce", "all", 100, 6),
        (
            (
                Row("produce_100", "produce 100 B, acks=all", "records/s", Better.HIGHER, 1.0),
                "records_per_s",
            ),
        ),
    ),
    Load(
        *("latency", "1", 100, 1),
        (
            (Row("p50_1", "one 100 B in flight, acks=1, p50", "us", Better.LOWER, 0.3), "p50_us"),
            (Row("p99_1", "one 100 B in flight, acks=1, p99", "us", Better.LOWER, 0.3), "p99_us"),
        ),
    ),
    Load(
        *("latency", "all", 100, 1),
        (
            (
                Row("p50_all", "one 100 B in flight, acks=all, p50", "us", Better.LOWER, 0.3),
                "p50_us",
            ),
            (
                Row("p99_all", "one 100 B in flight, acks=all, p99", "us", Better.LOWER, 0.3),
                "p99_us",
            ),
        ),
    ),
    Load(
        *("pipelined", "all", 100, 1),
        (
            (
                Row(
                    *("unbatched", "unbatched 100 B, acks=all, 100 in flight", "requests/s"),
                    *(Better.HIGHER, 10.0),
                ),
                "requests_per_s",
            ),
        ),
    ),
)


def chains(loads: Sequence[Load]) -> list[list[Load]]:
    """Each load that writes, with those after it that read back what it has written."""
    found: list[list[Load]] = []
    for load in loads:
        if load.reads:
            found[-1].append(load)
        else:
            found.append([load])
    return found


def _through_librdkafka(load: Load) -> Load:
    rows = tuple(
        (row._replace(key=f"rd_{row.key}", title=f"librdkafka: {row.title}"), field)
        for row, field in load.rows
    )
    return load._replace(rows=rows, client=Client.LIBRDKAFKA)


LIBRDKAFKA_LOADS: Final = tuple(
    _through_librdkafka(load) for load in FRANZ_GO_LOADS if load.verb != "drain"
)
LOADS: Final = FRANZ_GO_LOADS + LIBRDKAFKA_LOADS


class Cost(NamedTuple):
    """A row that is the difference of two others, repetition by repetition."""

    row: Row
    more: str
    less: str


COSTS: Final = tuple(
    Cost(
        Row(
            f"{prefix}cost_{q}", f"{title}what acks=all costs over acks=1, {q}", "us", Better.LOWER
        ),
        f"{prefix}{q}_all",
        f"{prefix}{q}_1",
    )
    for prefix, title in (("", ""), ("rd_", "librdkafka: "))
    for q in ("p50", "p99")
)

ROWS: Final = (
    START,
    IDLE_RESIDENT,
    IDLE_PSS,
    LOADED_RESIDENT,
    LOADED_PSS,
    IDLE_CPU,
    FAILOVER,
    *APPLICATIONS,
    *(row for load in LOADS for row, _ in load.rows),
)


def standings(
    samples: Mapping[Row, Mapping[str, Sequence[Sample]]], brokers: int
) -> tuple[Standing, ...]:
    """Every row with what was measured, and with the goal of a cluster of this size."""
    measured = {row.key: samples.get(row, {}) for row in ROWS}
    rows = [Standing(_aimed(row, brokers), measured[row.key]) for row in ROWS]
    costs = [Standing(cost.row, _differences(cost, measured)) for cost in COSTS]
    return tuple(rows + costs)


def _aimed(row: Row, brokers: int) -> Row:
    is_cluster = brokers >= CLUSTER_BROKERS_MIN
    return row._replace(goal=CLUSTER_GOALS.get(row.key, row.goal)) if is_cluster else row


def _differences(
    cost: Cost, measured: Mapping[str, Mapping[str, Sequence[Sample]]]
) -> dict[str, list[Sample]]:
    more, less = measured[cost.more], measured[cost.less]
    return {
        name: [
            Sample(high.value - low.value) for high, low in zip(more[name], less[name], strict=True)
        ]
        for name in more
    }
