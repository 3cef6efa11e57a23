"""One node: the machines and everything between them. Pure. ``step(event, now) -> effects``.

A step begins requests, moves machines, and at its end, once for everything that happened in it:

    append_touched    one Append per partition for all batches that were admitted
    evaluate_dirty    every parked fetch that was woken, once
    begin queued      requests that stood behind what has now been answered

Whoever drives the node obeys the effects in order and tells it their outcome as events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, assert_never, cast

from cotidal.api import describe_log_dirs as log_dirs_api
from cotidal.api import metadata as metadata_api
from cotidal.api.asked import Asked
from cotidal.api.registry import APIS, Owner, handler
from cotidal.core.cluster.decide.topics import decide_auto_create
from cotidal.core.machine import Entropy
from cotidal.errors import Refusal
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.describe_log_dirs import DescribeLogDirsRequest
from cotidal.messages.rpc.metadata import MetadataRequest
from cotidal.messages.rpc.produce import ProduceRequest
from cotidal.node import controller, fetch, housekeeping, offsets, produce, publishing
from cotidal.node.connections import PRODUCE, Connection, Slot
from cotidal.node.controller import Answer, AnswerAgain, ControllerDuty
from cotidal.node.effects import CloseConnection, Effect, MeasureLogs, Note, SaveProducers, Stop
from cotidal.node.events import (
    Appended,
    ConnectionLost,
    ConnectionOpened,
    Event,
    LogFailed,
    LogOpened,
    LogsMeasured,
    Persisted,
    ReadDone,
    Received,
    Request,
    ShutdownRequested,
    Started,
    StartMoved,
    Ticked,
    TimeFound,
)
from cotidal.node.state import NodeConfig, NodeState
from cotidal.node.view import NodeView
from cotidal.values import Millis


class Node:
    """A broker and controller in one, as a machine."""

    __slots__ = ("_state", "_view")

    def __init__(self, config: NodeConfig, entropy: Entropy) -> None:
        self._state = NodeState(config, entropy)
        self._state.controller = ControllerDuty(self._state)
        self._view = NodeView(self._state)

    def step(self, event: Event, now: Millis) -> tuple[Effect, ...]:
        state = self._state
        state.now = now
        match event:
            case Received():
                self._on_received(event)
            case Appended():
                produce.on_log_appended(state, event)
            case ReadDone():
                fetch.on_read_done(state, event)
            case Ticked(wall):
                state.wall = wall
                self._on_ticked()
            case ConnectionOpened(connection, listener, peer):
                state.connections[connection] = Connection(
                    connection, listener=listener, peer=peer, unblocked=state.unblocked
                )
            case ConnectionLost(connection):
                self._on_connection_lost(event)
            case Persisted():
                controller.on_persisted(state, event)
            case LogOpened():
                publishing.on_opened(state, event)
                controller.follow(state)
            case LogFailed():
                publishing.on_failed(state, event)
                controller.follow(state)
            case TimeFound():
                offsets.on_time_found(state, event)
            case StartMoved():
                offsets.on_log_start_moved(state, event)
            case LogsMeasured():
                self._on_logs_measured(event)
            case Started(wall=wall):
                state.wall = wall
                controller.start(state, event)
                housekeeping.start(state)
            case ShutdownRequested():
                self._on_shutdown_requested()
            case _:
                assert_never(event)
        return self._finish()

    def next_deadline(self) -> Millis | None:
        state = self._state
        due = None
        for deadline in (
            fetch.next_deadline(state),
            produce.next_deadline(state),
            housekeeping.next_deadline(state),
        ):
            if deadline is not None and (due is None or deadline < due):
                due = deadline
        return due

    def _finish(self) -> tuple[Effect, ...]:
        """Everything that is done once for all that happened in a step."""
        state = self._state
        while True:
            if state.dirty_fetches:
                fetch.evaluate_dirty(state)
            if state.again:
                again, state.again = state.again, []
                for slot in again:
                    self._answer_from_image(slot, may_create=False)
            if not state.unblocked:
                break
            self._begin_unblocked()
        if state.touched:
            produce.append_touched(state)
        effects = tuple(state.out)
        state.out.clear()
        return effects

    # Requests -----------------------------------------------------------------------------------

    def _on_received(self, event: Received) -> None:
        state = self._state
        connection = state.connections.get(event.connection)
        if connection is None:  # its loss overtook its last bytes
            return
        state.wall = connection.wall = event.wall
        for request in event.requests:
            if connection.queued or not connection.may_begin(request.api_key):
                connection.queued.append(request)
            else:
                self._begin(connection, request)
        connection.regulate(state.out)

    def _begin_unblocked(self) -> None:
        """Begin what waited behind requests that are answered now."""
        unblocked = tuple(self._state.unblocked)
        self._state.unblocked.clear()
        for connection in unblocked:
            queued = connection.queued
            while queued and connection.may_begin(queued[0].api_key):
                self._begin(connection, queued.popleft())
            connection.regulate(self._state.out)

    def _begin(self, connection: Connection, request: Request) -> None:
        state = self._state
        if request.api_key == PRODUCE:
            message = cast("ProduceRequest", request.message)
            if message.acks == 0:
                produce.begin_unacknowledged(state, connection, message, request.api_version)
            else:
                produce.begin(state, connection.open_slot(request), message, connection.wall)
            return
        slot = connection.open_slot(request)
        begin = _DATA_PLANE.get(request.api_key)
        if begin is not None:
            begin(state, slot, request.message)
            return
        api = APIS.get(request.api_key)
        if api is None:
            reason = f"API key {request.api_key} is not served"
            state.out.append(CloseConnection(connection.id, reason))
        elif api.owner is Owner.CONTROLLER:
            self._decide(slot)
        else:
            self._answer_from_image(slot, may_create=True)

    def _answer_from_image(self, slot: Slot, *, may_create: bool) -> None:
        """BROKER and CONNECTION APIs: answered from the committed image."""
        request = slot.request
        asked = self._asked(slot)
        if may_create and request.api_key == ApiKey.METADATA and self._create_missing(slot, asked):
            return
        reply = handler(request.api_key).answer(request.message, asked, self._view)
        slot.connection.answer(slot, reply, self._state.out)

    def _create_missing(self, slot: Slot, asked: Asked) -> bool:
        """Topics that a Metadata request may bring into being; it is answered when they are."""
        message = cast("MetadataRequest", slot.request.message)
        missing = metadata_api.missing_topics(message, asked, self._view)
        records: list[Any] = []
        for name in missing:
            decided = decide_auto_create(self._state.controller.controller, name)
            if not isinstance(decided, Refusal):
                records.extend(decided)
        if not records:
            return False
        controller.propose(self._state, tuple(records), AnswerAgain(slot))
        return True

    def _decide(self, slot: Slot) -> None:
        request = slot.request
        decision = handler(request.api_key).decide(
            request.message, self._asked(slot), self._state.controller.controller
        )
        controller.propose(self._state, decision.records, Answer(slot, decision.reply))

    def _asked(self, slot: Slot) -> Asked:
        connection = slot.connection
        request = slot.request
        return Asked(request.api_version, request.client_id, connection.listener, connection.wall)

    # Everything else ----------------------------------------------------------------------------

    def _on_connection_lost(self, event: ConnectionLost) -> None:
        state = self._state
        connection = state.connections.pop(event.connection, None)
        if connection is not None:
            connection.lose()

    def _on_ticked(self) -> None:
        state = self._state
        fetch.on_ticked(state)
        if state.parked_produces:
            produce.on_ticked(state)
        housekeeping.on_ticked(state)

    def _on_logs_measured(self, event: LogsMeasured) -> None:
        slot = self._state.take_read(event.token, Slot)
        reply = log_dirs_api.response(
            cast("DescribeLogDirsRequest", slot.request.message),
            log_directory=self._state.config.log_directory,
            sizes=event.sizes,
            total_bytes=event.total_bytes,
            usable_bytes=event.usable_bytes,
        )
        slot.connection.answer(slot, reply, self._state.out)

    def _on_shutdown_requested(self) -> None:
        """With one replica there is nobody to hand a partition to: stop at once."""
        state = self._state
        if state.stopping:
            return
        state.stopping = True
        for partition, hosted in state.hosted.items():
            replica = hosted.replica
            if replica.opened and len(replica.producers):
                snapshot = replica.producers.snapshot(offset=replica.next_offset)
                state.out.append(SaveProducers(partition, snapshot))
        housekeeping.save_high_watermarks(state)
        state.out.append(Note("info", "stopping"))
        state.out.append(Stop(state.controller.broker_epoch))


def _begin_log_dirs(state: NodeState, slot: Slot, _: DescribeLogDirsRequest) -> None:
    state.out.append(MeasureLogs(state.next_read_token(slot)))


_DATA_PLANE: Final[dict[int, Callable[[NodeState, Slot, Any], None]]] = {
    int(ApiKey.FETCH): fetch.begin,
    int(ApiKey.LIST_OFFSETS): offsets.begin_list,
    int(ApiKey.DELETE_RECORDS): offsets.begin_delete,
    int(ApiKey.OFFSET_FOR_LEADER_EPOCH): offsets.begin_epoch_ends,
    int(ApiKey.INIT_PRODUCER_ID): controller.begin_init_producer_id,
    int(ApiKey.DESCRIBE_LOG_DIRS): _begin_log_dirs,
}
