"""A broker's life under its controller. Pure. KIP-631.

    Unregistered   asks the active controller for an epoch               -> Registered
    Registered     fenced; applies metadata up to its own registration,
                   opens its logs, then asks to be unfenced               -> Running
    Running        takes part, and says so every broker.heartbeat.interval.ms; told that the
                   controller does not know it                            -> Unregistered
    Leaving        asks to be let go: leaderships move away first         -> stopped
                   also when no controller has answered for LEAVE_ALONE_MS, or none can

Everything is driven by what happens; the heartbeat's interval is only for when nothing does, and a
heartbeat goes early with whatever else a node is awake for (core.machine.ripens).
Owns of the state: life, serving, gone.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from cotidal.api import to_controller as api
from cotidal.core.cluster.decide.features import OFFERED, refuse_levels
from cotidal.core.cluster.image import Image, MetadataRecord
from cotidal.core.machine import ripens
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.broker_heartbeat import BrokerHeartbeatResponse
from cotidal.messages.rpc.broker_registration import BrokerRegistrationResponse
from cotidal.node import calls, doubts, publishing
from cotidal.node.effects import Note, Serve
from cotidal.node.state import NodeState
from cotidal.values import NO_BROKER_EPOCH, BrokerEpoch, Millis, Offset, Uuid

RETRY_MS: Final = 50
TIMEOUT_MS: Final = 1_500
"""Half of a session; a slow link may need it all, for a new connection and the answer."""
LEAVE_ALONE_MS: Final = 1_500
"""A controller that fails is replaced in a tenth of this. When the whole cluster stops, the last
ones have nobody left to ask."""


class Stage(Enum):
    UNREGISTERED = "unregistered"
    REGISTERED = "registered"
    RUNNING = "running"
    LEAVING = "leaving"
    GONE = "gone"


class Registering(NamedTuple):
    """A registration under way."""


class Beating(NamedTuple):
    """A heartbeat under way."""

    asked_to_fence: bool
    failed_directories: int
    """How many it names."""


class Life:
    __slots__ = (
        "incarnation",
        "is_published",
        "is_under_way",
        "leave_by",
        "next_beat",
        "previous_epoch",
        "refused",
        "ripe_at",
        "stage",
    )

    def __init__(self) -> None:
        self.stage = Stage.UNREGISTERED
        self.incarnation = Uuid(bytes(16))
        self.previous_epoch = NO_BROKER_EPOCH
        self.refused: str | None = None
        """Why our last registration was: told once, and tried again many times a second."""
        self.is_under_way = False
        """One word to the controller at a time."""
        self.is_published = False
        """Our own registration is applied: what follows it concerns this incarnation."""
        self.next_beat: Millis | None = None
        """When to speak to the controller again."""
        self.ripe_at = Millis(0)
        """From then on it is done with whatever else happens here."""
        self.leave_by: Millis | None = None
        """While leaving: when to go without having been let go."""

    def beat_at(self, at: Millis) -> None:
        self.next_beat = self.ripe_at = at

    def beat_within(self, interval_ms: int, now: Millis) -> None:
        self.next_beat = Millis(now + interval_ms)
        self.ripe_at = ripens(now, interval_ms)


def start(state: NodeState, *, incarnation: Uuid, previous_epoch: BrokerEpoch) -> None:
    if state.config.is_broker:
        state.life.incarnation = incarnation
        state.life.previous_epoch = previous_epoch
        state.life.beat_at(state.now)


def pump(state: NodeState) -> None:
    """At the end of a step: say what is due to be said."""
    life = state.life
    if life.stage is Stage.LEAVING and _is_alone(state):
        _go(state)
    if life.is_under_way or life.next_beat is None or state.now < life.ripe_at:
        return
    if state.controller.leader is None or life.stage is Stage.GONE:
        return
    if life.stage is Stage.UNREGISTERED:
        _register(state)
    else:
        _beat(state)


def on_metadata(state: NodeState) -> None:
    """Metadata has been applied: perhaps our own registration."""
    life = state.life
    if life.stage is Stage.UNREGISTERED or life.is_published:
        return
    me = state.controller.committed.brokers.get(state.config.node_id)
    if me is not None and me.epoch == state.controller.broker_epoch:
        life.is_published = True
        publishing.publish_everything(state)
        on_logs_open(state)


def on_logs_open(state: NodeState) -> None:
    """Every log is open: time to be unfenced."""
    if state.life.stage is Stage.REGISTERED and has_opened_all(state):
        state.life.beat_at(state.now)


def on_committed(state: NodeState, records: list[MetadataRecord]) -> None:
    """A prefix of the metadata log has been replayed into the committed image."""
    if not state.config.is_broker:
        return
    if state.life.is_published:
        publishing.publish(state, records)
    on_metadata(state)


def on_loaded(state: NodeState, before: Image) -> None:
    """A snapshot has taken the place of the committed image."""
    if not state.config.is_broker:
        return
    if state.life.is_published:
        publishing.publish_difference(state, before)
    on_metadata(state)


def on_directory_failed(state: NodeState) -> None:
    """The controller is told now, not when the interval is over. A node that is no broker has
    nothing to tell, and no heartbeats to tell it with."""
    if state.config.is_broker:
        state.life.beat_at(state.now)


def on_registered(state: NodeState, reply: BrokerRegistrationResponse) -> None:
    life = state.life
    life.is_under_way = False
    if reply.error_code != 0:
        why = ErrorCode(reply.error_code).name
        if reply.error_code == ErrorCode.UNSUPPORTED_VERSION:
            levels = refuse_levels(state.controller.committed, "this broker", OFFERED)
            why = levels.text if levels is not None else why
        if why != life.refused:
            state.out.append(Note("warning", f"the controller refuses our registration: {why}"))
        life.refused = why
        life.beat_at(Millis(state.now + RETRY_MS))
        return
    life.stage = Stage.REGISTERED
    state.controller.broker_epoch = BrokerEpoch(reply.broker_epoch)
    life.beat_within(_interval(state), state.now)
    on_metadata(state)


def on_beat_answered(state: NodeState, beat: Beating, reply: BrokerHeartbeatResponse) -> None:
    life = state.life
    life.is_under_way = False
    life.beat_within(_interval(state), state.now)
    if reply.error_code in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED):
        # Unregistered, or registered by another process of our id: ask for an epoch again. While
        # that other one lives, the controller refuses us; nothing here is served meanwhile.
        state.out.append(Note("warning", "the controller does not know us: registering again"))
        life.stage = Stage.UNREGISTERED
        life.is_published = False
        life.beat_at(Millis(state.now + RETRY_MS))
        return
    if reply.error_code != 0:
        life.beat_at(Millis(state.now + RETRY_MS))
        return
    if life.stage is Stage.LEAVING:
        life.leave_by = Millis(state.now + LEAVE_ALONE_MS)
        if reply.should_shut_down:
            _go(state)
        else:
            life.beat_at(Millis(state.now + RETRY_MS))
    elif not reply.is_fenced and life.stage is Stage.REGISTERED:
        life.stage = Stage.RUNNING
        if not state.serving:
            state.serving = True
            state.out.append(Serve())
    elif beat.failed_directories < len(state.failed_directories):
        life.beat_at(state.now)  # another one has failed since
    elif reply.is_fenced and life.stage is Stage.RUNNING and not beat.asked_to_fence:
        life.beat_at(Millis(state.now + RETRY_MS))  # fenced while silent: ask to come back


def on_failed(state: NodeState) -> None:
    """No answer: the controller may have moved. Ask whoever it is then."""
    state.life.is_under_way = False
    state.life.beat_at(Millis(state.now + RETRY_MS))


def has_opened_all(state: NodeState) -> bool:
    """Every log that metadata gives this node has been open, and with that been looked through."""
    return not state.config.is_broker or (state.life.is_published and not state.opening)


def leave(state: NodeState) -> None:
    """SIGTERM: ask to be let go; without a controller or a part in anything, just go."""
    life = state.life
    alone = len(state.controller.committed.brokers) <= 1
    if life.stage is not Stage.RUNNING or state.controller.leader is None or alone:
        _go(state)
        return
    life.stage = Stage.LEAVING
    life.beat_at(state.now)
    life.leave_by = Millis(state.now + LEAVE_ALONE_MS)


def next_deadline(state: NodeState) -> Millis | None:
    life = state.life
    if life.stage is Stage.GONE:
        return None
    if life.is_under_way or life.next_beat is None or state.controller.leader is None:
        return life.leave_by
    return life.next_beat if life.leave_by is None else min(life.next_beat, life.leave_by)


def _is_alone(state: NodeState) -> bool:
    """No controller will let us go: none has answered for long, or none is left."""
    leave_by = state.life.leave_by
    return doubts.is_quorum_gone(state) or (leave_by is not None and state.now >= leave_by)


def _register(state: NodeState) -> None:
    config = state.config
    message = api.registration(
        node_id=config.node_id,
        cluster_id=config.cluster_id,
        incarnation_id=state.life.incarnation,
        listeners=tuple(config.endpoints),
        features=OFFERED,
        rack=config.rack,
        log_dirs=_working(state),
        previous_epoch=state.life.previous_epoch,
    )
    _say(state, ApiKey.BROKER_REGISTRATION, api.REGISTRATION_VERSION, message, Registering())


def _beat(state: NodeState) -> None:
    life = state.life
    # A running broker that opens the log of a new topic takes part all the while.
    ready = life.stage is not Stage.REGISTERED or has_opened_all(state)
    message = api.heartbeat(
        node_id=state.config.node_id,
        broker_epoch=state.controller.broker_epoch,
        metadata_offset=Offset(state.quorum.applied - 1),
        want_fence=not ready,
        want_shut_down=life.stage is Stage.LEAVING,
        offline_log_dirs=tuple(state.failed_directories),
    )
    beat = Beating(not ready, len(state.failed_directories))
    _say(state, ApiKey.BROKER_HEARTBEAT, api.HEARTBEAT_VERSION, message, beat)


def _working(state: NodeState) -> tuple[Uuid, ...]:
    """The log directories that this broker has."""
    failed = state.failed_directories
    return tuple(each for each in state.config.log_directories if each not in failed)


def _say(state: NodeState, key: ApiKey, version: int, message: object, owner: object) -> None:
    leader = state.controller.leader
    assert leader is not None
    state.life.is_under_way = True
    calls.call(
        state,
        leader.node_id,
        leader.endpoint,
        lane=calls.CONTROL_LANE,
        api=key,
        version=version,
        message=message,
        timeout_ms=TIMEOUT_MS,
        owner=owner,
    )


def _go(state: NodeState) -> None:
    state.life.stage = Stage.GONE
    state.gone = True


def _interval(state: NodeState) -> int:
    return state.config.number("broker.heartbeat.interval.ms")
