"""Everything a node remembers between two steps. Pure.

The rooms of ``node/`` are functions over this one object; each says at its head which of the
fields it owns. What is nobody's is set once, or belongs to the step under way: ``out`` collects its
effects, in order.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

from cotidal.core.cluster.image import BROKER_RESOURCE
from cotidal.core.machine import Entropy
from cotidal.core.partition.effects import ProposeIsr
from cotidal.errors import Refusal
from cotidal.messages.batch import Batches, RecordRules
from cotidal.node.connections import Connection, Inward, Slot
from cotidal.node.effects import Call, CallToken, Effect, Endpoint, PersistToken, ReadToken
from cotidal.node.events import ConnectionId
from cotidal.node.hosting import Hosted
from cotidal.node.rate import Throttle
from cotidal.node.replica_sessions import ReplicaSession, terms
from cotidal.node.sessions import FetchSessions
from cotidal.node.tally import Tally
from cotidal.settings import Value, effective
from cotidal.values import LeaderEpoch, Millis, NodeId, Offset, TopicPartition, Uuid, WallMillis

if TYPE_CHECKING:
    from cotidal.node.acks import PendingProduce
    from cotidal.node.chronicle import Chronicle
    from cotidal.node.coordinators import Coordinators
    from cotidal.node.decisions import ControllerDuty
    from cotidal.node.deletions import PendingDeletes
    from cotidal.node.doubts import Doubt
    from cotidal.node.enrolment import Enrolment
    from cotidal.node.fetch import PendingFetch
    from cotidal.node.fetchers import FetchCall
    from cotidal.node.lifecycle import Life
    from cotidal.node.producer_ids import ProducerIds
    from cotidal.node.quorum import QuorumDuty
    from cotidal.node.quotas import Quotas
    from cotidal.node.transactions import Markers
    from cotidal.node.verification import Postponed


RACK_AWARE: Final = "RackAwareReplicaSelector"
"""Kafka's class of that name, whatever its package; any other one stays with the leader."""


class NodeConfig(NamedTuple):
    """What a node is told about itself before anything happens."""

    node_id: NodeId
    cluster_id: str
    directory_id: Uuid
    """Of the directory with the metadata log."""
    endpoints: tuple[Endpoint, ...]
    """Advertised client listeners."""
    controller_endpoints: tuple[Endpoint, ...]
    rack: str | None
    settings: Mapping[str, str]
    """Static settings, as in server.properties."""
    voters: tuple[tuple[NodeId, Endpoint], ...] = ()
    """controller.quorum.voters; empty: what the log says, or this node alone."""
    is_broker: bool = True
    is_controller: bool = True
    """It may vote, if the voters' record names it."""
    bootstrap: tuple[Endpoint, ...] = ()
    """controller.quorum.bootstrap.servers: whom to ask who leads."""
    log_dirs: tuple[Uuid, ...] = ()
    """Ids of the log directories that work; empty: ``directory_id`` is the only one."""
    snapshot_chunk_bytes: int = 1 << 20
    """A snapshot of the metadata log is fetched in pieces of this size."""

    def number(self, name: str) -> int:
        """A static setting that is a whole number."""
        value = effective(name, static=self.settings).value
        assert isinstance(value, int), name
        return value

    @property
    def log_directories(self) -> tuple[Uuid, ...]:
        return self.log_dirs or (self.directory_id,)


class ControllerAt(NamedTuple):
    """The leader of the quorum, and where to find it."""

    node_id: NodeId
    epoch: LeaderEpoch
    endpoint: Endpoint


PendingT = TypeVar("PendingT")


RecordInspector: TypeAlias = Callable[[Batches, RecordRules, WallMillis], Batches | Refusal]


