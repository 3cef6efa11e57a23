"""Client quotas: who has taken too much is not listened to for a while. Pure. KIP-13, 55, 124, 219.

What a client takes is counted by a meter (metering.py), which lets it have at once what its quota
allows in quota.window.num - 1 windows of quota.window.size.seconds. When it has taken more, its
answer goes out at once and says in throttle_time_ms how long it will take until that is made good.
For so long nothing more of its connection begins, and nothing is read from it: a client that waits
by itself loses nothing, one that does not is held up all the same.

    producer_byte_rate         bytes of record batches in its Produces
    consumer_byte_rate         the same in answers to its Fetches; none is larger than a full meter
    request_percentage         of the time of this node's one loop, 100 being all of it. A driver
                               measures it while there is such a quota (MeterTime, TimeSpent)
    controller_mutation_rate   partitions created or deleted. While it is exceeded, the versions
                               that know THROTTLING_QUOTA_EXCEEDED are refused (KIP-599), older
                               ones wait

Each is looked up by itself, in Kafka's order: the quota of this user with this client id, of the
user with any, of the user; then the same of any user; then of the client id, then of any. A quota
of a user is shared by all of its clients, any other one by all connections of one client id. There
is no security here, so that everybody is the user ANONYMOUS.

Other brokers are exempt, as in Kafka: followers' fetches, what coordinators ask, and all that comes
to a controller's listener. As in Kafka every broker counts for itself. Unlike in Kafka a Fetch that
is too much is answered with its records, and the next one waits (Kafka sends it empty, to be asked
again), bytes of headers do not count, and a broker counts the mutations that it is asked for, where
Kafka's controller counts those of all. When no quota is set, a request costs one look at
``active``.
Owns of the state: quotas; of a Connection: metering, throttle_ms.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from cotidal.core.cluster.decide.quotas import (
    CLIENT_ID,
    CONSUMER_BYTE_RATE,
    MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
)
from cotidal.core.cluster.image import Image, QuotaEntity, quota_entity
from cotidal.limits import QUOTA_METERS_MAX
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.fetch import FetchRequest
from cotidal.messages.rpc.produce import ProduceRequest
from cotidal.node.connections import PRODUCE, Connection, Inward
from cotidal.node.effects import MeterTime
from cotidal.node.events import Request, TimeSpent
from cotidal.node.metering import Meter, Metering
from cotidal.node.state import NodeState
from cotidal.values import Millis

EVERYBODY: Final = "ANONYMOUS"
UNITS_PER_PERCENT: Final = 10_000
"""Microseconds a second."""
UNITS_PER_MUTATION: Final = 1_000
"""So that 0.5 a second is a whole number too."""

_SCALES: Final[Mapping[str, int]] = {
    PRODUCER_BYTE_RATE: 1,
    CONSUMER_BYTE_RATE: 1,
    REQUEST_PERCENTAGE: UNITS_PER_PERCENT,
    MUTATION_RATE: UNITS_PER_MUTATION,
}

_STRICT_SINCE: Final[Mapping[int, int]] = {
    int(ApiKey.CREATE_TOPICS): 6,
    int(ApiKey.DELETE_TOPICS): 5,
    int(ApiKey.CREATE_PARTITIONS): 3,
}
"""The first version whose clients know what THROTTLING_QUOTA_EXCEEDED means."""

_AMONG_BROKERS: Final = (ApiKey.WRITE_TXN_MARKERS, ApiKey.ADD_PARTITIONS_TO_TXN)


class Quotas:
    __slots__ = ("active", "generation", "meters", "muted", "sequence", "times")

    def __init__(self) -> None:
        self.active = False
        """Is there any quota?"""
        self.times = False
        """Is there one of time?"""
        self.generation = 0
        """Grows when a quota changes."""
        self.meters: dict[tuple[str, QuotaEntity], Meter] = {}
        self.muted: list[tuple[Millis, int, Connection]] = []
        """A heap: until when, and who."""
        self.sequence = 0


def configure(state: NodeState) -> None:
    """The quotas may have changed. What was counted so far stays counted."""
    quotas = state.quotas
    values = state.controller.committed.quotas.values()
    quotas.generation += 1
    quotas.active = bool(values)
    if not values:
        quotas.meters.clear()
    times = any(REQUEST_PERCENTAGE in each for each in values)
    if times != quotas.times:
        quotas.times = times
        state.out.append(MeterTime(times))


def on_request(state: NodeState, connection: Connection, request: Request) -> bool:
    """It is about to begin, and there are quotas. True: it must be refused instead."""
    if _is_exempt(state, connection, request):
        return False
    metering = metering_of(state, connection, request.client_id)
    now = state.now
    refused = False
    if metering.produced is not None and request.api_key == PRODUCE:
        size = _size(cast("ProduceRequest", request.message))
        _throttle(state, connection, PRODUCER_BYTE_RATE, metering.produced.take(size, now))
    elif metering.mutations is not None and request.api_key in _STRICT_SINCE:
        wait = metering.mutations.wait(now)
        refused = wait > 0 and request.api_version >= _STRICT_SINCE[request.api_key]
        if not refused:
            changed = _mutations(state.controller.committed, request)
            wait = metering.mutations.take(changed * UNITS_PER_MUTATION, now)
        _throttle(state, connection, MUTATION_RATE, wait)
    if metering.time is not None:
        _throttle(state, connection, REQUEST_PERCENTAGE, metering.time.wait(now))
    return refused


def on_fetched(state: NodeState, connection: Connection, size_bytes: int) -> None:
    """A consumer is about to get so many bytes."""
    metering = connection.metering
    if metering is not None and metering.fetched is not None:
        wait = metering.fetched.take(size_bytes, state.now)
        _throttle(state, connection, CONSUMER_BYTE_RATE, wait)


def fetch_bytes_max(state: NodeState, connection: Connection) -> int:
    """Of one answer: what may be had at once."""
    metering = connection.metering
    if metering is None or metering.fetched is None:
        return state.fetch_bytes_max
    return metering.fetched.full


def on_time_spent(state: NodeState, event: TimeSpent) -> None:
    """What it was spent for has been answered: the next request waits for it."""
    connection = state.connections.get(event.connection)
    metering = None if connection is None else connection.metering
    if metering is not None and metering.time is not None:
        metering.time.take(event.micros, state.now)


def on_ticked(state: NodeState) -> None:
    """Listen again to those who have waited."""
    muted = state.quotas.muted
    while muted and muted[0][0] <= state.now:
        connection = heapq.heappop(muted)[2]
        if not connection.lost:
            connection.unmute(state.now)


def next_deadline(state: NodeState) -> Millis | None:
    return state.quotas.muted[0][0] if state.quotas.muted else None


def metering_of(state: NodeState, connection: Connection, client_id: str | None) -> Metering:
    quotas = state.quotas
    found = connection.metering
    if found is None or found.generation != quotas.generation or found.client_id != client_id:
        meters = [_meter(state, key, client_id or "") for key in _SCALES]
        found = connection.metering = Metering(quotas.generation, client_id, *meters)
    return found


def _throttle(state: NodeState, connection: Connection, key: str, wait_ms: int) -> None:
    if wait_ms <= 0:
        return
    state.tally.throttled(key, wait_ms)
    until = Millis(state.now + wait_ms)
    if connection.mute(until, state.now, state.out):
        quotas = state.quotas
        quotas.sequence += 1
        heapq.heappush(quotas.muted, (until, quotas.sequence, connection))


def _meter(state: NodeState, key: str, client_id: str) -> Meter | None:
    image = state.controller.committed
    for entity, shared in _levels(client_id):
        bound = image.quotas.get(entity, {}).get(key)
        if bound is not None:
            return _shared_meter(state, (key, shared), max(1, int(bound * _SCALES[key])))
    return None


def _levels(client_id: str) -> Iterator[tuple[QuotaEntity, QuotaEntity]]:
    """Whose quota may hold, the nearest first, and who shares it if it does."""
    together = quota_entity({USER: EVERYBODY, CLIENT_ID: client_id})
    alone = quota_entity({USER: EVERYBODY})
    for user in (EVERYBODY, None):
        yield quota_entity({USER: user, CLIENT_ID: client_id}), together
        yield quota_entity({USER: user, CLIENT_ID: None}), together
        yield quota_entity({USER: user}), alone
    for name in (client_id, None):
        yield quota_entity({CLIENT_ID: name}), quota_entity({CLIENT_ID: client_id})


def _shared_meter(state: NodeState, key: tuple[str, QuotaEntity], bound: int) -> Meter:
    meters = state.quotas.meters
    found = meters.get(key)
    if found is None:
        if len(meters) >= QUOTA_METERS_MAX:
            _forget_idle(state)
        windows = max(1, state.config.number("quota.window.num") - 1)
        full_ms = windows * state.config.number("quota.window.size.seconds") * 1_000
        found = meters[key] = Meter(full_ms=full_ms, bound=bound, now=state.now)
    elif found.bound != bound:
        found.rebound(bound, state.now)
    return found


def _forget_idle(state: NodeState) -> None:
    """Those that would be as they are if they were new; if there is none, the oldest."""
    meters = state.quotas.meters
    idle = [key for key, meter in meters.items() if meter.is_full(state.now)]
    for key in idle or [next(iter(meters))]:
        del meters[key]
    state.quotas.generation += 1  # nobody goes on with one that is no longer shared


def _is_exempt(state: NodeState, connection: Connection, request: Request) -> bool:
    if isinstance(connection, Inward) or request.api_key in _AMONG_BROKERS:
        return True
    message = request.message
    if isinstance(message, FetchRequest) and max(message.replica_id, message.replica_state[0]) >= 0:
        return True
    return all(point.name != connection.listener for point in state.config.endpoints)


def _size(request: ProduceRequest) -> int:
    return sum(
        len(written.records.data)
        for topic in request.topic_data
        for written in topic.partition_data
        if written.records is not None
    )


def _mutations(image: Image, request: Request) -> int:
    """How many partitions it would create or delete; one where a default is to say."""
    message = cast("Any", request.message)  # a start does not wait for the classes of all three

    def existing(name: str | None) -> int:
        topic = image.topics.get(name or "")
        return 0 if topic is None else len(topic.partitions)

    if request.api_key == ApiKey.CREATE_TOPICS:
        return sum(len(each.assignments) or max(1, each.num_partitions) for each in message.topics)
    if request.api_key == ApiKey.CREATE_PARTITIONS:
        grown = (each.partition_count - existing(each.name) for each in message.topics)
        return sum(max(0, more) for more in grown)
    assert request.api_key == ApiKey.DELETE_TOPICS
    named = [each.name or image.topic_names.get(each.topic_id) for each in message.topics]
    return sum(existing(name) for name in (*named, *message.topic_names))
