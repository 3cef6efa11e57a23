"""What every simulated client does: connections, requests, answers, time-outs, metadata.

One connection to each node that it talks to. An answer is handed to whoever asked; None means that
nobody can tell what became of the request. A request that waits too long ends its connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cotidal.invariants import REPLIES_IN_ORDER, SOMEBODY_IS_NAMED
from cotidal.limits import RESPONSE_BYTES_MAX
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from cotidal.sim.agenda import MS, SECOND
from cotidal.sim.network import Address, Connection
from cotidal.sim.sowing import sow
from cotidal.sim.violation import Violation
from cotidal.sim.world import World
from cotidal.values import TopicPartition, Uuid
from cotidal.wire.codec import decode_response
from cotidal.wire.frames import FrameReader, read_response_header, request_buffers

METADATA_VERSION: Final = 12
BACK_OFF_US: Final = 50 * MS
BACK_OFF_SPREAD_US: Final = 150 * MS

Then = Callable[[Any], None]


class Leader(NamedTuple):
    address: Address
    epoch: int


class _Waiting(NamedTuple):
    correlation: int
    api_key: int
    version: int
    then: Then


class Talk:
    """One connection of a client."""

    __slots__ = ("_client", "_connection", "_last", "_output", "_reader", "_ready", "_waiting",
                 "address", "ended")  # fmt: skip

    def __init__(self, client: Client, address: Address) -> None:
        self._client = client
        self.address = address
        self.ended = False
        self._ready = False
        self._last = 0
        self._reader = FrameReader(RESPONSE_BYTES_MAX)
        self._output: list[bytes | bytearray | memoryview] = []
        self._waiting: deque[_Waiting] = deque()
        self._connection = client.world.network.connect(client.host, address, self)

    def ask(
        self, api_key: int, version: int, message: Any, then: Then | None, timeout_us: int
    ) -> None:
        self._last += 1
        if then is not None:
            waiting = (self._last, api_key, version, then)
            self._waiting.append(tuple.__new__(_Waiting, waiting))
            self._client.world.agenda.after(timeout_us, self._time_out, self._last)
        buffers = request_buffers(api_key, version, self._last, self._client.name, message)
        if self._ready:
            self._client.world.network.send_from_caller(self._connection, b"".join(buffers))
        else:
            self._output += buffers

    def close(self) -> None:
        self._client.world.network.close_from_caller(self._connection)
        self._end()

    def on_connected(self, connection: Connection) -> None:
        self._ready = True
        if self._output:
            self._client.world.network.send_from_caller(connection, b"".join(self._output))
            self._output = []

    def on_not_connected(self, connection: Connection, refused: bool) -> None:
        self._end()

    def on_bytes(self, connection: Connection, data: bytes) -> None:
        for frame in self._reader.feed(data):
            if not self._waiting:
                return
            correlation, key, version, then = self._waiting[0]
            got, position = read_response_header(frame, key, version)
            self._client.check_order(got, correlation)
            self._waiting.popleft()
            then(decode_response(key, version, frame, position))

    def on_lost(self, connection: Connection) -> None:
        self._end()

    def _time_out(self, correlation: int) -> None:
        if self._waiting and self._waiting[0].correlation <= correlation:
            self.close()

    def _end(self) -> None:
        if not self.ended:
            self.ended = True
            self._client.on_talk_ended(self)
            waiting, self._waiting = self._waiting, deque()
            for each in waiting:
                each.then(None)


class Client:
    def __init__(self, world: World, name: str, topics: tuple[str, ...]) -> None:
        self.world = world
        self.name = name
        self.topics = topics
        self.host = world.add_client_host()
        self.entropy = sow(world.seed, "client", name)
        self.leaders: dict[TopicPartition, Leader] = {}
        self.epochs: dict[TopicPartition, int] = {}
        """The latest leader epoch heard of: a broker that is behind it is not believed."""
        self.addresses: dict[int, Address] = {}
        """Of each node that was heard of."""
        self.topic_ids: dict[str, Uuid] = {}
        self.stopped = False
        self._talks: dict[Address, Talk] = {}
        self._refreshing = False

    def draw(self, bound: int) -> int:
        return self.entropy.below(bound)

    def after(self, delay_us: int, do: Callable[..., None], *args: Any) -> None:
        self.world.agenda.after(delay_us, do, *args)

    def ask(
        self,
        address: Address,
        api_key: int,
        version: int,
        message: Any,
        then: Then | None,
        timeout_us: int = 5 * SECOND,
    ) -> None:
        """``then`` gets the answer, or None; it is None where no answer comes (acks=0)."""
        talk = self._talks.get(address)
        if talk is None:
            talk = self._talks[address] = Talk(self, address)
        talk.ask(api_key, version, message, then, timeout_us)

    def leave(self, address: Address) -> None:
        """Close the connection: what was asked on it has no answer."""
        talk = self._talks.get(address)
        if talk is not None:
            talk.close()

    def anyone(self) -> Address:
        addresses = self.world.addresses()
        return addresses[self.draw(len(addresses))]

    def back_off(self) -> int:
        return BACK_OFF_US + self.draw(BACK_OFF_SPREAD_US)

    def check_order(self, got: int, expected: int) -> None:
        if got != expected:
            raise Violation(
                REPLIES_IN_ORDER, f"{self.name} got answer {got} where {expected} was due"
            )

    def on_talk_ended(self, talk: Talk) -> None:
        if self._talks.get(talk.address) is talk:
            del self._talks[talk.address]

    # Who leads what

    def refresh(self) -> None:
        """Ask anyone for metadata, in a moment; ``on_metadata`` when it is there."""
        if not self._refreshing:
            self._refreshing = True
            self.after(self.back_off(), self._refresh)

    def _refresh(self) -> None:
        topics = tuple(MetadataRequestTopic(name=name) for name in self.topics)
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        self.ask(self.anyone(), ApiKey.METADATA, METADATA_VERSION, request, self._refreshed)

    def _refreshed(self, response: MetadataResponse | None) -> None:
        self._refreshing = False
        if response is None:
            self.refresh()
            return
        addresses = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
        if response.topics and not addresses:
            raise Violation(SOMEBODY_IS_NAMED, f"{self.name} was told of topics and of no broker")
        self.addresses.update(addresses)
        for topic in response.topics:
            if topic.error_code or topic.name is None:
                continue
            self.topic_ids[topic.name] = topic.topic_id
            for partition in topic.partitions:
                place = TopicPartition(topic.name, partition.partition_index)
                if self.epochs.get(place, -1) > partition.leader_epoch:
                    continue
                self.epochs[place] = partition.leader_epoch
                address = addresses.get(partition.leader_id)
                if address is None:
                    self.leaders.pop(place, None)
                else:
                    self.leaders[place] = Leader(address, partition.leader_epoch)
        self.on_metadata()

    def on_metadata(self) -> None:
        """Leaders may have changed."""
