"""AlterPartition (key 56), versions 2-3.

A leader proposes the ISRs of partitions that it leads. KIP-497; KIP-704 recovery state; KIP-903 the
epochs of the members from 3 on. Each partition is changed or refused by itself; a broker epoch that
is not the registered one refuses all of them. A partition that is named twice is refused the second
time.

Not there: nothing of the protocol.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.isr import IsrProposal, Member, decide_isr, refuse_sender
from cotidal.core.cluster.image import MetadataRecord
from cotidal.core.machine import Decision
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from cotidal.values import BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch, Uuid

MEMBER_EPOCHS_SINCE: Final = 3


def decide(
    request: AlterPartitionRequest, asked: Asked, controller: Controller
) -> Decision[MetadataRecord, AlterPartitionResponse]:
    sender = NodeId(request.broker_id)
    refusal = refuse_sender(controller.image, sender, BrokerEpoch(request.broker_epoch))
    if refusal is not None:
        return Decision((), AlterPartitionResponse(error_code=refusal.error))
    records: list[MetadataRecord] = []
    seen: set[tuple[Uuid, int]] = set()
    topics: list[AlterPartitionResponseTopicData] = []
    for topic in request.topics:
        answers: list[AlterPartitionResponsePartitionData] = []
        for each in topic.partitions:
            twice = (topic.topic_id, each.partition_index) in seen
            seen.add((topic.topic_id, each.partition_index))
            proposal = _proposal(topic.topic_id, each, asked.api_version)
            record, answer = _decide_one(controller, sender, proposal, twice=twice)
            if record is not None:
                records.append(record)
            answers.append(answer)
        topics.append(AlterPartitionResponseTopicData(topic.topic_id, tuple(answers)))
    return Decision(tuple(records), AlterPartitionResponse(topics=tuple(topics)))


def _proposal(
    topic_id: Uuid, each: AlterPartitionRequestPartitionData, version: int
) -> IsrProposal:
    if version >= MEMBER_EPOCHS_SINCE:
        members = tuple(
            Member(NodeId(member.broker_id), BrokerEpoch(member.broker_epoch))
            for member in each.new_isr_with_epochs
        )
    else:
        members = tuple(Member(NodeId(node_id)) for node_id in each.new_isr)
    return IsrProposal(
        topic_id,
        each.partition_index,
        LeaderEpoch(each.leader_epoch),
        PartitionEpoch(each.partition_epoch),
        members,
        each.leader_recovery_state,
    )


def _decide_one(
    controller: Controller, sender: NodeId, proposal: IsrProposal, *, twice: bool
) -> tuple[MetadataRecord | None, AlterPartitionResponsePartitionData]:
    number = proposal.partition
    if twice:
        return None, AlterPartitionResponsePartitionData(number, ErrorCode.INVALID_REQUEST)
    decided = decide_isr(controller, sender, proposal)
    if isinstance(decided, Refusal):
        return None, AlterPartitionResponsePartitionData(number, decided.error)
    if decided.error is not ErrorCode.NONE:
        return decided.record, AlterPartitionResponsePartitionData(number, decided.error)
    after = decided.partition
    return decided.record, AlterPartitionResponsePartitionData(
        partition_index=number,
        leader_id=after.leader,
        leader_epoch=after.leader_epoch,
        isr=after.isr,
        leader_recovery_state=after.recovery_state,
        partition_epoch=after.partition_epoch,
    )
