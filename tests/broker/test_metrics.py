"""Every metric of the table has a value, in a form that Prometheus's own parser reads."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from asking import node_with
from cotidal import limits
from cotidal.broker.counters import LATENCY_BOUNDS_S, Counters, Histogram
from cotidal.broker.exposition import render
from cotidal.broker.metric_table import METRICS, Kind, Metric
from cotidal.broker.metrics import Gauges, NodeMetrics
from cotidal.client.admin import create_topic
from cotidal.client.cluster import Cluster as Client
from cotidal.client.producer import Producer
from cotidal.testing.cluster import Cluster
from cotidal.testing.ports import quiet_port
from cotidal.values import Millis
from lone_node import LoneNode

Samples = dict[tuple[str, tuple[str, ...]], float]


def parsed(text: bytes) -> Samples:
    """(name, label values) -> value."""
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def of(
    node: LoneNode, *, partitions_max: int = 1_000, counters: Counters | None = None
) -> NodeMetrics:
    return NodeMetrics(
        node_id=1,
        version="9",
        counters=counters or Counters(),
        tally=node.node.tally,
        gauges=lambda: Gauges(0, {}, 0, 0, 0, 0, {}),
        vitals=lambda: node.node.vitals(Millis(node.now), partitions_max=partitions_max),
        api_name=str,
    )


def test_every_metric_of_the_table_has_samples_and_no_other_has() -> None:
    assert of(LoneNode().start()).read().keys() == METRICS.keys()


def test_what_is_written_is_what_prometheus_reads() -> None:
    histogram = Histogram()
    histogram.add(0.0002)
    histogram.add(7.0, 2)
    text = render(
        (
            Metric("a", Kind.COUNTER, "a text", ("x",)),
            Metric("b", Kind.GAUGE, "another"),
            Metric("c", Kind.HISTOGRAM, "third", ("api",)),
        ),
        {
            "a": [(('q"\\\n',), 3)],
            "b": [((), float("inf"))],
            "c": [(("Fetch",), histogram)],
        },
    )
    read = parsed(text)
    assert read["cotidal_a_total", ('q"\\\n',)] == 3
    assert read["cotidal_b", ()] == float("inf")
    assert read["cotidal_c_bucket", ("Fetch", "0.0001")] == 0
    assert read["cotidal_c_bucket", ("Fetch", "0.0003")] == 1
    assert read["cotidal_c_bucket", ("Fetch", f"{LATENCY_BOUNDS_S[-1]:g}")] == 1
    assert read["cotidal_c_bucket", ("Fetch", "+Inf")] == 3
    assert read["cotidal_c_count", ("Fetch",)] == 3
    assert read["cotidal_c_sum", ("Fetch",)] == pytest.approx(14.0002)


def test_a_metric_without_a_value_is_a_mistake_that_is_noticed() -> None:
    with pytest.raises(KeyError):
        render(METRICS.values(), {})


def test_time_of_a_request_is_counted_under_its_api() -> None:
    counters = Counters()
    counters.answered(1, 0.5)
    counters.answered(1, 0.0001)
    counters.answered(0, 0.002)
    read = parsed(of(LoneNode().start(), counters=counters).scrape())
    assert read["cotidal_request_seconds_count", ("1",)] == 2
    assert read["cotidal_request_seconds_bucket", ("1", "0.3")] == 1
    assert read["cotidal_request_seconds_sum", ("0",)] == pytest.approx(0.002)


def test_partitions_past_the_bound_are_counted_but_not_listed() -> None:
    node = node_with("orders", partitions=5)
    read = parsed(of(node, partitions_max=2).scrape())
    listed = [labels for name, labels in read if name == "cotidal_log_end_offset"]
    assert len(listed) == 2
    assert read["cotidal_partitions_unlisted", ()] == 3
    assert read["cotidal_leader_partitions", ()] == 5


class Scraped:
    """A cluster in this process whose nodes are scraped as Prometheus does it."""

    def __init__(self, cluster: Cluster, port: int) -> None:
        self.cluster = cluster
        self._port = port

    def scrape(self, node: int) -> Samples:
        url = f"http://localhost:{self._port + node - 1}/metrics"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return parsed(answer.read())

    def total(self, name: str, nodes: Iterable[int]) -> float:
        return sum(self.scrape(node)[f"cotidal_{name}", ()] for node in nodes)

    def until(self, condition: Callable[[], bool]) -> None:
        """The test's own time limit is the bound."""
        while not condition():
            time.sleep(0.02)


