"""Keepers, guests and strays: what they are told is looked at, and they do come into corners."""

from __future__ import annotations

import pytest

from cotidal.core.groups.consumer.pattern import BadPattern, Pattern
from cotidal.errors import ErrorCode
from cotidal.invariants import COMMITS_KEPT, REFUSED_BY_NAME, SOMEBODY_IS_NAMED
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.join_group import JoinGroupRequest, JoinGroupResponse
from cotidal.messages.rpc.metadata import MetadataResponse, MetadataResponseTopic
from cotidal.messages.rpc.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from cotidal.sim import probes as seen
from cotidal.sim.plans import PLANS
from cotidal.sim.run import OTHERS, Run
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.patterns import PATTERNS, WRONG_PATTERNS
from cotidal.sim.workloads.visitor import Question, Visitor, errors_in
from cotidal.values import TopicPartition
from simulated import go_through

ORDERS = TopicPartition("orders", 0)


@pytest.fixture(scope="module")
def run() -> Run:
    run = Run(
        1,
        PLANS["visitors"]._replace(
            faults={}, duties={}, seconds=3, admin_gap_ms=0, nodes=1, replication=1, min_isr=1
        ),
    )
    go_through(run, run.course())
    return run


def test_visitors_are_let_in_and_refused(run: Run) -> None:
    met = run.probes.seen
    assert seen.KEPT_WITHOUT_MEMBERS in met
    assert seen.GROUP_DELETED in met
    for error in (
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ErrorCode.INVALID_TXN_STATE,
    ):
        assert f"a visitor refused with {error.name}" in met


def test_an_offset_that_nobody_committed_is_noticed(run: Run) -> None:
    keeper = run.keepers[0]
    with pytest.raises(Violation, match="never committed") as broken:
        keeper._on_offsets(keeper._groups[-1], told_offset(1 << 40), judging=False)
    assert broken.value.promise == COMMITS_KEPT


def test_an_offset_that_is_not_kept_is_noticed_in_the_end(run: Run) -> None:
    keeper = run.keepers[0]
    assert keeper.judged
    kept = keeper._groups[-1]
    before = dict(kept.offsets)
    kept.offsets[ORDERS] = 7
    with pytest.raises(Violation, match="in the end") as broken:
        keeper._on_offsets(kept, told_offset(-1), judging=True)
    assert broken.value.promise == COMMITS_KEPT
    kept.offsets = before


def told_offset(value: int) -> OffsetFetchResponse:
    told = OffsetFetchResponsePartitions(ORDERS.partition, value)
    topic = OffsetFetchResponseTopics(ORDERS.topic, partitions=(told,))
    return OffsetFetchResponse(groups=(OffsetFetchResponseGroup("g", (topic,)),))


def test_whoever_is_told_of_an_unknown_error_says_so(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor = run.visitors[0]
    reply = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)

    def answered(*asked: object) -> None:
        asked[4](reply)  # type: ignore[operator]

    monkeypatch.setattr(Visitor, "ask", lambda self, *asked: answered(*asked))
    question = Question(ApiKey.JOIN_GROUP, 9, JoinGroupRequest())
    with pytest.raises(Violation) as broken:
        visitor._ask("nobody", ("node-1", 9092), question)
    assert broken.value.promise == REFUSED_BY_NAME


def test_whoever_is_told_of_topics_and_of_no_broker_says_so(run: Run) -> None:
    with pytest.raises(Violation) as broken:
        run.producers[0]._refreshed(MetadataResponse(topics=(MetadataResponseTopic(),)))
    assert broken.value.promise == SOMEBODY_IS_NAMED


def test_errors_are_found_wherever_they_are() -> None:
    told = OffsetFetchResponsePartitions(error_code=3)
    topic = OffsetFetchResponseTopics("orders", partitions=(told, told))
    group = OffsetFetchResponseGroup("g", (topic,), error_code=16)
    assert sorted(errors_in(OffsetFetchResponse(groups=(group,)))) == [3, 3, 16]


def test_patterns_are_what_they_are_said_to_be() -> None:
    others = (*OTHERS, "scratch-a", "blunder-1", "__consumer_offsets", "__cotidal_events")
    for text in PATTERNS:
        pattern = Pattern(text)
        assert pattern.matches("orders")
        assert pattern.matches("events")
        assert not any(map(pattern.matches, others))
    for text in WRONG_PATTERNS:
        with pytest.raises(BadPattern):
            Pattern(text)
