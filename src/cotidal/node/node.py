"""One node: the machines and everything between them. Pure. ``step(event, now) -> effects``.

A step begins requests and moves machines. At its end (``_finish``), once for everything that
happened in it, and again until nothing is left to do:

    evaluate_dirty    every parked fetch that was woken, once
    begin unblocked   requests that stood behind what has now been answered
    pump              what is due to be said to other nodes, of each kind together

and last ``append_touched``: one Append per partition for all batches that were admitted. Whoever
drives the node obeys the effects in order and tells it their outcome as events.
Owns of the state: connections, unblocked, again, inward, control_moved, control_deadline, stopping.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, assert_never, cast

from cotidal.api.asked import Asked
from cotidal.api.quorum_talk import is_metadata_fetch
from cotidal.api.registry import APIS, INTERNAL, Owner, handler, refusals
from cotidal.core.cluster.decide.topics import decide_auto_create
from cotidal.core.machine import Entropy
from cotidal.core.quorum.events import ShutdownAsked
from cotidal.core.quorum.events import Ticked as QuorumTicked
from cotidal.errors import Refusal
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.fetch import FetchRequest
from cotidal.messages.rpc.produce import ProduceRequest
from cotidal.node import (
    acks,
    answers,
    chronicle,
    controller,
    coordination,
    coordinators,
    decisions,
    deletions,
    directories,
    doubts,
    enrolment,
    fetch,
    fetchers,
    housekeeping,
    housing,
    lifecycle,
    markers,
    offline,
    offsets,
    produce,
    producer_ids,
    proposals,
    publishing,
    quorum,
    quotas,
    standing,
    transactions,
    verification,
    vitals,
    voters,
)
from cotidal.node.connections import PRODUCE, Connection, Slot
from cotidal.node.coordinators import CoordinatorLog
from cotidal.node.decisions import AnswerAgain, ControllerDuty
from cotidal.node.effects import (
    CallToken,
    CloseConnection,
    Effect,
    Note,
    SaveProducers,
)
from cotidal.node.events import (
    Appended,
    CallFailed,
    ConnectionLost,
    ConnectionOpened,
    DirectoryFailed,
    Event,
    LogFailed,
    LogHoused,
    LogOpened,
    LogsMeasured,
    LogsMoved,
    PeerConnected,
    PeerLost,
    Persisted,
    ReadDone,
    Received,
    Replied,
    Request,
    ShutdownRequested,
    SnapshotWritten,
    Started,
    StartMoved,
    Ticked,
    TimeFound,
    TimeSpent,
)
from cotidal.node.quorum import MetadataReader, QuorumDuty
from cotidal.node.state import NodeConfig, NodeState, RecordInspector
from cotidal.node.tally import Tally
from cotidal.node.view import NodeView
from cotidal.values import BrokerEpoch, Millis, Uuid


class Node:
    """A broker and controller in one, as a machine."""

    __slots__ = ("_state", "_view")

    def __init__(
        self,
        config: NodeConfig,
        entropy: Entropy,
        reader: MetadataReader,
        inspect: RecordInspector,
        coordinator_log: CoordinatorLog,
        events: chronicle.EventsWriter | None = None,
    ) -> None:
        """``reader``, ``inspect`` and ``coordinator_log`` know bytes, which a node itself does not;
        ``events`` makes those of ``__cotidal_events``: without it nothing is told there."""
        state = self._state = NodeState(config, entropy)
        state.inspect = inspect
        state.controller = ControllerDuty()
        state.coordinators = coordination.duty(state, coordinator_log)
        state.quorum = QuorumDuty(state, reader)
        state.life = lifecycle.Life()
        state.chronicle = chronicle.Chronicle(events)
        state.producer_ids = producer_ids.ProducerIds()
        state.markers = transactions.Markers()
        state.enrolment = enrolment.Enrolment()
        state.quotas = quotas.Quotas()
        self._view = NodeView(state)

    def step(self, event: Event, now: Millis) -> tuple[Effect, ...]:
        state = self._state
        state.now = now
        match event:
            case Received():
                self._on_received(event)
            case Appended():
                produce.on_log_appended(state, event)
            case ReadDone():
                answers.on_read_done(state, event)
            case Replied(token, message):
                answers.on_replied(state, token, message)
            case CallFailed():
                answers.on_call_failed(state, event)
            case Ticked(wall):
                state.wall = wall
                state.control_moved = True
                self._on_ticked()
            case ConnectionOpened(connection, listener, peer):
                state.connections[connection] = Connection(
                    connection, listener=listener, peer=peer, unblocked=state.unblocked
                )
            case TimeSpent():
                quotas.on_time_spent(state, event)
            case ConnectionLost(connection):
                self._on_connection_lost(event)
            case Persisted():
                quorum.on_persisted(state, event)
            case SnapshotWritten():
                quorum.on_snapshot_written(state, event)
            case PeerConnected(peer):
                doubts.on_connected(state, peer)
                quorum.on_peer(state, event)
            case PeerLost(peer, refused):
                doubts.on_lost(state, peer, refused=refused)
                quorum.on_peer(state, event)
                controller.probe_broker(state, peer)
            case LogOpened():
                publishing.on_opened(state, event)
                lifecycle.on_logs_open(state)
                decisions.follow(state)
            case LogFailed():
                offline.on_failed(state, event)
                lifecycle.on_logs_open(state)
                decisions.follow(state)
            case DirectoryFailed():
                offline.on_directory_failed(state, event)
                lifecycle.on_directory_failed(state)
            case TimeFound():
                offsets.on_time_found(state, event)
            case StartMoved():
                deletions.on_log_start_moved(state, event)
            case LogsMeasured():
                directories.on_measured(state, event)
            case LogsMoved():
                directories.on_moved(state, event)
            case LogHoused():
                housing.on_housed(state, event)
            case Started(wall=wall):
                state.wall = wall
                housekeeping.start(state)
                state.next_shrink = Millis(now + proposals.shrink_interval(state))
                lifecycle.start(
                    state,
                    incarnation=event.incarnation,
                    previous_epoch=BrokerEpoch(event.previous_broker_epoch),
                )
                enrolment.start(state, event.incarnation)
                quorum.start(state, event)
            case ShutdownRequested():
                self._on_shutdown_requested()
            case _:
                assert_never(event)
        return self._finish()

    def next_deadline(self) -> Millis | None:
        state = self._state
        if state.control_moved:
            state.control_moved = False
            state.control_deadline = _earliest(
                quorum.next_deadline(state),
                controller.next_deadline(state),
                housekeeping.next_deadline(state),
                chronicle.next_deadline(state),
            )
        # After every turn of a broker: what has nothing to wait for is not asked.
        return _earliest(
            state.control_deadline,
            fetch.next_deadline(state) if state.deadlines else None,
            acks.next_deadline(state) if state.parked_produces else None,
            deletions.next_deadline(state) if state.parked_deletes else None,
            lifecycle.next_deadline(state),
            enrolment.next_deadline(state) if state.enrolment.is_due else None,
            state.isr_retry_at,
            state.next_shrink,
            coordinators.next_deadline(state),
            state.markers.retry_at,
            verification.next_deadline(state) if state.postponed else None,
            state.housing_retry_at if state.housing_due else None,
            quotas.next_deadline(state) if state.quotas.muted else None,
            state.fetcher_wake,
        )

    def vitals(self, now: Millis, *, partitions_max: int) -> vitals.Vitals:
        """How the node is; see there."""
        return vitals.read(self._state, now, partitions_max=partitions_max)

    @property
    def tally(self) -> Tally:
        return self._state.tally

    @property
    def topic_names(self) -> Mapping[Uuid, str]:
        """By their ids, as far as they are committed here."""
        return self._state.controller.committed.topic_names

    def _finish(self) -> tuple[Effect, ...]:
        """Everything that is done once for all that happened in a step."""
        state = self._state
        while True:
            if state.faulted:
                offline.on_faults(state)
            if state.coordinators_due:
                coordinators.pump(state)
            if state.dirty_fetches:
                fetch.evaluate_dirty(state)
            if state.again:
                again, state.again = state.again, []
                for slot in again:
                    self._answer_from_image(slot, may_create=False)
            if state.unblocked:
                self._begin_unblocked()
            lifecycle.pump(state)
            if state.enrolment.is_due:
                enrolment.pump(state)
            if state.fetch_due:
                fetchers.pump(state)
            if state.isr_proposals:
                proposals.pump(state)
            if state.housing_due:
                housing.pump(state)
            if state.markers.due:
                transactions.pump(state)
            if state.calls_to_self or state.inward.replies:
                self._talk_to_self()
            elif not (
                state.unblocked
                or state.dirty_fetches
                or state.faulted
                or state.coordinators_due
                or state.markers.due
            ):
                break
        if state.gone and not state.stopping:
            self._stop()
        if state.touched:
            produce.append_touched(state)
        effects = tuple(state.out)
        state.out.clear()
        return effects

    def _talk_to_self(self) -> None:
        """Calls to this very node, and their answers."""
        state = self._state
        asked, state.calls_to_self = state.calls_to_self, []
        for call in asked:
            request = Request(call.api_key, call.api_version, call.token, None, call.message)
            state.inward.wall = state.wall
            self._begin(state.inward, request)
        replies, state.inward.replies = state.inward.replies, []
        for token, reply in replies:
            answers.on_replied(state, CallToken(token), reply)

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
        if state.quotas.active and quotas.on_request(state, connection, request):
            slot = connection.open_slot(request)
            connection.answer(slot, refusals().over_quota(request.message), state.out)
            return
        if request.api_key == PRODUCE:
            message = cast("ProduceRequest", request.message)
            if message.acks == 0:
                produce.begin_unacknowledged(state, connection, message, request.api_version)
            else:
                # The slot waits for acknowledgements; the records need not wait with it.
                kept = (PRODUCE, request.api_version, request.correlation_id, None, None)
                bare = tuple.__new__(Request, kept)
                slot = connection.open_slot(bare)
                if message.transactional_id is None or not verification.begin(
                    state, slot, message, connection.wall
                ):
                    produce.begin(state, slot, message, connection.wall)
            return
        slot = connection.open_slot(request)
        begin = _BEGIN.get(request.api_key)
        if begin is not None:
            begin(state, slot, request.message)
            return
        api = APIS.get(request.api_key) or INTERNAL.get(request.api_key)
        if api is None:
            reason = f"API key {request.api_key} is not served"
            state.out.append(CloseConnection(connection.id, reason))
        elif api.owner is Owner.CONTROLLER or api.owner is Owner.ACTIVE:
            controller.begin(state, slot, api.owner)
        elif api.owner is Owner.COORDINATOR:
            coordination.begin(state, slot, slot.asked, self._view)
        else:
            self._answer_from_image(slot, may_create=True)

    def _answer_from_image(self, slot: Slot, *, may_create: bool) -> None:
        """BROKER and CONNECTION APIs: answered from the committed image."""
        request = slot.request
        asked = slot.asked
        if may_create and request.api_key in _CREATING and self._create_missing(slot, asked):
            return
        reply = handler(request.api_key).answer(request.message, asked, self._view)
        slot.connection.answer(slot, reply, self._state.out)

    def _create_missing(self, slot: Slot, asked: Asked) -> bool:
        """Topics that a request may bring into being; it is answered when they are."""
        decider = self._state.controller.controller
        creating = handler(slot.request.api_key)
        missing = creating.missing_topics(slot.request.message, asked, self._view)
        if not missing:
            return False
        if decider is None:
            return controller.create_elsewhere(self._state, slot, missing)
        records: list[Any] = []
        self._state.tally.controller_events += len(missing)
        for name in missing:
            decided = decide_auto_create(decider, name)
            if not isinstance(decided, Refusal):
                records.extend(decided)
        if not records:
            return False
        controller.propose(self._state, tuple(records), AnswerAgain(slot))
        return True

    # Everything else ----------------------------------------------------------------------------

    def _on_connection_lost(self, event: ConnectionLost) -> None:
        state = self._state
        connection = state.connections.pop(event.connection, None)
        if connection is not None:
            connection.lose()
            if connection.broker is not None:
                controller.probe_broker(state, connection.broker)

    def _on_ticked(self) -> None:
        state = self._state
        fetch.on_ticked(state)
        quotas.on_ticked(state)
        if state.parked_produces:
            acks.on_ticked(state)
        if state.parked_deletes:
            deletions.on_ticked(state)
        housekeeping.on_ticked(state)
        chronicle.on_ticked(state)
        proposals.on_ticked(state)
        coordinators.on_ticked(state)
        transactions.on_ticked(state)
        for owner in verification.due_again(state):
            if not verification.ask(state, owner):
                answers.on_unanswered(state, owner)
        fetchers.on_ticked(state)
        controller.on_ticked(state)
        quorum.step(state, QuorumTicked())

    def _on_shutdown_requested(self) -> None:
        """SIGTERM: hand over what can be handed over, then stop."""
        lifecycle.leave(self._state)

    def _stop(self) -> None:
        state = self._state
        state.stopping = True
        for partition, hosted in state.hosted.items():
            replica = hosted.replica
            producers = replica.producers
            is_open = replica.offline_reason is None and replica.is_steady
            if is_open and len(producers) and producers.transactions.is_settled:
                snapshot = producers.snapshot(offset=replica.next_offset)
                state.out.append(SaveProducers(partition, snapshot))
        housekeeping.save_high_watermarks(state)
        state.out.append(Note("info", "stopping"))
        quorum.step(state, ShutdownAsked())


def _earliest(*deadlines: Millis | None) -> Millis | None:
    earliest: Millis | None = None
    for deadline in deadlines:
        if deadline is not None and (earliest is None or deadline < earliest):
            earliest = deadline
    return earliest


def _begin_fetch(state: NodeState, slot: Slot, request: FetchRequest) -> None:
    names = [point.name for point in state.config.controller_endpoints]
    if slot.connection.listener in names and is_metadata_fetch(request):
        quorum.begin(state, slot, request)
    else:
        fetch.begin(state, slot, request)


_CREATING: Final = (ApiKey.METADATA, ApiKey.FIND_COORDINATOR)
"""Whoever asks these may bring topics into being."""

_BEGIN: Final[dict[int, Callable[[NodeState, Slot, Any], None]]] = {
    int(ApiKey.FETCH): _begin_fetch,
    int(ApiKey.VOTE): quorum.begin,
    int(ApiKey.BEGIN_QUORUM_EPOCH): quorum.begin,
    int(ApiKey.END_QUORUM_EPOCH): quorum.begin,
    int(ApiKey.FETCH_SNAPSHOT): quorum.begin,
    int(ApiKey.UPDATE_RAFT_VOTER): quorum.begin,
    int(ApiKey.DESCRIBE_QUORUM): voters.begin_describe,
    int(ApiKey.ADD_RAFT_VOTER): voters.begin_add,
    int(ApiKey.REMOVE_RAFT_VOTER): voters.begin_remove,
    int(ApiKey.UPDATE_FEATURES): voters.begin_features,
    int(ApiKey.LIST_OFFSETS): offsets.begin_list,
    int(ApiKey.DELETE_RECORDS): deletions.begin,
    int(ApiKey.OFFSET_FOR_LEADER_EPOCH): offsets.begin_epoch_ends,
    int(ApiKey.ALTER_REPLICA_LOG_DIRS): directories.begin_moves,
    int(ApiKey.DESCRIBE_LOG_DIRS): directories.begin_measure,
    int(ApiKey.WRITE_TXN_MARKERS): markers.begin,
    int(ApiKey.DESCRIBE_REPLICAS): standing.begin,
}