@pytest.fixture(scope="module")
def scraped() -> Iterator[Scraped]:
    port = quiet_port(3)
    settings = {"cotidal.metrics.port": str(port), "num.partitions": "3"}
    with Cluster(3, settings=settings) as cluster:
        yield Scraped(cluster, port)


def test_fills_are_named_by_their_bounds_and_within_them(scraped: Scraped) -> None:
    samples = scraped.scrape(1)
    fills = {labels[0]: value for (name, labels), value in samples.items() if "_fill_" in name}
    assert fills.keys() >= {"HELD_BYTES_MAX", "CONNECTIONS_MAX", "PEER_CALLS_MAX", "OPEN_FILES_MAX"}
    assert all(isinstance(getattr(limits, bound), int) for bound in fills)
    assert all(0 <= value <= 1 for value in fills.values())


def test_a_broker_that_dies_shows_in_the_metrics_of_the_others(scraped: Scraped) -> None:
    cluster = scraped.cluster
    with Client(cluster.bootstrap) as client:
        create_topic(client, "orders", configs={})
        producer = Producer(client, "orders", partition=0)
        producer.add(b"x" * 1000)
        producer.flush()
    everyone = cluster.nodes
    scraped.until(lambda: scraped.total("leader_partitions", everyone) == 3)
    assert scraped.total("active_controller", everyone) == 1
    assert scraped.total("cluster_partitions", everyone) == 3
    assert scraped.total("brokers_active", everyone) == 3
    assert scraped.total("under_replicated_partitions", everyone) == 0
    assert scraped.total("produced_bytes_total", everyone) > 1000
    scraped.until(lambda: scraped.total("replicated_in_bytes_total", everyone) > 2000)
    assert scraped.total("replicated_out_bytes_total", everyone) == scraped.total(
        "replicated_in_bytes_total", everyone
    )
    times = [
        scraped.scrape(node).get(("cotidal_request_seconds_count", ("Produce",)), 0)
        for node in everyone
    ]
    assert sum(times) == 1, "of the one request, where it was answered"
    ends = [scraped.scrape(node)["cotidal_log_end_offset", ("orders", "0")] for node in everyone]
    assert ends == [1, 1, 1]
    lost = next(n for n in everyone if not scraped.scrape(n)["cotidal_active_controller", ()])
    led = scraped.scrape(lost)["cotidal_leader_partitions", ()]
    shrinks = scraped.total("isr_shrinks_total", everyone)

    cluster.kill(lost)

    left = [node for node in everyone if node != lost]
    scraped.until(lambda: scraped.total("under_replicated_partitions", left) == 3)
    assert scraped.total("at_min_isr_partitions", left) == 3
    assert scraped.total("brokers_fenced", left) == 1
    assert scraped.total("isr_shrinks_total", left) - shrinks >= 3 - led
    assert scraped.total("leader_elections_total", left) >= led
    assert scraped.total("unclean_leader_elections_total", left) == 0

    cluster.restart(lost)

    scraped.until(lambda: scraped.total("under_replicated_partitions", everyone) == 0)
    assert scraped.total("isr_expands_total", everyone) >= 3
    lag = {
        labels: value
        for node in everyone
        for (name, labels), value in scraped.scrape(node).items()
        if name == "cotidal_replica_lag_records"
    }
    assert len(lag) == 6, "two followers of three partitions"
    assert set(lag.values()) == {0}


def test_every_node_in_a_process_has_metrics_of_its_own(scraped: Scraped) -> None:
    for node in scraped.cluster.nodes:
        numbers = [labels[0] for name, labels in scraped.scrape(node) if name == "cotidal_info"]
        assert numbers == [str(node)]
