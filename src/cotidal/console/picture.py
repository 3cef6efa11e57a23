"""The picture that every world gives: what is in it, and how long it may be. Pure.

    now_us      the world's time
    state       "running", "paused", "broken", "ended"
    speed       simulated seconds a second
    brokers     id -> Broker
    controllers id -> Controller: those that are no brokers
    partitions  "orders-0" -> Partition, with a Replica for each node that has one
    flights     number -> Flight: what is under way
    links       "1-2" -> {"cut": true} or {"slow_ms": 80}
    clients     name -> Client
    lamps       promise -> "holds" or "broken"; ``broken`` says what was found
    settings    what can be changed while it runs
    health      of a live cluster: {"state": "good", "warn" or "bad", "sentence": ...}
    notes       what a live cluster does not tell, a sentence each

Ids are text where they are keys. Nothing is None: what is not known is not there.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Quorum(TypedDict):
    role: str
    """leader, follower, candidate, prospective, unattached, resigned, observer."""
    epoch: int
    """Term, in Raft's words."""
    voted: NotRequired[int]
    end: int
    high_watermark: int


class Broker(TypedDict):
    id: int
    state: str
    """up, starting, fenced, paused, down, silent."""
    rack: str
    incarnation: NotRequired[int]
    address: NotRequired[str]
    quorum: NotRequired[Quorum]


class Controller(TypedDict):
    """A node of the quorum that is no broker."""

    id: int
    state: str
    """up, starting, paused, down."""
    quorum: NotRequired[Quorum]


class Replica(TypedDict):
    start: int
    high_watermark: NotRequired[int]
    end: int
    epochs: list[list[int]]
    """[epoch, its first offset], ascending."""
    role: str
    """leader, follower, idle, offline, down."""
    epoch: NotRequired[int]
    """In which it plays its role, as far as it knows."""


class Partition(TypedDict):
    leader: int
    """-1: none."""
    leader_epoch: int
    partition_epoch: NotRequired[int]
    preferred: int
    replicas: list[int]
    isr: list[int]
    elr: list[int]
    proposed: NotRequired[list[int]]
    """Asked for by the leader, not answered yet."""
    min_isr: NotRequired[int]
    why_out: NotRequired[dict[str, str]]
    """Of replicas that are not in sync: why, in words."""
    if_elected: NotRequired[dict[str, str]]
    """Of the same: which records would go if it led from now on."""
    logs: dict[str, Replica]


class Flight(TypedDict):
    source: int
    target: int
    sent_us: int
    arrives_us: int
    """-1: a cut link holds it back."""
    api: str
    answer: bool
    bytes: int


class Client(TypedDict):
    kind: str
    """producer, consumer."""
    host: int
    label: NotRequired[str]
    """How a client of a live cluster calls itself."""
    acks: NotRequired[str]
    rate: NotRequired[int]
    positions: NotRequired[dict[str, int]]
    reads_from: NotRequired[dict[str, str]]
