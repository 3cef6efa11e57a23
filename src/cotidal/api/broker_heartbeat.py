"""BrokerHeartbeat (key 63), versions 0-2.

A broker lives, and says how far it has applied the metadata log; it is told whether it takes part.
KIP-631; KIP-858 directories that failed from 1 on; directories that take nothing new in 2.

Not there: nothing of the protocol.
"""

from __future__ import annotations

from cotidal.api.active import Active
from cotidal.api.asked import Asked
from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.brokers import Heartbeat
from cotidal.core.cluster.image import MetadataRecord
from cotidal.core.cluster.sessions import decide_beat
from cotidal.core.machine import Decision
from cotidal.errors import Refusal
from cotidal.messages.rpc.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from cotidal.values import BrokerEpoch, NodeId, Offset


def decide(
    request: BrokerHeartbeatRequest, asked: Asked, controller: Controller, active: Active
) -> Decision[MetadataRecord, BrokerHeartbeatResponse]:
    decided = decide_beat(
        controller,
        active.duties.sessions,
        Heartbeat(
            node_id=NodeId(request.broker_id),
            epoch=BrokerEpoch(request.broker_epoch),
            metadata_offset=Offset(request.current_metadata_offset),
            want_fence=request.want_fence,
            want_shutdown=request.want_shut_down,
            offline_log_dirs=request.offline_log_dirs,
            cordoned_log_dirs=request.cordoned_log_dirs,
        ),
        now=active.now,
        end_offset=active.end_offset,
    )
    if isinstance(decided, Refusal):
        return Decision((), BrokerHeartbeatResponse(error_code=decided.error))
    reply = BrokerHeartbeatResponse(
        is_caught_up=decided.caught_up,
        is_fenced=decided.fenced,
        should_shut_down=decided.should_shut_down,
    )
    return Decision(decided.records, reply)
