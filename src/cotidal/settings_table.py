"""THE TABLE of every configuration name that this product honours. Pure; data.

Names, types and defaults are Kafka's; where ours differ the row says so. Names of our own begin
with ``cotidal.``. There are three tables, because one name may stand in two of them with different
means of change (``min.insync.replicas``): TOPIC, BROKER and GROUP.

``dynamic`` says what may be changed without a restart *here*; Kafka allows more for listeners and
connection bounds. ``ignored`` rows are accepted so that a Kafka server.properties starts, and say
why they change nothing. REFUSED names would be dangerous to ignore, or have a successor.

What the rows mean for a text, and which of several values holds, is in settings.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum, IntEnum
from typing import Final, NamedTuple, TypeAlias

from cotidal import limits


class Kind(IntEnum):
    """The type of a value. The numbers are those of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Source(IntEnum):
    """Where a value comes from. The numbers are those of DescribeConfigs."""

    TOPIC = 1
    BROKER = 2
    CLUSTER = 3
    STATIC = 4
    DEFAULT = 5
    GROUP = 8


class Dynamic(Enum):
    """Which dynamic configuration may carry a broker setting."""

    READ_ONLY = "only in server.properties"
    PER_BROKER = "for one broker or for all"
    CLUSTER_WIDE = "for all brokers; on one broker for tests only"


class Range(NamedTuple):
    low: float | None = None
    high: float | None = None


class OneOf(NamedTuple):
    """Each element of a LIST must be one of them, and stand there once."""

    choices: tuple[str, ...]


class ReplicaPairs(NamedTuple):
    """A LIST of ``partition:broker`` pairs, or ``*`` alone for every replica (KIP-73)."""


Rule: TypeAlias = "Range | OneOf | ReplicaPairs"

ANY: Final = Range()


class Synonym(NamedTuple):
    """A broker's name for a topic's or group's setting."""

    name: str
    scale: int = 1
    """What one unit of it is in the topic's unit; 1 leaves the text alone."""


class Setting(NamedTuple):
    name: str
    kind: Kind
    default: str | None
    doc: str
    rule: Rule = ANY
    synonyms: tuple[Synonym, ...] = ()
    """Of a topic or group setting, by precedence."""
    dynamic: Dynamic = Dynamic.READ_ONLY
    ignored: str | None = None
    """Why this name is accepted without effect."""

    @property
    def sensitive(self) -> bool:
        return self.kind is Kind.PASSWORD


_B, _S, _I, _L, _D = Kind.BOOLEAN, Kind.STRING, Kind.INT, Kind.LONG, Kind.DOUBLE
_LIST, _CLASS = Kind.LIST, Kind.CLASS
_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1
_FOREVER: Final = str(_LONG_MAX)
_NOT_NEGATIVE: Final = Range(0)
_POSITIVE: Final = Range(1)
_MINUTE: Final = 60_000
_HOUR: Final = 3_600_000

_ONE_LOOP: Final = "a broker is one event loop; there are no threads to count"
_BY_PIECES: Final = "a move rests after every piece; nothing is sampled"
_NO_JMX: Final = "metrics are Prometheus's, on cotidal.metrics.port"


def _as(name: str) -> tuple[Synonym, ...]:
    return (Synonym(name),)


# Topic settings ------------------------------------------------------------------------------

