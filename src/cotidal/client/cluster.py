"""A cluster, as a client sees it: bootstrap, metadata, and a connection to each broker in use.

Any broker answers for the cluster and forwards to the controller what is the controller's; data
goes to the leader of its partition. Questions that change nothing are asked again, of another
broker if need be, until ``timeout_s`` has passed; requests that change something are sent once,
because a lost answer does not mean that nothing was done.

Not for several threads at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TypeVar

from cotidal.client.addresses import Address, parse_bootstrap
from cotidal.client.backoff import Backoff
from cotidal.client.connection import CLIENT_ID, Connection
from cotidal.client.failures import (
    ClientError,
    ProtocolMismatch,
    Refused,
    TimedOut,
    UnknownTopic,
    Unreachable,
    known_code,
)
from cotidal.client.metadata import Metadata, Topic, read_metadata
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from cotidal.values import NodeId

Response = TypeVar("Response")


class Cluster:
    """``with Cluster("localhost:9092") as cluster:``; nothing is connected before it is needed."""

    def __init__(
        self,
        bootstrap: str,
        *,
        timeout_s: float = 30.0,
        connect_timeout_s: float = 5.0,
        client_id: str = CLIENT_ID,
    ) -> None:
        """``client_id``: how it calls itself to brokers."""
        self._client_id = client_id
        self.bootstrap = parse_bootstrap(bootstrap)
        self.timeout_s = timeout_s
        self.connect_timeout_s = min(connect_timeout_s, timeout_s)
        self._connections: dict[Address, Connection] = {}
        self._lanes: dict[tuple[Address, str], Connection] = {}
        self._brokers: dict[NodeId, Address] = {}
        """As last heard; grows only by brokers that the cluster names."""

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        for connection in (*self._connections.values(), *self._lanes.values()):
            connection.close()
        self._connections.clear()
        self._lanes.clear()

    def prefer(self, address: Address) -> None:
        """Ask this broker from now on what any broker answers, if it can be reached."""
        self.close()
        self.bootstrap = (address, *(each for each in self.bootstrap if each != address))

    def metadata(self, topics: Sequence[str] | None = None) -> Metadata:
        """What one broker knows now, of these topics or of all. Never creates a topic."""
        request = MetadataRequest(
            topics=None
            if topics is None
            else tuple(MetadataRequestTopic(name=name) for name in topics),
            allow_auto_topic_creation=False,
        )
        response = self.ask(ApiKey.METADATA, request, MetadataResponse)
        if response.error_code:
            raise Refused("metadata", known_code(response.error_code))
        metadata = read_metadata(response)
        self._brokers = {broker.node_id: broker.address for broker in metadata.brokers}
        return metadata

    def knows(self, node_id: NodeId, topic: str, *, timeout_s: float) -> bool:
        """Whether this broker has heard of the topic; ClientError if it cannot be asked."""
        request = MetadataRequest(
            topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False
        )
        told = self.connection(node_id).call(
            ApiKey.METADATA, request, MetadataResponse, timeout_s=timeout_s
        )
        return told.topics[0].error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def topic(self, name: str) -> Topic:
        """One topic that exists; UnknownTopic, with the name nearest to it, otherwise."""
        topic = self.metadata([name]).topic(name)
        if topic is None or topic.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise UnknownTopic(name, [known.name for known in self.metadata().topics])
        if topic.error not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
            raise Refused(f"topic '{name}'", topic.error)
        return topic

    def ask(self, key: ApiKey, request: object, answer: type[Response]) -> Response:
        """A question that any broker answers, and that may be asked again."""
        backoff = Backoff(timeout_s=self.timeout_s)
        while True:
            try:
                connection = self.any_connection()
                return connection.call(key, request, answer, timeout_s=self.timeout_s)
            except ProtocolMismatch:
                raise
            except ClientError:
                # Only a broker that has been reached is worth waiting for.
                if not self._brokers or not backoff.wait():
                    raise

    def tell(self, key: ApiKey, request: object, answer: type[Response]) -> Response:
        """A change that any broker takes and passes on to the controller; sent once."""
        return self.any_connection().call(key, request, answer, timeout_s=self.timeout_s)

    def any_connection(self) -> Connection:
        """An open connection, or a new one to the first broker that can be reached."""
        for connection in self._connections.values():
            if connection.is_open:
                return connection
        failure: ClientError | None = None
        started = time.monotonic()
        for address in self._addresses():
            try:
                return self.connection_to(address)
            except (Unreachable, TimedOut) as error:
                failure = failure or error
            if time.monotonic() - started > self.timeout_s:
                break
        assert failure is not None, "a bootstrap list is never empty"
        raise failure

    def connection(self, node_id: NodeId) -> Connection:
        """The connection to one broker, by its id, as metadata last named it."""
        return self.connection_to(self._address_of(node_id))

    def lane(self, node_id: NodeId, name: str) -> Connection:
        """A connection to one broker for requests that go ahead of their answers: nobody else's
        question comes in between. It is closed with the cluster."""
        lane = (self._address_of(node_id), name)
        known = self._lanes.get(lane)
        if known is None or not known.is_open:
            known = self._lanes[lane] = self.open_connection(node_id)
        return known

    def open_connection(self, node_id: NodeId) -> Connection:
        """A connection that belongs to the caller, who closes it."""
        return self._connected(self._address_of(node_id))

    def connection_to(self, address: Address) -> Connection:
        known = self._connections.get(address)
        if known is not None and known.is_open:
            return known
        connection = self._connections[address] = self._connected(address)
        return connection

    def _connected(self, address: Address) -> Connection:
        return Connection(address, timeout_s=self.connect_timeout_s, client_id=self._client_id)

    def _address_of(self, node_id: NodeId) -> Address:
        address = self._brokers.get(node_id)
        if address is None:
            raise Unreachable(f"broker {node_id}", "the cluster does not name it among its brokers")
        return address

    def _addresses(self) -> Iterator[Address]:
        yield from self.bootstrap
        yield from (known for known in self._brokers.values() if known not in self.bootstrap)
