"""Log directories, asked about and moved between. Pure: the disk measures and moves.

DescribeLogDirs and AlterReplicaLogDirs are answered when it has.
"""

from __future__ import annotations

from typing import cast

from cotidal.api import alter_replica_log_dirs as moves_api
from cotidal.api import describe_log_dirs as log_dirs_api
from cotidal.messages.rpc.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from cotidal.messages.rpc.describe_log_dirs import DescribeLogDirsRequest
from cotidal.node.connections import Slot
from cotidal.node.effects import MeasureLogs, MoveLogs
from cotidal.node.events import LogsMeasured, LogsMoved
from cotidal.node.state import NodeState


def begin_measure(state: NodeState, slot: Slot, _: DescribeLogDirsRequest) -> None:
    state.out.append(MeasureLogs(state.next_read_token(slot)))


def on_measured(state: NodeState, event: LogsMeasured) -> None:
    slot = state.take_read(event.token, Slot)
    reply = log_dirs_api.response(
        cast("DescribeLogDirsRequest", slot.request.message),
        [
            log_dirs_api.Measured(each.path, each.error is not None, *each[2:])
            for each in event.directories
        ],
    )
    slot.connection.answer(slot, reply, state.out)


def begin_moves(state: NodeState, slot: Slot, request: AlterReplicaLogDirsRequest) -> None:
    state.out.append(MoveLogs(state.next_read_token(slot), moves_api.moves(request)))


def on_moved(state: NodeState, event: LogsMoved) -> None:
    slot = state.take_read(event.token, Slot)
    request = cast("AlterReplicaLogDirsRequest", slot.request.message)
    reply = moves_api.response(request, event.errors, state.controller.committed)
    slot.connection.answer(slot, reply, state.out)