_TOPIC_ROWS: Final = (
    Setting("cleanup.policy", _LIST, "delete", "How old records go: delete whole segments by age "
            "and size, compact to the last record of each key, both, or (empty) not at all.",
            OneOf(("compact", "delete")), _as("log.cleanup.policy")),
    Setting("compression.gzip.level", _I, "-1", "Level of gzip when the broker compresses.",
            Range(-1, 9), _as("compression.gzip.level")),
    Setting("compression.lz4.level", _I, "9", "Level of lz4 when the broker compresses.",
            Range(1, 17), _as("compression.lz4.level")),
    Setting("compression.type", _S, "producer", "Codec of stored batches; 'producer' keeps the "
            "producer's bytes as they came.",
            OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
            _as("compression.type")),
    Setting("compression.zstd.level", _I, "3", "Level of zstd when the broker compresses.",
            Range(-131072, 22), _as("compression.zstd.level")),
    Setting("delete.retention.ms", _L, "86400000", "How long a tombstone stays in a compacted "
            "topic.", _NOT_NEGATIVE, _as("log.cleaner.delete.retention.ms")),
    Setting("file.delete.delay.ms", _L, "60000", "How long a deleted file stays on disk.",
            _NOT_NEGATIVE, _as("log.segment.delete.delay.ms")),
    Setting("flush.messages", _L, _FOREVER, "fsync after this many records; replication is the "
            "better guard.", _POSITIVE, _as("log.flush.interval.messages")),
    Setting("flush.ms", _L, _FOREVER, "fsync what is older than this.", _NOT_NEGATIVE,
            (Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms"))),
    Setting("follower.replication.throttled.replicas", _LIST, "", "Replicas throttled as "
            "followers: partition:broker pairs, or '*'.", ReplicaPairs()),
    Setting("index.interval.bytes", _I, "4096", "Bytes of log between two index entries.",
            _NOT_NEGATIVE, _as("log.index.interval.bytes")),
    Setting("internal.segment.bytes", _I, None, "A segment size below segment.bytes' least; for "
            "tests.", Range(14)),
    Setting("leader.replication.throttled.replicas", _LIST, "", "Replicas throttled as leaders: "
            "partition:broker pairs, or '*'.", ReplicaPairs()),
    Setting("max.compaction.lag.ms", _L, _FOREVER, "A record is compacted at the latest after "
            "this.", _POSITIVE, _as("log.cleaner.max.compaction.lag.ms")),
    Setting("max.message.bytes", _I, "1048588", "Largest record batch accepted.",
            _NOT_NEGATIVE, _as("message.max.bytes")),
    Setting("message.timestamp.after.max.ms", _L, "3600000", "How far a record's timestamp may "
            "lie ahead of the broker's clock.", _NOT_NEGATIVE,
            _as("log.message.timestamp.after.max.ms")),
    Setting("message.timestamp.before.max.ms", _L, _FOREVER, "How far a record's timestamp may "
            "lie behind the broker's clock.", _NOT_NEGATIVE,
            _as("log.message.timestamp.before.max.ms")),
    Setting("message.timestamp.type", _S, "CreateTime", "Whose clock the timestamps are: the "
            "producer's or the broker's.", OneOf(("CreateTime", "LogAppendTime")),
            _as("log.message.timestamp.type")),
    Setting("min.cleanable.dirty.ratio", _D, "0.5", "Uncompacted share of the log from which "
            "compaction begins.", Range(0, 1), _as("log.cleaner.min.cleanable.ratio")),
    Setting("min.compaction.lag.ms", _L, "0", "A record is not compacted before this.",
            _NOT_NEGATIVE, _as("log.cleaner.min.compaction.lag.ms")),
    Setting("min.insync.replicas", _I, "1", "In-sync replicas that an acks=all write needs; "
            "below it the high watermark stands still.", _POSITIVE, _as("min.insync.replicas")),
    Setting("preallocate", _B, "false", "Reserve a segment's space when it is created.",
            synonyms=_as("log.preallocate")),
    Setting("retention.bytes", _L, "-1", "Size of a partition past which old segments go; -1: no "
            "bound.", Range(-1), _as("log.retention.bytes")),
    Setting("retention.ms", _L, "604800000", "Age past which segments go; -1: never.", Range(-1),
            (Synonym("log.retention.ms"), Synonym("log.retention.minutes", _MINUTE),
             Synonym("log.retention.hours", _HOUR))),
    Setting("segment.bytes", _I, "1073741824", "Size at which a new segment begins.",
            Range(limits.MIB), _as("log.segment.bytes")),
    Setting("segment.index.bytes", _I, "10485760", "Largest index file of a segment.", Range(4),
            _as("log.index.size.max.bytes")),
    Setting("segment.jitter.ms", _L, "0", "Random part taken off segment.ms, so that segments do "
            "not roll together.", _NOT_NEGATIVE,
            (Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", _HOUR))),
    Setting("segment.ms", _L, "604800000", "Age at which a new segment begins.", _POSITIVE,
            (Synonym("log.roll.ms"), Synonym("log.roll.hours", _HOUR))),
    Setting("unclean.leader.election.enable", _B, "false", "Let a replica lead that may lack "
            "acknowledged records, when no other is left.",
            synonyms=_as("unclean.leader.election.enable")),
)  # fmt: skip

_GROUP_ROWS: Final = (
    Setting("consumer.heartbeat.interval.ms", _I, "5000", "Heartbeat interval of the group's "
            "members.", _POSITIVE, _as("group.consumer.heartbeat.interval.ms")),
    Setting("consumer.session.timeout.ms", _I, "45000", "A member silent for this long leaves the "
            "group.", _POSITIVE, _as("group.consumer.session.timeout.ms")),
)  # fmt: skip


# Broker settings -----------------------------------------------------------------------------

_WIDE: Final = Dynamic.CLUSTER_WIDE
_OWN: Final = Dynamic.PER_BROKER

_SCALED_ROWS: Final = (
    # Synonyms in another unit, and the first of several names: these have no default of their own
    # except the last, which carries the topic's.
    Setting("log.flush.interval.ms", _L, None, "flush.ms for all topics.", _NOT_NEGATIVE,
            dynamic=_WIDE),
    Setting("log.flush.scheduler.interval.ms", _L, _FOREVER, "How often logs are looked at for "
            "flush.ms.", _NOT_NEGATIVE),
    Setting("log.retention.ms", _L, None, "retention.ms for all topics.", Range(-1),
            dynamic=_WIDE),
    Setting("log.retention.minutes", _I, None, "Retention in minutes; log.retention.ms beats it.",
            Range(-1)),
    Setting("log.retention.hours", _I, "168", "Retention in hours; minutes and ms beat it.",
            Range(-1)),
    Setting("log.roll.ms", _L, None, "segment.ms for all topics.", _POSITIVE, dynamic=_WIDE),
    Setting("log.roll.hours", _I, "168", "segment.ms in hours; log.roll.ms beats it.", _POSITIVE),
    Setting("log.roll.jitter.ms", _L, None, "segment.jitter.ms for all topics.", _NOT_NEGATIVE,
            dynamic=_WIDE),
    Setting("log.roll.jitter.hours", _I, "0", "segment.jitter.ms in hours.", _NOT_NEGATIVE),
)  # fmt: skip

_IDENTITY_ROWS: Final = (
    Setting("process.roles", _LIST, "broker,controller", "What this node is. Kafka has no "
            "default.", OneOf(("broker", "controller"))),
    Setting("node.id", _I, None, "This node's number, unique in the cluster; required.",
            _NOT_NEGATIVE),
    Setting("broker.rack", _S, None, "Where the broker stands; replicas are spread over racks."),
    Setting("listeners", _LIST, "PLAINTEXT://:9092", "Addresses to listen on: NAME://host:port."),
    Setting("advertised.listeners", _LIST, None, "Addresses that clients are told; listeners "
            "where it is absent."),
    Setting("listener.security.protocol.map", _LIST, "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "Protocol of each listener name; only PLAINTEXT is spoken."),
    Setting("inter.broker.listener.name", _S, None, "Listener that brokers use among themselves."),
    Setting("security.inter.broker.protocol", _S, "PLAINTEXT", "Protocol between brokers.",
            OneOf(("PLAINTEXT",))),
    Setting("controller.listener.names", _LIST, "CONTROLLER", "Listeners of the controller."),
    Setting("early.start.listeners", _S, None, "Listeners opened before metadata is read.",
            ignored="controllers' listeners open at once, the others when the node serves"),
)  # fmt: skip

_QUORUM_ROWS: Final = (
    Setting("controller.quorum.voters", _LIST, "", "Fixed voters: id@host:port."),
    Setting("controller.quorum.bootstrap.servers", _LIST, "", "Where to find the quorum."),
    Setting("controller.quorum.auto.join.enable", _B, "false", "Become a voter on start."),
    Setting("controller.quorum.election.timeout.ms", _I, "1000", "Without a leader for this long, "
            "stand for election.", _POSITIVE),
    Setting("controller.quorum.election.backoff.max.ms", _I, "1000", "Longest pause after a split "
            "vote.", _NOT_NEGATIVE),
    Setting("controller.quorum.fetch.timeout.ms", _I, "2000", "Without an answer of the leader "
            "for this long, look for another.", _POSITIVE),
    Setting("controller.quorum.request.timeout.ms", _I, "2000", "Longest wait for a voter.",
            _POSITIVE),
    Setting("controller.quorum.retry.backoff.ms", _I, "20", "Pause before asking again.",
            _NOT_NEGATIVE),
    Setting("controller.quorum.append.linger.ms", _I, "25", "How long records wait to be written "
            "together.", _NOT_NEGATIVE),
    Setting("controller.socket.timeout.ms", _I, "30000", "Longest wait for the controller.",
            _POSITIVE),
    Setting("metadata.log.dir", _S, None, "Directory of the metadata log; the first of log.dirs "
            "where it is absent."),
    Setting("metadata.log.segment.bytes", _I, "1073741824", "Segment size of the metadata log.",
            Range(limits.MIB)),
    Setting("metadata.log.segment.ms", _L, "604800000", "Segment age of the metadata log.",
            _POSITIVE),
    Setting("metadata.max.retention.bytes", _L, "104857600", "Metadata log and snapshots past "
            "which old ones go.", Range(-1)),
    Setting("metadata.max.retention.ms", _L, "604800000", "The same by age.", Range(-1)),
    Setting("metadata.max.idle.interval.ms", _I, "500", "A no-op record is written this often.",
            _NOT_NEGATIVE),
    Setting("metadata.log.max.record.bytes.between.snapshots", _L, "20971520", "Bytes of records "
            "after which a snapshot is made.", _POSITIVE),
    Setting("metadata.log.max.snapshot.interval.ms", _L, "3600000", "Age of the last snapshot "
            "after which another is made.", _NOT_NEGATIVE),
    Setting("broker.heartbeat.interval.ms", _I, "500", "How often a broker says it lives; up to "
            "twice as often where it is awake anyway. Kafka: 2000.", _POSITIVE),
    Setting("broker.session.timeout.ms", _I, "3000", "A broker silent for this long is fenced. "
            "Kafka: 9000.", _POSITIVE),
    Setting("initial.broker.registration.timeout.ms", _I, "60000", "A broker that cannot register "
            "for this long exits.", _POSITIVE),
    Setting("server.max.startup.time.ms", _L, _FOREVER, "A node not started by then exits.",
            _NOT_NEGATIVE),
)  # fmt: skip

_SOCKET_ROWS: Final = (
    Setting("socket.send.buffer.bytes", _I, "102400", "SO_SNDBUF; -1: the system's.", Range(-1)),
    Setting("socket.receive.buffer.bytes", _I, "102400", "SO_RCVBUF; -1: the system's.",
            Range(-1)),
    Setting("socket.request.max.bytes", _I, str(limits.FRAME_BYTES_MAX), "Largest request.",
            _POSITIVE),
    Setting("socket.listen.backlog.size", _I, "50", "Connections waiting to be accepted.",
            _POSITIVE),
    Setting("connections.max.idle.ms", _L, str(limits.CONNECTION_IDLE_MS), "A connection unused "
            "for this long is closed."),
    Setting("max.connections", _I, str(limits.CONNECTIONS_MAX), "Open connections in all. Kafka "
            "has no bound.", _NOT_NEGATIVE),
    Setting("max.connections.per.ip", _I, str(_INT_MAX), "Open connections of one address.",
            _NOT_NEGATIVE),
    Setting("max.connections.per.ip.overrides", _LIST, "", "The same for single addresses: "
            "host:count."),
    Setting("max.connection.creation.rate", _I, str(_INT_MAX), "New connections a second.",
            _NOT_NEGATIVE),
    Setting("connection.failed.authentication.delay.ms", _I, "100", "Pause before a failed "
            "authentication is answered.", _NOT_NEGATIVE, ignored="there is no authentication yet"),
    Setting("queued.max.requests", _I, "500", "Requests waiting for a handler.", _POSITIVE,
            ignored="requests of a socket read are handled at once; each connection has a bound"),
    Setting("queued.max.request.bytes", _L, "-1", "Bytes of requests not yet handled, of all "
            "connections; -1: our own bound."),
    Setting("request.timeout.ms", _I, "30000", "Longest wait of one node for another.", _POSITIVE),
    Setting("fetch.max.bytes", _I, "57671680", "Most bytes in one answer to a fetch.",
            Range(1024)),
    Setting("max.incremental.fetch.session.cache.slots", _I, str(limits.FETCH_SESSIONS_MAX),
            "Fetch sessions kept (KIP-227).", _NOT_NEGATIVE),
    Setting("max.request.partition.size.limit", _I, "2000", "Most partitions in one answer to "
            "DescribeTopicPartitions.", _POSITIVE),
)  # fmt: skip

_STORAGE_ROWS: Final = (
    Setting("log.dirs", _LIST, None, "Where partitions are stored; log.dir where it is absent."),
    Setting("log.dir", _S, "/tmp/cotidal-logs", "Where partitions are stored, if log.dirs is "
            "absent."),
    Setting("log.retention.check.interval.ms", _L, "300000", "How often retention is looked at.",
            _POSITIVE),
    Setting("log.flush.offset.checkpoint.interval.ms", _I, "60000", "How often recovery points "
            "are written.", _NOT_NEGATIVE),
    Setting("log.flush.start.offset.checkpoint.interval.ms", _I, "60000", "How often log starts "
            "are written.", _NOT_NEGATIVE),
    Setting("log.initial.task.delay.ms", _L, "30000", "Pause before the first retention check.",
            _NOT_NEGATIVE),
    Setting("log.dir.failure.timeout.ms", _L, "30000", "A failed directory not reported for this "
            "long stops the broker.", _POSITIVE),
    Setting("log.cleaner.enable", _B, "true", "Compact what is to be compacted."),
    Setting("log.cleaner.threads", _I, "1", "Compaction threads.", _NOT_NEGATIVE,
            ignored="compaction has one process"),
    Setting("log.cleaner.io.max.bytes.per.second", _D, "1.7976931348623157E308", "Speed of "
            "compaction: bytes read, in all its walks.", dynamic=_WIDE),
    Setting("log.cleaner.dedupe.buffer.size", _L, "134217728", "Memory of compaction's key map; a "
            "key takes 216 bytes of it.", _POSITIVE, dynamic=_WIDE),
    Setting("log.cleaner.io.buffer.size", _I, "524288", "Buffer of compaction.", _NOT_NEGATIVE,
            ignored="compaction reads and writes 512 KiB at once"),
    Setting("log.cleaner.io.buffer.load.factor", _D, "0.9", "How full the key map may be.",
            Range(0, 1), dynamic=_WIDE),
    Setting("log.cleaner.backoff.ms", _L, "15000", "How often logs are looked at for compaction.",
            _NOT_NEGATIVE, dynamic=_WIDE),
    Setting("num.recovery.threads.per.data.dir", _I, "2", "Threads that open logs.", _POSITIVE,
            ignored="logs are opened by one thread; it is bound by the disk"),
    Setting("producer.id.expiration.ms", _I, "86400000", "A producer id unused for this long is "
            "forgotten.", _POSITIVE, dynamic=_WIDE),
    Setting("producer.id.expiration.check.interval.ms", _I, "600000", "How often that is looked "
            "at.", _POSITIVE),
)  # fmt: skip

_REPLICATION_ROWS: Final = (
    Setting("num.partitions", _I, "1", "Partitions of a topic created without a number.",
            _POSITIVE),
    Setting("default.replication.factor", _I, "1", "Replicas of a topic created without a "
            "number.", _POSITIVE),
    Setting("auto.create.topics.enable", _B, "true", "Create a topic when it is first asked for."),
    Setting("delete.topic.enable", _B, "true", "Let topics be deleted."),
    Setting("replica.lag.time.max.ms", _L, "10000", "A follower not caught up for this long "
            "leaves the ISR. Kafka: 30000.", _POSITIVE),
    Setting("replica.fetch.max.bytes", _I, "1048576", "Bytes a follower asks of one partition.",
            _NOT_NEGATIVE),
    Setting("replica.fetch.wait.max.ms", _I, "500", "Longest wait of a follower's fetch; four "
            "times as long, but at most a quarter of replica.lag.time.max.ms, where nothing "
            "happens.", _NOT_NEGATIVE),
    Setting("replica.fetch.min.bytes", _I, "1", "Fewest bytes a follower waits for.",
            _NOT_NEGATIVE),
    Setting("replica.fetch.response.max.bytes", _I, "10485760", "Bytes a follower asks of a "
            "leader.", _NOT_NEGATIVE),
    Setting("replica.fetch.backoff.ms", _I, "1000", "Pause after a failed fetch.", _NOT_NEGATIVE),
    Setting("replica.socket.timeout.ms", _I, "30000", "Longest wait of a follower.", _POSITIVE),
    Setting("replica.socket.receive.buffer.bytes", _I, "65536", "SO_RCVBUF of followers.",
            Range(-1)),
    Setting("replica.high.watermark.checkpoint.interval.ms", _L, "5000", "How often high "
            "watermarks are written.", _POSITIVE),
    Setting("replica.selector.class", _CLASS, None, "Which replica a consumer is sent to "
            "(KIP-392); the leader where it is absent."),
    Setting("num.replica.fetchers", _I, "1", "Connections to each leader.", _POSITIVE,
            ignored="one long poll of each leader, and a second for what comes meanwhile"),
    Setting("auto.leader.rebalance.enable", _B, "true", "Give leadership back to preferred "
            "replicas."),
    Setting("leader.imbalance.check.interval.seconds", _L, "300", "How often that is looked at.",
            _POSITIVE),
    Setting("leader.imbalance.per.broker.percentage", _I, "10", "Imbalance of a broker from which "
            "leadership moves; Kafka's KRaft controller ignores it.", Range(0, 100)),
    Setting("unclean.leader.election.interval.ms", _L, "300000", "How often partitions without "
            "leader are looked at.", _POSITIVE),
    Setting("controlled.shutdown.enable", _B, "true", "Hand leadership over before stopping."),
    Setting("leader.replication.throttled.rate", _L, _FOREVER, "Bytes a second for throttled "
            "replicas, as their leader.", _NOT_NEGATIVE, dynamic=_OWN),
    Setting("follower.replication.throttled.rate", _L, _FOREVER, "Bytes a second for throttled "
            "replicas, as a follower.", _NOT_NEGATIVE, dynamic=_OWN),
    Setting("replica.alter.log.dirs.io.max.bytes.per.second", _L, _FOREVER, "Bytes a second for "
            "replicas that move between log directories.", _NOT_NEGATIVE, dynamic=_OWN),
    Setting("replication.quota.window.num", _I, "11", "Samples of the throttle.", _POSITIVE),
    Setting("replication.quota.window.size.seconds", _I, "1", "Length of a sample.", _POSITIVE),
    Setting("quota.window.num", _I, "11", "Samples of client quotas.", _POSITIVE),
    Setting("quota.window.size.seconds", _I, "1", "Length of a sample.", _POSITIVE),
)  # fmt: skip

_COORDINATOR_ROWS: Final = (
    Setting("offsets.topic.num.partitions", _I, "50", "Partitions of __consumer_offsets.",
            _POSITIVE),
    Setting("offsets.topic.replication.factor", _I, "3", "Its replicas.", _POSITIVE),
    Setting("offsets.topic.segment.bytes", _I, "104857600", "Its segment size.", _POSITIVE),
    Setting("offsets.topic.compression.codec", _I, "0", "Its codec.", Range(0, 4)),
    Setting("offsets.retention.minutes", _I, "10080", "Offsets of an empty group unused for this "
            "long are forgotten.", _POSITIVE),
    Setting("offsets.retention.check.interval.ms", _L, "600000", "How often that is looked at.",
            _POSITIVE),
    Setting("offset.metadata.max.bytes", _I, "4096", "Longest text committed with an offset."),
    Setting("offsets.load.buffer.size", _I, "5242880", "Bytes read at once when loading groups.",
            _POSITIVE),
    Setting("offsets.commit.timeout.ms", _I, "5000", "Longest wait of an offset commit.",
            _POSITIVE),
    Setting("transaction.state.log.num.partitions", _I, "50", "Partitions of "
            "__transaction_state.", _POSITIVE),
    Setting("transaction.state.log.replication.factor", _I, "3", "Its replicas.", _POSITIVE),
    Setting("transaction.state.log.segment.bytes", _I, "104857600", "Its segment size.",
            _POSITIVE),
    Setting("transaction.state.log.min.isr", _I, "2", "Its min.insync.replicas.", _POSITIVE),
    Setting("transaction.state.log.load.buffer.size", _I, "5242880", "Bytes read at once when "
            "loading transactions.", _POSITIVE),
    Setting("transaction.max.timeout.ms", _I, "900000", "Longest transaction.", _POSITIVE),
    Setting("transactional.id.expiration.ms", _I, "604800000", "A transactional id unused for "
            "this long is forgotten.", _POSITIVE),
    Setting("transaction.abort.timed.out.transaction.cleanup.interval.ms", _I, "10000", "How "
            "often overdue transactions are aborted.", _POSITIVE),
    Setting("transaction.remove.expired.transaction.cleanup.interval.ms", _I, "3600000", "How "
            "often expired transactional ids are removed.", _POSITIVE),
    Setting("transaction.partition.verification.enable", _B, "true", "Check that a partition is "
            "in the transaction (KIP-890)."),
    Setting("transaction.two.phase.commit.enable", _B, "false", "Let transactions be prepared "
            "(KIP-939)."),
    Setting("group.initial.rebalance.delay.ms", _I, "3000", "Wait for more members before a new "
            "group's first assignment.", _NOT_NEGATIVE),
    Setting("group.min.session.timeout.ms", _I, "6000", "Shortest session of a classic member.",
            _NOT_NEGATIVE),
    Setting("group.max.session.timeout.ms", _I, "1800000", "Longest session of a classic "
            "member.", _NOT_NEGATIVE),
    Setting("group.max.size", _I, str(_INT_MAX), "Most members of a classic group.", _POSITIVE),
    Setting("group.consumer.heartbeat.interval.ms", _I, "5000", "Heartbeat interval of consumer "
            "groups.", _POSITIVE),
    Setting("group.consumer.min.heartbeat.interval.ms", _I, "5000", "Least value of it.",
            _POSITIVE),
    Setting("group.consumer.max.heartbeat.interval.ms", _I, "15000", "Greatest value of it.",
            _POSITIVE),
    Setting("group.consumer.session.timeout.ms", _I, "45000", "Session of consumer groups.",
            _POSITIVE),
    Setting("group.consumer.min.session.timeout.ms", _I, "45000", "Least value of it.",
            _POSITIVE),
    Setting("group.consumer.max.session.timeout.ms", _I, "60000", "Greatest value of it.",
            _POSITIVE),
    Setting("group.consumer.max.size", _I, str(_INT_MAX), "Most members of a consumer group.",
            _POSITIVE),
    Setting("group.consumer.assignors", _LIST, "uniform,range", "Assignors of the server.",
            OneOf(("uniform", "range"))),
    Setting("group.consumer.migration.policy", _S, "bidirectional", "How groups change protocol.",
            OneOf(("disabled", "downgrade", "upgrade", "bidirectional"))),
    Setting("group.coordinator.rebalance.protocols", _LIST, "classic,consumer", "Protocols that "
            "groups may use.", OneOf(("classic", "consumer", "share", "streams"))),
    Setting("group.coordinator.append.linger.ms", _I, "5", "How long group records wait to be "
            "written together.", Range(-1)),
    Setting("group.coordinator.threads", _I, "4", "Threads of the coordinator.", _POSITIVE,
            ignored=_ONE_LOOP),
)  # fmt: skip

_IGNORED_ROWS: Final = (
    Setting("num.network.threads", _I, "3", "Threads that read sockets.", _POSITIVE,
            dynamic=_WIDE, ignored=_ONE_LOOP),
    Setting("num.io.threads", _I, "8", "Threads that handle requests.", _POSITIVE, dynamic=_WIDE,
            ignored=_ONE_LOOP),
    Setting("background.threads", _I, "10", "Threads of background work.", _POSITIVE,
            dynamic=_WIDE, ignored=_ONE_LOOP),
    Setting("num.replica.alter.log.dirs.threads", _I, None, "Threads that move replicas.",
            ignored=_ONE_LOOP),
    Setting("alter.log.dirs.replication.quota.window.num", _I, "11", "Samples of the throttle of "
            "moves between directories.", _POSITIVE, ignored=_BY_PIECES),
    Setting("alter.log.dirs.replication.quota.window.size.seconds", _I, "1", "Length of a sample.",
            _POSITIVE, ignored=_BY_PIECES),
    Setting("fetch.purgatory.purge.interval.requests", _I, "1000", "When parked fetches are "
            "swept.", ignored="parked requests are removed when they are answered"),
    Setting("producer.purgatory.purge.interval.requests", _I, "1000", "When parked produces are "
            "swept.", ignored="parked requests are removed when they are answered"),
    Setting("delete.records.purgatory.purge.interval.requests", _I, "1", "When parked deletes are "
            "swept.", ignored="parked requests are removed when they are answered"),
    Setting("controlled.shutdown.max.retries", _I, "3", "Tries of a controlled shutdown.",
            ignored="it is tried until it is done or the process is killed"),
    Setting("controlled.shutdown.retry.backoff.ms", _L, "5000", "Pause between them.",
            ignored="it is driven by events"),
    Setting("metric.reporters", _LIST, "", "Classes that report metrics.", ignored=_NO_JMX),
    Setting("metrics.num.samples", _I, "2", "Samples of a metric.", ignored=_NO_JMX),
    Setting("metrics.recording.level", _S, "INFO", "Level of metrics.", ignored=_NO_JMX),
    Setting("metrics.sample.window.ms", _L, "30000", "Length of a sample.", ignored=_NO_JMX),
)  # fmt: skip

_OUR_ROWS: Final = (
    Setting("cotidal.metrics.port", _I, None, "Port of /metrics and /healthz; 0: any free one; "
            "absent: none.", Range(0, 65535)),
    Setting("cotidal.metrics.host", _S, "localhost", "Address on which that port listens."),
    Setting("cotidal.events.enable", _B, "false", "Write what happens to replication to the topic "
            "__cotidal_events. cotidal up sets it to true."),
)  # fmt: skip

REFUSED: Final[Mapping[str, str]] = {
    "replica.lag.max.messages": "replica.lag.max.messages was removed; use replica.lag.time.max.ms",
    "broker.id": "broker.id was replaced; use node.id",
    "zookeeper.connect": "zookeeper.connect was removed; the controllers are a quorum of their "
    "own: use controller.quorum.bootstrap.servers",
    "inter.broker.protocol.version": "inter.broker.protocol.version was removed; the feature "
    "metadata.version has taken its place",
    "log.message.format.version": "log.message.format.version was removed; every record is v2",
    "message.format.version": "message.format.version was removed; every record is v2",
    "message.timestamp.difference.max.ms": "message.timestamp.difference.max.ms was removed; use "
    "message.timestamp.before.max.ms and message.timestamp.after.max.ms",
    "log.message.timestamp.difference.max.ms": "log.message.timestamp.difference.max.ms was "
    "removed; use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms",
    "authorizer.class.name": "authorizer.class.name is not supported: nothing would be protected; "
    "remove it and guard the port otherwise",
    "remote.log.storage.system.enable": "remote.log.storage.system.enable is not supported: there "
    "is no tiered storage; remove it",
}
"""Names that would be dangerous to ignore, or that have a successor, and what to do."""

REFUSED_PREFIXES: Final = (
    ("ssl.", "TLS is not supported"),
    ("sasl.", "SASL is not supported"),
    ("zookeeper.", "there is no ZooKeeper"),
)


def _named_by_topics() -> Iterator[Setting]:
    """Broker rows that follow from a topic's single synonym."""
    for topic in _TOPIC_ROWS:
        if len(topic.synonyms) == 1:
            name = topic.synonyms[0].name
            yield topic._replace(name=name, synonyms=(), dynamic=Dynamic.CLUSTER_WIDE)


TOPIC: Final[Mapping[str, Setting]] = {row.name: row for row in _TOPIC_ROWS}
GROUP: Final[Mapping[str, Setting]] = {row.name: row for row in _GROUP_ROWS}
BROKER: Final[Mapping[str, Setting]] = {
    row.name: row
    for rows in (
        _IDENTITY_ROWS,
        _QUORUM_ROWS,
        _SOCKET_ROWS,
        _STORAGE_ROWS,
        _SCALED_ROWS,
        tuple(_named_by_topics()),
        _REPLICATION_ROWS,
        _COORDINATOR_ROWS,
        _IGNORED_ROWS,
        _OUR_ROWS,
    )
    for row in rows
}
