"""Every metric that a node exposes: its name, what it means, and what Kafka calls the like.

metrics.py gives each its value at a scrape; docs/metrics.md is written from here; a dashboard, an
alert and a test name nothing that is not in this table.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

PREFIX: Final = "cotidal_"


class Kind(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(NamedTuple):
    stem: str
    kind: Kind
    text: str
    labels: tuple[str, ...] = ()
    kafka: str = ""
    """The MBean of Apache Kafka that says the same, or nearly; after a slash: its attribute."""

    @property
    def name(self) -> str:
        """As it is exposed, and asked for; a histogram's parts have it as their beginning."""
        return PREFIX + self.stem + ("_total" if self.kind is Kind.COUNTER else "")


_C, _G, _H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM
_PARTITION: Final = ("topic", "partition")
_REPLICA: Final = ("topic", "partition", "replica")
_BROKER: Final = "kafka.server:type=ReplicaManager,name="
_TOPICS: Final = "kafka.server:type=BrokerTopicMetrics,name="
_CONTROLLER: Final = "kafka.controller:type=KafkaController,name="
_RAFT: Final = "kafka.server:type=raft-metrics / "
_REQUEST: Final = "kafka.network:type=RequestMetrics,name="
_LOG: Final = "kafka.log:type=Log,name="