class NodeState:
    __slots__ = (
        "again",
        "calls",
        "calls_to_self",
        "chronicle",
        "config",
        "connections",
        "control_deadline",
        "control_moved",
        "controller",
        "coordinators",
        "coordinators_due",
        "deadlines",
        "dirty_fetches",
        "doubts",
        "ends_under_way",
        "enrolment",
        "entropy",
        "failed_directories",
        "faulted",
        "fenced_since",
        "fetch_bytes_max",
        "fetch_due",
        "fetch_sequence",
        "fetch_terms",
        "fetcher_wake",
        "fetches_under_way",
        "followed",
        "follower_throttle",
        "gone",
        "hosted",
        "housing_due",
        "housing_retry_at",
        "housing_under_way",
        "inspect",
        "inward",
        "isr_proposals",
        "isr_retry_at",
        "isr_under_way",
        "leader_throttle",
        "life",
        "markers",
        "moves_per_second",
        "next_checkpoint",
        "next_compaction",
        "next_retention",
        "next_shrink",
        "now",
        "opening",
        "out",
        "parked_deletes",
        "parked_produces",
        "postponed",
        "produce_due",
        "producer_ids",
        "quorum",
        "quotas",
        "reads",
        "replica_sessions",
        "saved_watermarks",
        "selects_by_rack",
        "serving",
        "sessions",
        "stopping",
        "tally",
        "token",
        "touched",
        "unblocked",
        "verifies",
        "wall",
    )

    def __init__(self, config: NodeConfig, entropy: Entropy) -> None:
        self.config = config
        self.entropy = entropy
        self.inspect: RecordInspector
        """Looks into a producer's batch for a topic that asks something of its records."""
        self.now = Millis(0)
        self.wall = WallMillis(0)
        self.out: list[Effect] = []
        self.token = 0
        self.tally = Tally()
        self.again: list[Slot] = []
        """Requests to be handled once more: what they missed has been created."""
        self.connections: dict[ConnectionId, Connection] = {}
        self.unblocked: dict[Connection, None] = {}
        """Connections on which something more may begin, or be read."""
        self.hosted: dict[TopicPartition, Hosted] = {}
        self.touched: dict[TopicPartition, Hosted] = {}
        """Partitions with batches admitted in this step."""
        self.failed_directories: dict[Uuid, None] = {}
        """Log directories that have failed since the node started."""
        self.faulted: dict[TopicPartition, AssertionError] = {}
        """Replicas of which a promise was found broken in this step."""
        self.parked_produces: dict[PendingProduce, None] = {}
        self.parked_deletes: dict[PendingDeletes, None] = {}
        self.produce_due = Millis(1 << 62)
        """When the first of them may have waited for too long."""
        self.sessions = FetchSessions(entropy)
        self.dirty_fetches: dict[PendingFetch, None] = {}
        """Parked fetches woken in this step: each is read again once, at its end."""
        self.deadlines: list[tuple[Millis, int, PendingFetch]] = []
        self.fetch_sequence = 0
        self.fetch_bytes_max = config.number("fetch.max.bytes")
        """Of one answer, whatever is asked for."""
        selector = effective("replica.selector.class", static=config.settings).value
        self.selects_by_rack = isinstance(selector, str) and selector.endswith(RACK_AWARE)
        self.leader_throttle = _throttle(config, "leader.replication.throttled.rate")
        self.follower_throttle = _throttle(config, "follower.replication.throttled.rate")
        self.moves_per_second = (1 << 63) - 1
        """What the disk was told of the throttle of moves between directories: not to mind it."""
        self.fetch_terms = terms(config.number)
        self.fenced_since: dict[NodeId, Millis] = {}
        """When this node learnt that a broker is fenced."""
        self.reads: dict[ReadToken, object] = {}
        """Who waits for an answer of the disk."""
        self.controller: ControllerDuty
        self.coordinators: Coordinators
        self.coordinators_due: dict[TopicPartition, None] = {}
        """Partitions of coordinators that have moved in this step."""
        self.quorum: QuorumDuty
        self.quotas: Quotas
        self.life: Life
        self.chronicle: Chronicle
        self.producer_ids: ProducerIds
        self.markers: Markers
        self.postponed: list[Postponed] = []
        """Questions to coordinators of transactions that are asked again, one of a connection."""
        self.verifies: bool = (
            effective("transaction.partition.verification.enable", static=config.settings).value
            is True
        )
        """Whether coordinators are asked before a transaction is opened (T6)."""
        self.enrolment: Enrolment
        self.inward = Inward()
        self.calls: dict[CallToken, object] = {}
        """Who waits for the answer of another node."""
        self.calls_to_self: list[Call] = []
        self.doubts: dict[NodeId, Doubt | None] = {}
        """Peers that may be dead; None: a connection to it stands."""
        self.followed: dict[NodeId, dict[TopicPartition, Hosted]] = {}
        """Partitions that follow a leader, by leader."""
        self.fetch_due: dict[NodeId, None] = {}
        self.fetches_under_way: dict[NodeId, list[FetchCall]] = {}
        self.replica_sessions: dict[tuple[NodeId, str], ReplicaSession] = {}
        self.ends_under_way: dict[TopicPartition, None] = {}
        self.fetcher_wake: Millis | None = None
        self.isr_proposals: dict[TopicPartition, ProposeIsr] = {}
        self.isr_under_way = False
        self.housing_due: dict[TopicPartition, None] = {}
        """Replicas of which the controller does not know yet where they are."""
        self.housing_retry_at: Millis | None = None
        self.housing_under_way = False
        self.isr_retry_at: Millis | None = None
        self.next_shrink: Millis | None = None
        self.control_moved = True
        """Quorum or controller have moved: when they are next due must be asked again. Not with
        every produce: that would cost more than the produce."""
        self.control_deadline: Millis | None = None
        self.gone = False
        """The broker's life is over: the quorum's may end too."""
        self.serving = False
        self.stopping = False
        self.opening: dict[TopicPartition, None] = {}
        """Logs that the disk has been asked to open."""
        self.saved_watermarks: tuple[tuple[TopicPartition, Offset], ...] = ()
        self.next_checkpoint: Millis | None = None
        self.next_compaction: Millis | None = None
        self.next_retention: Millis | None = None

    def hosted_of(self, partition: TopicPartition, topic_id: Uuid) -> Hosted | None:
        """Whom the disk speaks of: None when that topic is no longer here, even if another one of
        its name is."""
        hosted = self.hosted.get(partition)
        return None if hosted is None or hosted.replica.topic_id != topic_id else hosted

    def setting(self, name: str) -> Value:
        """What holds of a broker setting on this node, now."""
        image = self.controller.committed
        return effective(
            name,
            broker=image.config(BROKER_RESOURCE, str(self.config.node_id)),
            cluster=image.cluster_config,
            static=self.config.settings,
        ).value

    def number(self, name: str) -> int:
        value = self.setting(name)
        assert isinstance(value, int), name
        return value

    def next_read_token(self, waiting: object) -> ReadToken:
        self.token += 1
        token = ReadToken(self.token)
        self.reads[token] = waiting
        return token

    def next_call_token(self, owner: object) -> CallToken:
        self.token += 1
        token = CallToken(self.token)
        self.calls[token] = owner
        return token

    def next_persist_token(self) -> PersistToken:
        self.token += 1
        return PersistToken(self.token)

    def take_read(self, token: ReadToken, kind: type[PendingT]) -> PendingT:
        waiting = self.reads.pop(token)
        assert isinstance(waiting, kind)
        return waiting

    def wake_at(self, deadline: Millis, fetch: PendingFetch) -> None:
        self.fetch_sequence += 1
        heapq.heappush(self.deadlines, (deadline, self.fetch_sequence, fetch))


def _throttle(config: NodeConfig, name: str) -> Throttle:
    """As server.properties says; what is changed later comes with the metadata (throttles.py)."""
    return Throttle(
        bound=config.number(name),
        windows=config.number("replication.quota.window.num"),
        window_ms=config.number("replication.quota.window.size.seconds") * 1_000,
    )
