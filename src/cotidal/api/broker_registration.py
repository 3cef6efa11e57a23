"""BrokerRegistration (key 62), versions 0-4.

A broker says who it is, and gets the epoch of this life. KIP-631; KIP-858 directories from 2 on;
KIP-966 the epoch of its last clean shutdown from 3 on. Features whose oldest level is 0 may stand
in version 4 only, so that an older broker offers none of them.

Not there: brokers that migrate from ZooKeeper; they are refused.
"""

from __future__ import annotations

from cotidal.api.active import Active
from cotidal.api.asked import Asked
from cotidal.core.cluster.controller import Controller, Decided
from cotidal.core.cluster.decide.brokers import Registration
from cotidal.core.cluster.image import Endpoint, FeatureRange, MetadataRecord
from cotidal.core.cluster.sessions import decide_registration
from cotidal.core.machine import Decision
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.metadata import RegisterBrokerRecord
from cotidal.messages.rpc.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from cotidal.values import BrokerEpoch, NodeId


def decide(
    request: BrokerRegistrationRequest, asked: Asked, controller: Controller, active: Active
) -> Decision[MetadataRecord, BrokerRegistrationResponse]:
    decided = _decide(request, controller, active)
    if isinstance(decided, Refusal):
        return Decision((), BrokerRegistrationResponse(error_code=decided.error))
    registered = decided[0]
    assert isinstance(registered, RegisterBrokerRecord)
    return Decision(decided, BrokerRegistrationResponse(broker_epoch=registered.broker_epoch))


def _decide(request: BrokerRegistrationRequest, controller: Controller, active: Active) -> Decided:
    if request.cluster_id != active.cluster_id:
        return Refusal(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"broker {request.broker_id} belongs to cluster {request.cluster_id}",
        )
    if request.is_migrating_zk_broker:
        return Refusal(ErrorCode.INVALID_REGISTRATION, "there is no migration from ZooKeeper")
    return decide_registration(
        controller,
        active.duties.sessions,
        Registration(
            node_id=NodeId(request.broker_id),
            incarnation_id=request.incarnation_id,
            endpoints=tuple(Endpoint(*listener) for listener in request.listeners),
            rack=request.rack,
            log_dirs=request.log_dirs,
            features=tuple(FeatureRange(*feature) for feature in request.features),
            previous_epoch=BrokerEpoch(request.previous_broker_epoch),
        ),
        now=active.now,
        end_offset=active.end_offset,
    )