SECTIONS: Final[dict[str, tuple[Metric, ...]]] = {
    "The node": (
        Metric("info", _G, "1; the node's number and version are its labels", ("node", "version"),
               "kafka.server:type=app-info"),
        Metric("turns", _C, "Turns of the event loop that stepped the node"),
        Metric("loop_lag_seconds", _H, "Length of loop turns, and how late timers were", (),
               "kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent"),
        Metric("protocol_events", _C, "Events and decisions of the protocol's machines, by machine",
               ("machine",)),
        Metric("disk_jobs", _G, "Work waiting for a disk thread"),
        Metric("bound_fill_ratio", _G, "How full a bounded thing is, 1: no more goes in; by the "
               "name of its bound", ("bound",),
               "kafka.network:type=RequestChannel,name=RequestQueueSize"),
    ),
    "Requests and connections": (
        Metric("requests", _C, "Requests by API", ("api",), _REQUEST + "RequestsPerSec"),
        Metric("request_seconds", _H, "From the read of a request to its answer, with all that it "
               "waited for: long polls, acknowledgements", ("api",), _REQUEST + "TotalTimeMs"),
        Metric("request_turn_seconds", _H, "From the read of a request to the end of the turn that "
               "handled it", (), _REQUEST + "LocalTimeMs"),
        Metric("parked_requests", _G, "Requests without an answer yet"),
        Metric("parked", _G, "Requests that wait for data or for replicas, by what they wait for",
               ("kind",), "kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize"),
        Metric("fetch_sessions", _G, "Incremental fetch sessions", (),
               "kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions"),
        Metric("connections", _G, "Open connections", (),
               "kafka.server:type=socket-server-metrics / connection-count"),
        Metric("connections_opened", _C, "Connections accepted", (),
               "kafka.server:type=socket-server-metrics / connection-creation-rate"),
        Metric("connections_refused", _C, "Connections past a bound"),
        Metric("connections_idle_closed", _C, "Connections closed as idle", (),
               "kafka.server:type=socket-server-metrics / expired-connections-killed-count"),
        Metric("throttles", _C, "Times that a client was made to wait, by the quota that it had "
               "used up", ("quota",), "kafka.server:type=Request / throttle-time"),
        Metric("throttle_seconds", _C, "For how long, in all", ("quota",)),
        Metric("muted_connections", _G, "Connections that are not listened to, for a quota"),
        Metric("malformed_frames", _C, "Requests that could not be read"),
        Metric("held_bytes", _G, "Bytes of requests not yet whole or written", (),
               "kafka.network:type=SocketServer,name=MemoryPoolUsed"),
        Metric("bytes_in", _C, "Bytes read from clients and from other nodes' requests"),
        Metric("bytes_out", _C, "Bytes written to clients and to other nodes as answers"),
        Metric("peer_bytes_in", _C, "Bytes that other nodes answered"),
        Metric("peer_bytes_out", _C, "Bytes asked of other nodes"),
    ),
    "Records": (
        Metric("produced_bytes", _C, "Bytes of record batches taken from producers", (),
               _TOPICS + "BytesInPerSec"),
        Metric("fetched_bytes", _C, "Bytes of record batches served to consumers, by the role in "
               "which this node had them", ("role",), _TOPICS + "BytesOutPerSec"),
        Metric("replicated_in_bytes", _C, "Bytes of record batches taken from leaders", (),
               _TOPICS + "ReplicationBytesInPerSec"),
        Metric("replicated_out_bytes", _C, "Bytes of record batches served to followers", (),
               _TOPICS + "ReplicationBytesOutPerSec"),
    ),
    "Logs": (
        Metric("partitions", _G, "Partitions with a log on this node", (),
               _BROKER + "PartitionCount"),
        Metric("log_bytes", _G, "Size of all logs"),
        Metric("compacted_bytes", _C, "Bytes read for compaction"),
        Metric("log_failures", _C, "Failures that took a log offline"),
        Metric("offline_logs", _G, "Logs that the disk has failed", (),
               _BROKER + "OfflineReplicaCount"),
        Metric("offline_log_directories", _G, "Log directories that have failed", (),
               "kafka.log:type=LogManager,name=OfflineLogDirectoryCount"),
    ),
    "Replication": (
        Metric("leader_partitions", _G, "Partitions that this node leads", (),
               _BROKER + "LeaderCount"),
        Metric("under_replicated_partitions", _G, "Led here, with a replica outside the ISR", (),
               _BROKER + "UnderReplicatedPartitions"),
        Metric("under_min_isr_partitions", _G, "Led here, with fewer in the ISR than "
               "min.insync.replicas: acks=all is refused", (),
               _BROKER + "UnderMinIsrPartitionCount"),
        Metric("at_min_isr_partitions", _G, "Led here, with min.insync.replicas in the ISR", (),
               _BROKER + "AtMinIsrPartitionCount"),
        Metric("isr_shrinks", _C, "Times that the ISR of a partition led here lost a member", (),
               _BROKER + "IsrShrinksPerSec"),
        Metric("isr_expands", _C, "Times that it won one", (), _BROKER + "IsrExpandsPerSec"),
        Metric("replica_lag_records_max", _G, "Most records that a follower of this node lacks", (),
               "kafka.server:type=ReplicaFetcherManager,name=MaxLag"),
        Metric("replica_lag_seconds_max", _G, "Longest time since a follower of this node was "
               "caught up; one that never was does not count"),
        Metric("replication_throttle_bytes", _G, "Bytes a second of throttled replicas, by this "
               "node's side", ("role",), "kafka.server:type=LeaderReplication / byte-rate"),
        Metric("replication_throttle_bound_bytes", _G, "What the throttle allows; 2^63 - 1: all",
               ("role",)),
        Metric("truncations", _C, "Times that a follower here cut its log"),
        Metric("truncated_records", _C, "Records cut that way"),
        Metric("high_watermark_regressions", _C, "Times that a high watermark here moved back"),
    ),
    "Partition by partition": (
        Metric("log_start_offset", _G, "First offset of a replica here", _PARTITION,
               _LOG + "LogStartOffset"),
        Metric("log_end_offset", _G, "Next offset to be written", _PARTITION,
               _LOG + "LogEndOffset"),
        Metric("high_watermark", _G, "Everything below is committed", _PARTITION),
        Metric("partition_log_bytes", _G, "Size of a replica's log", _PARTITION, _LOG + "Size"),
        Metric("replica_lag_records", _G, "Records that a follower lacks, told by its leader",
               _REPLICA, "kafka.server:type=FetcherLagMetrics,name=ConsumerLag"),
        Metric("replica_lag_seconds", _G, "Time since a follower was caught up, told by its "
               "leader; +Inf: not in this leader's time", _REPLICA),
        Metric("partitions_unlisted", _G, "Partitions for which there was no room above"),
    ),
    "The controller": (
        Metric("active_controller", _G, "1 on the active controller, else 0", (),
               _CONTROLLER + "ActiveControllerCount"),
        Metric("topics", _G, "Topics; on the active controller, else 0", (),
               _CONTROLLER + "GlobalTopicCount"),
        Metric("cluster_partitions", _G, "Partitions of them; on the active controller, else 0", (),
               _CONTROLLER + "GlobalPartitionCount"),
        Metric("offline_partitions", _G, "Partitions without a leader; on the active controller, "
               "else 0", (),
               _CONTROLLER + "OfflinePartitionsCount"),
        Metric("not_preferred_leaders", _G, "Partitions led by another replica than the first; on "
               "the active controller, else 0", (),
               _CONTROLLER + "PreferredReplicaImbalanceCount"),
        Metric("brokers_active", _G, "Brokers that take part; on the active controller, else 0", (),
               _CONTROLLER + "ActiveBrokerCount"),
        Metric("brokers_fenced", _G, "Brokers that do not; on the active controller, else 0", (),
               _CONTROLLER + "FencedBrokerCount"),
        Metric("leader_elections", _C, "Leaders elected while this node was the active controller",
               (), "kafka.controller:type=ControllerStats,name=LeaderElectionRateAndTimeMs"),
        Metric("unclean_leader_elections", _C, "Those whose leader may lack acknowledged records",
               (), "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec"),
    ),
    "The quorum": (
        Metric("quorum_leader", _G, "Who leads, as far as this node knows; -1: nobody", (),
               _RAFT + "current-leader"),
        Metric("quorum_epoch", _G, "In which epoch", (), _RAFT + "current-epoch"),
        Metric("quorum_end_offset", _G, "End of the metadata log here", (),
               _RAFT + "log-end-offset"),
        Metric("quorum_high_watermark", _G, "What is committed of it, as this node knows", (),
               _RAFT + "high-watermark"),
        Metric("quorum_applied_offset", _G, "What this node has applied", (),
               "kafka.server:type=broker-metadata-metrics / last-applied-record-offset"),
        Metric("quorum_replica_lag_records", _G, "Metadata records that another node lacks, told "
               "by the leader", ("replica",)),
    ),
    "The events topic": (
        Metric("events_written", _C, "Records written to __cotidal_events"),
        Metric("events_dropped", _C, "Records that were not, for want of room or of a leader"),
        Metric("events_queued", _G, "Records that wait"),
    ),
}  # fmt: skip

METRICS: Final[dict[str, Metric]] = {
    metric.stem: metric for section in SECTIONS.values() for metric in section
}
