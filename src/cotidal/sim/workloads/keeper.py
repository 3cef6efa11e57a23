"""Somebody who keeps offsets in groups without members, as many tools do, and tidies up after that.

One question at a time, all to the coordinator: commits, each higher than the last, looks, deletions
of offsets and of whole groups. What is told on the way must have been committed once; whoever asks
a coordinator that does not know yet that it is none may be told what was true before. In the end

  COMMITS_KEPT  of every group is told what was committed last, and nothing of what was deleted

After a change that was not answered well nobody knows what is committed: that group is left alone,
and another one begun.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cotidal.errors import ErrorCode
from cotidal.invariants import COMMITS_KEPT
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.delete_groups import DeleteGroupsRequest
from cotidal.messages.rpc.describe_groups import DescribeGroupsRequest
from cotidal.messages.rpc.list_groups import ListGroupsRequest
from cotidal.messages.rpc.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from cotidal.messages.rpc.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from cotidal.messages.rpc.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from cotidal.sim import probes as seen
from cotidal.sim.agenda import MS
from cotidal.sim.network import Address
from cotidal.sim.probes import Probes
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.client import Client
from cotidal.sim.workloads.find import find_coordinator
from cotidal.sim.world import World
from cotidal.values import TopicPartition, by_topic

NOTHING: Final = -1
GAP_US: Final = 60 * MS
METADATA_LENGTH_MAX: Final = 4_096


class Kept:
    """A group, and what it was last told to keep."""

    __slots__ = ("id", "is_sure", "last", "offsets", "once")

    def __init__(self, id_: str) -> None:
        self.id = id_
        self.offsets: dict[TopicPartition, int] = {}
        self.once: dict[TopicPartition, dict[int, None]] = {}
        """All that was ever asked to be kept."""
        self.last = NOTHING
        self.is_sure = True
        """Every change of it was answered."""


class Keeper(Client):
    def __init__(
        self, world: World, name: str, partitions: tuple[TopicPartition, ...], probes: Probes
    ) -> None:
        super().__init__(world, name, ())
        self._partitions = partitions
        self._probes = probes
        self._groups = [Kept(f"{name}-0")]
        self._coordinator: Address | None = None
        self._to_judge: list[Kept] = []
        self.judged = False
        """What is kept was looked at once more, when all was over."""
        self._acts: tuple[Callable[[Kept], None], ...] = (
            self._commit, self._commit, self._commit, self._fetch, self._fetch_all,
            self._delete_offset, self._delete_group, self._look,
        )  # fmt: skip

    def begin(self) -> None:
        self.after(self.draw(GAP_US), self._act)

    def stop(self) -> None:
        self.stopped = True

    def judge(self) -> None:
        """All is over, and whoever is asked knows what is true."""
        self._coordinator = None
        self._to_judge = [each for each in self._groups if each.is_sure]
        self._judge_next()

    def _judge_next(self) -> None:
        if not self._to_judge:
            self.judged = True
        else:
            self._with_coordinator(self._to_judge[-1], self._fetch_all)

    def _act(self) -> None:
        if not self.stopped:
            acts = self._acts
            self._with_coordinator(self._groups[-1], acts[self.draw(len(acts))])

    def _again(self) -> None:
        if self._to_judge:
            self.after(self.back_off(), self._judge_next)
        else:
            self.after(1 + self.draw(2 * GAP_US), self._act)

    def _with_coordinator(self, kept: Kept, then: Callable[[Kept], None]) -> None:
        def found(address: Address | None) -> None:
            self._coordinator = address
            if address is None:
                self._again()
            else:
                then(kept)

        if self._coordinator is None:
            find_coordinator(self, kept.id, found)
        else:
            then(kept)

    def _put(
        self, key: ApiKey, version: int, request: Any, then: Callable[[Any], ErrorCode | None]
    ) -> None:
        """``then`` says what is wrong with the answer, if it is; silence is told it as None."""
        assert self._coordinator is not None

        def told(reply: Any) -> None:
            if then(reply) is not ErrorCode.NONE:
                self._coordinator = None
            self._again()

        self.ask(self._coordinator, key, version, request, told)

    def _doubt(self, kept: Kept) -> None:
        kept.is_sure = False
        self._coordinator = None
        self._groups.append(Kept(f"{self.name}-{len(self._groups)}"))

    # Changes

    def _commit(self, kept: Kept) -> None:
        partition = self._pick()
        kept.last += 1
        value = kept.last
        kept.once.setdefault(partition, {})[value] = None
        large = self.draw(12) == 0
        metadata = "x" * (METADATA_LENGTH_MAX + 1) if large else "kept"
        one = OffsetCommitRequestPartition(partition.partition, value, -1, metadata)
        topic = OffsetCommitRequestTopic(partition.topic, partitions=(one,))
        request = OffsetCommitRequest(kept.id, topics=(topic,))

        def told(reply: Any) -> ErrorCode | None:
            error = _error(reply and reply.topics[0].partitions[0].error_code)
            if error is ErrorCode.NONE:
                self._probes.see(seen.KEPT_WITHOUT_MEMBERS)
                kept.offsets[partition] = value
            elif error is ErrorCode.OFFSET_METADATA_TOO_LARGE and large:
                return ErrorCode.NONE  # and nothing is changed
            else:
                self._doubt(kept)
            return error

        self._put(ApiKey.OFFSET_COMMIT, 2 + self.draw(8), request, told)

    def _delete_offset(self, kept: Kept) -> None:
        partition = self._pick()
        one = OffsetDeleteRequestPartition(partition.partition)
        topic = OffsetDeleteRequestTopic(partition.topic, (one,))
        request = OffsetDeleteRequest(kept.id, (topic,))

        def told(reply: Any) -> ErrorCode | None:
            error = _error(reply and reply.error_code)
            if error is ErrorCode.NONE and kept.offsets.pop(partition, None) is not None:
                self._probes.see(seen.OFFSET_DELETED)
            return self._unless_absent(kept, error)

        self._put(ApiKey.OFFSET_DELETE, 0, request, told)

    def _delete_group(self, kept: Kept) -> None:
        def told(reply: Any) -> ErrorCode | None:
            error = _error(reply and reply.results[0].error_code)
            if error is ErrorCode.NONE:
                self._probes.see(seen.GROUP_DELETED)
                kept.offsets.clear()
            return self._unless_absent(kept, error)

        self._put(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest((kept.id,)), told)

    def _unless_absent(self, kept: Kept, error: ErrorCode | None) -> ErrorCode | None:
        """Whoever has kept nothing is told that there is no such group."""
        if error is ErrorCode.GROUP_ID_NOT_FOUND and not kept.offsets:
            return ErrorCode.NONE
        if error is not ErrorCode.NONE:
            self._doubt(kept)
        return error

    # Looks

    def _fetch(self, kept: Kept) -> None:
        self._ask_offsets(kept, (self._pick(),))

    def _fetch_all(self, kept: Kept) -> None:
        self._ask_offsets(kept, None)

    def _ask_offsets(self, kept: Kept, wanted: tuple[TopicPartition, ...] | None) -> None:
        topics = None
        if wanted is not None:
            topics = tuple(
                OffsetFetchRequestTopics(name, partition_indexes=numbers)
                for name, numbers in by_topic(wanted).items()
            )
        group = OffsetFetchRequestGroup(kept.id, topics=topics)
        judging = bool(self._to_judge)

        def told(reply: Any) -> ErrorCode | None:
            error = _error(reply and reply.groups[0].error_code)
            if error is ErrorCode.NONE:
                self._on_offsets(kept, reply, judging=judging)
            return error

        self._put(ApiKey.OFFSET_FETCH, 8, OffsetFetchRequest(groups=(group,)), told)

    def _on_offsets(self, kept: Kept, reply: Any, *, judging: bool) -> None:
        found = {
            TopicPartition(topic.name, told.partition_index): told.committed_offset
            for topic in reply.groups[0].topics
            for told in topic.partitions
        }
        for partition, value in found.items():
            if value != NOTHING and value not in kept.once.get(partition, {}):
                told = f"{kept.id} is told {value} for {partition}, which was never committed"
                raise Violation(COMMITS_KEPT, told)
        if judging:
            held = {partition: value for partition, value in found.items() if value != NOTHING}
            if held != kept.offsets:
                told = f"{kept.id} is told {held} in the end, and {kept.offsets} was committed"
                raise Violation(COMMITS_KEPT, told)
            self._to_judge.pop()
            self._coordinator = None
            self.judged = not self._to_judge

    def _look(self, kept: Kept) -> None:
        if self.draw(2):
            described = DescribeGroupsRequest((kept.id, "nobody"))
            self._put(ApiKey.DESCRIBE_GROUPS, 6, described, lambda reply: _error(reply and 0))
        else:
            listed = ListGroupsRequest(("Empty",) if self.draw(2) else ())
            self._put(ApiKey.LIST_GROUPS, 5, listed, lambda reply: _error(reply and 0))

    def _pick(self) -> TopicPartition:
        return self._partitions[self.draw(len(self._partitions))]


def _error(code: int | None) -> ErrorCode | None:
    """None: there was no answer."""
    return None if code is None else ErrorCode(code)
