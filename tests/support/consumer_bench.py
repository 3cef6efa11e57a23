"""Members of consumer groups, driven by hand: what each has heard, and what it has given up."""

from __future__ import annotations

from typing import Any

from cotidal.core.groups.asks import (
    ConsumerBeat,
    ConsumerBeaten,
    DescribeConsumers,
)
from cotidal.errors import ErrorCode, Refusal
from group_bench import RULES, GroupBench, Topics, topic_id

T = topic_id("t")


def consumers(*, partitions: int = 4, rules: Any = RULES) -> GroupBench:
    """A coordinator, and a topic ``t``."""
    return GroupBench(rules, topics=Topics(t=partitions))


def beating(member_id: str, epoch: int = 0, **fields: Any) -> ConsumerBeat:
    first = epoch == 0
    return ConsumerBeat(
        group_id="g",
        member_id=member_id,
        epoch=epoch,
        instance_id=None,
        rack_id=None,
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=5_000 if first else -1,
        topics=("t",) if first else None,
        regex=None,
        assignor=None,
        owned=() if first else None,
    )._replace(**fields)


class Consumer:
    """A client: it says what it has, and gives up at once what it is not told of any more."""

    def __init__(self, bench: GroupBench, member_id: str, **fields: Any) -> None:
        self.bench = bench
        self.id = member_id
        self.fields = fields
        self.epoch = 0
        self.owned: tuple[Any, ...] = ()

    def beat(self, **fields: Any) -> Any:
        """One heartbeat; the answer."""
        asked = beating(self.id, self.epoch)
        if self.epoch == 0:
            asked = asked._replace(**self.fields)
        elif self.fields.get("instance_id"):
            asked = asked._replace(instance_id=self.fields["instance_id"])
        owned = () if self.epoch == 0 else self.owned
        answer = self.bench.ask(asked._replace(**{"owned": owned, **fields}))
        if isinstance(answer, ConsumerBeaten):
            self.epoch = answer.epoch
            if answer.assignment is not None:
                self.owned = answer.assignment
        return answer

    def leave(self, epoch: int = -1) -> Any:
        fields = {"instance_id": self.fields.get("instance_id")}
        return self.bench.ask(beating(self.id, epoch, **fields))

    @property
    def numbers(self) -> list[int]:
        return sorted(partition for _, partition in self.owned)


def settle(*members: Consumer, rounds: int = 6) -> None:
    """Everybody heartbeats until all have what is theirs."""
    for _ in range(rounds):
        for member in members:
            answer = member.beat()
            assert isinstance(answer, ConsumerBeaten), answer


def described(bench: GroupBench, group: str = "g") -> Any:
    return bench.ask(DescribeConsumers(group))


def error_of(answer: Any) -> ErrorCode:
    return answer.error if isinstance(answer, Refusal) else ErrorCode.NONE
