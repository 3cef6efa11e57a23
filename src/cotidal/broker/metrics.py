"""What each metric of the table is at this moment, from the counters and the node's vital signs.

Read at a scrape, on the event loop: nothing else moves meanwhile. Every node has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from cotidal.broker.counters import Counters
from cotidal.broker.exposition import Samples, render
from cotidal.broker.metric_table import METRICS
from cotidal.limits import METRICS_PARTITIONS_MAX
from cotidal.node.tally import Tally
from cotidal.node.vitals import Vitals
from cotidal.values import TopicPartition


class Gauges(NamedTuple):
    """What is looked up when somebody asks, not counted."""

    partitions: int
    log_bytes: Mapping[TopicPartition, int]
    parked_requests: int
    disk_jobs: int
    offline_logs: int
    offline_directories: int
    fills: Mapping[str, float]
    """By the name of the bound."""


class NodeMetrics:
    """The metrics of one node."""

    def __init__(
        self,
        *,
        node_id: int,
        version: str,
        counters: Counters,
        tally: Tally,
        gauges: Callable[[], Gauges],
        vitals: Callable[[], Vitals],
        api_name: Callable[[int], str],
    ) -> None:
        self._info = (node_id, version)
        self._counters = counters
        self._tally = tally
        self._gauges = gauges
        self._vitals = vitals
        self._api_name = api_name

    def scrape(self) -> bytes:
        return render(METRICS.values(), self.read())

    def read(self) -> dict[str, Samples]:
        """Samples of every metric, by its stem."""
        gauges, vitals = self._gauges(), self._vitals()
        single = self._counted() | _looked_up(gauges) | _replication(vitals) | _control(vitals)
        found: dict[str, Samples] = {stem: [((), value)] for stem, value in single.items()}
        found["info"] = [(self._info, 1)]
        found["loop_lag_seconds"] = [((), self._counters.loop_lag)]
        found["request_turn_seconds"] = [((), self._counters.latency)]
        return (
            found | self._by_api() | self._by_kind(gauges, vitals) | _by_partition(vitals, gauges)
        )

    def _counted(self) -> dict[str, float]:
        counters, tally = self._counters, self._tally
        return {
            "turns": counters.turns,
            "connections": counters.connections,
            "connections_opened": counters.connections_opened,
            "connections_refused": counters.connections_refused,
            "connections_idle_closed": counters.idle_closed,
            "malformed_frames": counters.malformed_frames,
            "held_bytes": counters.held_bytes,
            "bytes_in": counters.bytes_in,
            "bytes_out": counters.bytes_out,
            "peer_bytes_in": counters.peer_bytes_in,
            "peer_bytes_out": counters.peer_bytes_out,
            "produced_bytes": counters.produced_bytes,
            "replicated_in_bytes": counters.replicated_in_bytes,
            "replicated_out_bytes": tally.replicated_out_bytes,
            "log_failures": counters.log_failures,
            "compacted_bytes": counters.compacted_bytes,
            "isr_shrinks": tally.isr_shrinks,
            "isr_expands": tally.isr_expands,
            "truncations": tally.truncations,
            "truncated_records": tally.truncated_records,
            "high_watermark_regressions": tally.high_watermark_regressions,
            "leader_elections": tally.elections,
            "unclean_leader_elections": tally.unclean_elections,
            "events_written": tally.events_written,
            "events_dropped": tally.events_dropped,
        }

    def _by_api(self) -> dict[str, Samples]:
        name = self._api_name
        counters = self._counters
        return {
            "requests": [((name(key),), n) for key, n in sorted(counters.requests.items())],
            "request_seconds": [((name(key),), h) for key, h in sorted(counters.times.items())],
        }

    def _by_kind(self, gauges: Gauges, vitals: Vitals) -> dict[str, Samples]:
        tally, parked = self._tally, vitals.parked
        return {
            "parked": [
                (("produce",), parked.produces),
                (("fetch",), parked.fetches),
                (("replica_fetch",), parked.replica_fetches),
                (("delete_records",), parked.deletions),
            ],
            "fetched_bytes": [
                (("leader",), tally.fetched_from_leader_bytes),
                (("follower",), tally.fetched_from_follower_bytes),
            ],
            "throttles": [((key,), times) for key, (times, _) in tally.throttles.items()],
            "throttle_seconds": [((key,), ms / 1000) for key, (_, ms) in tally.throttles.items()],
            "protocol_events": [
                (("partition",), tally.partition_events),
                (("quorum",), tally.quorum_events),
                (("controller",), tally.controller_events),
                (("coordinator",), tally.coordinator_events),
            ],
            "replication_throttle_bytes": [((each.role,), each.rate) for each in vitals.throttles],
            "replication_throttle_bound_bytes": [
                ((each.role,), each.bound) for each in vitals.throttles
            ],
            "bound_fill_ratio": [
                *(((bound,), fill) for bound, fill in gauges.fills.items()),
                *(((bound,), fill) for bound, fill in vitals.fills.items()),
                (("METRICS_PARTITIONS_MAX",), len(vitals.replicas) / METRICS_PARTITIONS_MAX),
            ],
            "quorum_replica_lag_records": [((node,), lag) for node, lag in vitals.quorum.lags],
        }


def _looked_up(gauges: Gauges) -> dict[str, float]:
    return {
        "partitions": gauges.partitions,
        "log_bytes": sum(gauges.log_bytes.values()),
        "parked_requests": gauges.parked_requests,
        "disk_jobs": gauges.disk_jobs,
        "offline_logs": gauges.offline_logs,
        "offline_log_directories": gauges.offline_directories,
    }


def _replication(vitals: Vitals) -> dict[str, float]:
    return {
        "leader_partitions": vitals.leads,
        "under_replicated_partitions": vitals.under_replicated,
        "under_min_isr_partitions": vitals.under_min_isr,
        "at_min_isr_partitions": vitals.at_min_isr,
        "replica_lag_records_max": vitals.lag_records_max,
        "replica_lag_seconds_max": vitals.lag_ms_max / 1000,
        "fetch_sessions": vitals.fetch_sessions,
        "muted_connections": vitals.muted_connections,
        "events_queued": vitals.events_queued,
        "partitions_unlisted": vitals.unlisted,
    }


def _control(vitals: Vitals) -> dict[str, float]:
    controller, quorum = vitals.controller, vitals.quorum
    return {
        "active_controller": vitals.is_active_controller,
        "topics": controller.topics,
        "cluster_partitions": controller.partitions,
        "offline_partitions": controller.offline_partitions,
        "not_preferred_leaders": controller.not_preferred,
        "brokers_active": controller.brokers_active,
        "brokers_fenced": controller.brokers_fenced,
        "quorum_leader": quorum.leader,
        "quorum_epoch": quorum.epoch,
        "quorum_end_offset": quorum.end_offset,
        "quorum_high_watermark": quorum.high_watermark,
        "quorum_applied_offset": quorum.applied,
    }


def _by_partition(vitals: Vitals, gauges: Gauges) -> dict[str, Samples]:
    replicas = vitals.replicas
    followers = [
        ((each.topic, each.partition, follower.node), follower)
        for each in vitals.led
        for follower in each.followers
    ]
    return {
        "log_start_offset": [(each.partition, each.start_offset) for each in replicas],
        "log_end_offset": [(each.partition, each.end_offset) for each in replicas],
        "high_watermark": [(each.partition, each.high_watermark) for each in replicas],
        "partition_log_bytes": [
            (each.partition, gauges.log_bytes.get(each.partition, 0)) for each in replicas
        ],
        "replica_lag_records": [(labels, follower.lag_records) for labels, follower in followers],
        "replica_lag_seconds": [
            (labels, float("inf") if follower.lag_ms < 0 else follower.lag_ms / 1000)
            for labels, follower in followers
        ],
    }
