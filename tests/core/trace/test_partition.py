"""One partition in lines and in JSON."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from cotidal.core.partition.effects import (
    AdvanceLogStart,
    AppendFetched,
    CompleteAcks,
    EndMoved,
    IsrMember,
    LeadershipLost,
    ProposeIsr,
    Readable,
    RememberAborted,
    RememberEpochs,
    RememberProducers,
    StartOver,
    Truncate,
)
from cotidal.core.partition.epochs import EpochEnd
from cotidal.core.partition.follower import Answered, LeaderEnds, Question
from cotidal.core.partition.leader import Admitted, FollowerFetched, IsrAnswered
from cotidal.core.partition.reading import Diverged, Granted
from cotidal.core.partition.replica import on_log_failed
from cotidal.core.trace import Moment, as_json, line, state_json, state_line
from cotidal.core.trace.partition import PartitionMoment
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.batch import NO_BATCHES, Batches
from cotidal.messages.producers import AbortedTransaction, ProducerSnapshot
from cotidal.values import (
    BrokerEpoch,
    LeaderEpoch,
    NodeId,
    Offset,
    PartitionEpoch,
    ProducerId,
)
from headers import header
from replicas import appointment, epochs_of, fetched, following, leading, nodes, opened

E5, O8, O12 = LeaderEpoch(5), Offset(8), Offset(12)
ASKED = Question(E5, O8, LeaderEpoch(3), Offset(0))
BATCHES = Batches(
    tuple(
        header(base_offset=base, records=records)._replace(leader_epoch=LeaderEpoch(epoch))
        for base, records, epoch in ((8, 2, 3), (10, 1, 3), (11, 1, 5))
    ),
    b"",
)
ANSWER = Answered(ASKED, ErrorCode.NONE, O8, Offset(0), None, NO_BATCHES)
PROPOSAL = ProposeIsr(
    (IsrMember(NodeId(1), BrokerEpoch(101)), IsrMember(NodeId(2), BrokerEpoch(-1))),
    E5,
    PartitionEpoch(9),
)

TOLD: list[tuple[Moment, str]] = [
    (ASKED, "ask epoch=5 offset=8 last-epoch=3"),
    (ANSWER, "answer nothing hw=8"),
    (ANSWER._replace(batches=BATCHES), "answer 8-10@3 11@5 hw=8"),
    (ANSWER._replace(start_offset=Offset(4)), "answer nothing hw=8 start=4"),
    (ANSWER._replace(diverging=EpochEnd(E5, O8)), "answer diverging epoch=5 end=8"),
    (ANSWER._replace(error=ErrorCode(74)), "answer FENCED_LEADER_EPOCH(74)"),
    (LeaderEnds(ASKED, O8, O12), "ends start=8 end=12"),
    (FollowerFetched(NodeId(2), O8, Offset(0), BrokerEpoch(7)), "fetched replica=2 offset=8"),
    (IsrAnswered(PROPOSAL, ErrorCode(107)), "isr-answered INELIGIBLE_REPLICA(107)"),
    (
        IsrAnswered(PROPOSAL, ErrorCode.NONE, E5, PartitionEpoch(10), nodes(1, 2)),
        "isr-answered (1 2)",
    ),
    (Granted(O12), "grant below=12"),
    (Diverged(EpochEnd(E5, O8)), "diverging epoch=5 end=8"),
    (Admitted(O8, O12, True), "write 8-11"),
    (Admitted(O8, Offset(9), False), "duplicate-of 8"),
    (Refusal(ErrorCode(19), "ISR 1 of min 2"), "refuse NOT_ENOUGH_REPLICAS(19) ISR 1 of min 2"),
    (EndMoved(O12), "end-moved 12"),
    (Readable(O12, O8), "readable hw=12 lso=8"),
    (CompleteAcks(Offset(11)), "complete-acks below=11"),
    (LeadershipLost("moved"), "leadership-lost moved"),
    (RememberEpochs(epochs_of((1, 0), (3, 8))), "remember-epochs 1@0 3@8"),
    (RememberProducers(ProducerSnapshot(O8)), "remember-producers 0 below=8"),
    (
        RememberAborted((AbortedTransaction(ProducerId(7), O8, O12, Offset(13)),)),
        "remember-aborted 8-12",
    ),
    (AppendFetched(BATCHES), "append 8-10@3 11@5"),
    (Truncate(O8), "truncate to=8"),
    (StartOver(O8), "start-over at=8"),
    (AdvanceLogStart(O8), "advance-log-start to=8"),
    (PROPOSAL, "propose-isr (1 2)"),
]


@pytest.mark.parametrize(("moment", "said"), TOLD, ids=[said for _, said in TOLD])
def test_each_moment_is_one_line_and_one_json_object(moment: Moment, said: str) -> None:
    assert line(moment) == said
    told = json.loads(json.dumps(as_json(moment)))
    assert told == as_json(moment)
    assert told["what"] == said.split(" ")[0]


def test_no_event_verdict_or_effect_is_forgotten() -> None:
    assert {type(moment) for moment, _ in TOLD} == set(get_args(PartitionMoment))


def test_a_refusal_without_a_sentence_of_its_own_gets_the_tables() -> None:
    assert line(Refusal(ErrorCode.OFFSET_OUT_OF_RANGE)).startswith("refuse OFFSET_OUT_OF_RANGE(1) ")


def test_a_proposal_names_incarnations_to_programs() -> None:
    assert as_json(PROPOSAL) == {
        "what": "propose-isr",
        "isr": [1, 2],
        "broker_epochs": [101, -1],
        "epoch": 5,
        "partition_epoch": 9,
    }


def test_where_a_replica_stands_is_told_by_its_role() -> None:
    leader = leading(end=10, hw=8, told=appointment(isr=(1, 2)))
    assert state_line(leader) == "hw=8 end=10 isr=(1 2)"
    fetched(leader, 3, 10)
    assert state_line(leader) == "hw=8 end=10 isr=(1 2) proposed=(1 2 3)"
    follower = following(start=4, end=10, hw=8, epochs=((1, 4),), leader=2)
    assert state_line(follower) == "start=4 hw=8 end=10 follows=2"
    assert state_line(opened()) == "hw=0 end=0 idle"
    on_log_failed(leader, "disk full")
    assert state_line(leader) == "hw=8 end=10 offline"


def test_programs_are_told_epochs_too() -> None:
    follower = following(start=4, end=10, hw=8, epochs=((1, 4), (3, 6)), leader=2)
    assert json.loads(json.dumps(state_json(follower))) == {
        "partition": "orders-0",
        "start_offset": 4,
        "high_watermark": 8,
        "end_offset": 10,
        "epoch": 5,
        "epochs": [[1, 4], [3, 6]],
        "leader": 2,
    }
