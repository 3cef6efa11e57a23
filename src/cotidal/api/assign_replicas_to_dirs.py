"""AssignReplicasToDirs (key 73), version 0.

A broker says in which of its directories it keeps which replicas. KIP-858. Each partition is
changed or refused by itself; a broker epoch that is not the registered one refuses all of them. A
partition that is named twice is refused the second time.

Not there: nothing of the protocol.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.directories import Housed, decide_assign
from cotidal.core.cluster.decide.isr import refuse_sender
from cotidal.core.cluster.image import MetadataRecord
from cotidal.core.machine import Decision
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
)
from cotidal.values import BrokerEpoch, NodeId, Uuid


def decide(
    request: AssignReplicasToDirsRequest, asked: Asked, controller: Controller
) -> Decision[MetadataRecord, AssignReplicasToDirsResponse]:
    sender = NodeId(request.broker_id)
    refusal = refuse_sender(controller.image, sender, BrokerEpoch(request.broker_epoch))
    if refusal is not None:
        return Decision((), AssignReplicasToDirsResponse(error_code=refusal.error))
    records: list[MetadataRecord] = []
    seen: set[tuple[Uuid, int]] = set()
    directories: list[AssignReplicasToDirsResponseDirectoryData] = []
    for directory in request.directories:
        topics: list[AssignReplicasToDirsResponseTopicData] = []
        for topic in directory.topics:
            answers: list[AssignReplicasToDirsResponsePartitionData] = []
            for (number,) in topic.partitions:
                error = ErrorCode.INVALID_REQUEST
                if (topic.topic_id, number) not in seen:
                    seen.add((topic.topic_id, number))
                    housed = Housed(topic.topic_id, number, directory.id)
                    error = _assign(controller, sender, housed, records)
                answers.append(AssignReplicasToDirsResponsePartitionData(number, error))
            topics.append(AssignReplicasToDirsResponseTopicData(topic.topic_id, tuple(answers)))
        directories.append(AssignReplicasToDirsResponseDirectoryData(directory.id, tuple(topics)))
    return Decision(tuple(records), AssignReplicasToDirsResponse(directories=tuple(directories)))


def _assign(
    controller: Controller, sender: NodeId, housed: Housed, records: list[MetadataRecord]
) -> ErrorCode:
    decided = decide_assign(controller, sender, housed)
    if isinstance(decided, Refusal):
        return decided.error
    if decided is not None:
        records.append(decided)
    return ErrorCode.NONE
