"""ElectLeaders (key 43), versions 0-2.

KIP-183 preferred leaders; KIP-460 unclean elections (type 1) from 1 on, which happen whatever
unclean.leader.election.enable says. Each partition is decided by itself. No partitions named: all
of them, and the answer leaves out those that need no election.

Not there: waiting until brokers have taken over (timeout_ms bounds nothing: the answer comes when
the decision is committed).
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.core.cluster.controller import Controller, Decided
from cotidal.core.cluster.decide.elections import decide_election
from cotidal.core.cluster.decide.leaders import Election
from cotidal.core.cluster.image import MetadataRecord
from cotidal.core.machine import Decision
from cotidal.errors import ErrorCode, Refusal
from cotidal.limits import PARTITIONS_PER_DECISION_MAX
from cotidal.messages.rpc.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

TYPES: Final = {0: Election.PREFERRED, 1: Election.UNCLEAN}


def decide(
    request: ElectLeadersRequest, asked: Asked, controller: Controller
) -> Decision[MetadataRecord, ElectLeadersResponse]:
    election = TYPES.get(request.election_type)
    if election is None:
        return Decision((), ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST))
    everything = request.topic_partitions is None
    wanted = request.topic_partitions or ()
    if everything:
        topics = controller.image.topics.values()
        wanted = tuple(TopicPartitions(topic.name, tuple(topic.partitions)) for topic in topics)
    records: list[MetadataRecord] = []
    seen: set[tuple[str, int]] = set()
    answers: list[ReplicaElectionResult] = []
    for topic, numbers in wanted:
        results: list[PartitionResult] = []
        for number in numbers:
            decided: Decided
            if (topic, number) in seen:
                decided = Refusal(ErrorCode.INVALID_REQUEST, f"{topic}-{number} is named twice")
            elif len(records) == PARTITIONS_PER_DECISION_MAX:
                decided = Refusal(
                    ErrorCode.POLICY_VIOLATION,
                    f"one request elects at most {PARTITIONS_PER_DECISION_MAX} leaders",
                )
            else:
                decided = decide_election(controller, topic, number, election)
            seen.add((topic, number))
            if not isinstance(decided, Refusal):
                records.extend(decided)
                results.append(PartitionResult(number, ErrorCode.NONE, None))
            elif not (everything and decided.error is ErrorCode.ELECTION_NOT_NEEDED):
                results.append(PartitionResult(number, decided.error, decided.text))
        if results or not everything:
            answers.append(ReplicaElectionResult(topic, tuple(results)))
    return Decision(tuple(records), ElectLeadersResponse(replica_election_results=tuple(answers)))
