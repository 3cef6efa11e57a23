"""What there is to read, found out on the driver: partitions, and the offsets between which.

Everything that can be wrong with a job is found here, before an executor sees it: brokers that
cannot be reached, a topic that is not there, an offset out of range. Each is one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol, assert_never

from cotidal.client.cluster import Cluster
from cotidal.client.failures import ClientError, UnknownTopic, Unreachable
from cotidal.client.metadata import Topic
from cotidal.client.offsets import Position, find_positions
from cotidal.client.start import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from cotidal.errors import ErrorCode
from cotidal.spark.failures import DataLost, Unusable, WrongOption
from cotidal.spark.options import (
    EARLIEST,
    LATEST,
    Assign,
    AtOffsets,
    AtTimestamps,
    Bound,
    Everywhere,
    SourceOptions,
    Subscribe,
    SubscribePattern,
)
from cotidal.spark.ranges import OffsetRange, shared_tasks, split_ranges
from cotidal.values import NO_OFFSET, LeaderEpoch, Offset, TopicPartition, Uuid

UNKNOWN_EPOCH: Final = LeaderEpoch(-1)

Ends = dict[TopicPartition, Position]


class Partitions(NamedTuple):
    """What a selection means now."""

    topic_ids: Mapping[str, Uuid]
    all: tuple[TopicPartition, ...]


class Connecting(Protocol):
    """Options of a source or a sink."""

    @property
    def bootstrap(self) -> str: ...
    @property
    def timeout_s(self) -> float: ...


@contextmanager
def reachable(options: Connecting) -> Iterator[Cluster]:
    """A cluster for the driver; what a client cannot do becomes what a job is told."""
    with Cluster(options.bootstrap, timeout_s=options.timeout_s) as cluster:
        try:
            yield cluster
        except Unreachable as error:
            raise Unusable(
                f"{error}; is the cluster up, and is kafka.bootstrap.servers right?"
            ) from None
        except UnknownTopic as error:
            hint = "" if error.nearest else "; create it, or correct the subscription"
            raise Unusable(f"{error}{hint}") from None
        except ClientError as error:
            raise Unusable(str(error)) from None


def find_partitions(cluster: Cluster, options: SourceOptions) -> Partitions:
    selection = options.selection
    match selection:
        case Subscribe(names):
            topics = [cluster.topic(name) for name in dict.fromkeys(names)]
        case SubscribePattern(pattern):
            topics = _matching(cluster, pattern)
        case Assign(partitions):
            names = tuple(dict.fromkeys(topic for topic, _ in partitions))
            topics = [cluster.topic(name) for name in names]
        case _:
            assert_never(selection)
    found = [
        TopicPartition(topic.name, each.partition) for topic in topics for each in topic.partitions
    ]
    if isinstance(selection, Assign):
        for at in selection.partitions:
            if TopicPartition(*at) not in found:
                raise WrongOption(f"assign: topic '{at[0]}' has no partition {at[1]}")
        found = [TopicPartition(*at) for at in selection.partitions]
    return Partitions({topic.name: topic.topic_id for topic in topics}, tuple(found))


def _matching(cluster: Cluster, pattern: str) -> list[Topic]:
    matches = re.compile(pattern).fullmatch
    topics = [
        topic
        for topic in cluster.metadata().topics
        if not topic.is_internal and topic.error is ErrorCode.NONE and matches(topic.name)
    ]
    if not topics:
        raise Unusable(f"no topic matches subscribePattern '{pattern}'")
    return topics


def starting_offsets(
    cluster: Cluster, options: SourceOptions, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Offset]:
    """Where each partition is read from; DataLost for an offset that it does not hold."""
    wanted = list(partitions)
    found = _resolve(cluster, options, wanted, options.starting, "starting")
    first = find_positions(cluster, dict.fromkeys(wanted, EARLIEST_TIMESTAMP))
    last = _latest(cluster, options, wanted)
    begins: dict[TopicPartition, Offset] = {}
    for at, position in found.items():
        if position is None:
            if not options.latest_if_no_later:
                raise WrongOption(
                    f"{at} has no record at or after the starting time; set "
                    "startingOffsetsByTimestampStrategy to latest to begin at its end"
                )
            position = last[at]
        if not first[at].offset <= position.offset <= last[at].offset:
            told = (
                f"offset {position.offset} of {at} is out of range: the log begins at "
                f"{first[at].offset} and ends before {last[at].offset}"
            )
            if options.fail_on_data_loss:
                raise DataLost(f"{told}; correct startingOffsets, or set failOnDataLoss to false")
            position = min(max(position, first[at]), last[at])
        begins[at] = position.offset
    return begins


def ending_positions(
    cluster: Cluster, options: SourceOptions, partitions: Iterable[TopicPartition]
) -> Ends:
    """Where each partition is read to, and the epoch of the leader that said so."""
    wanted = list(partitions)
    found = _resolve(cluster, options, wanted, options.ending, "ending")
    last = _latest(cluster, options, wanted)
    ends: Ends = {}
    for at, position in found.items():
        end = last[at] if position is None else position
        if end.offset > last[at].offset:
            told = f"endingOffsets: {at} ends before {last[at].offset}, not {end.offset}"
            if options.fail_on_data_loss:
                raise DataLost(f"{told}; correct it, or set failOnDataLoss to false")
            end = last[at]
        ends[at] = Position(end.offset, last[at].leader_epoch)
    return ends


def latest_positions(cluster: Cluster, options: SourceOptions, partitions: Partitions) -> Ends:
    return _latest(cluster, options, partitions.all)


def _latest(cluster: Cluster, options: SourceOptions, wanted: Iterable[TopicPartition]) -> Ends:
    asked = dict.fromkeys(wanted, LATEST_TIMESTAMP)
    return find_positions(cluster, asked, read_committed=options.read_committed)


def _resolve(
    cluster: Cluster, options: SourceOptions, wanted: list[TopicPartition], bound: Bound, which: str
) -> dict[TopicPartition, Position | None]:
    """None: no record is as late as the time that was asked for."""
    match bound:
        case Everywhere(offset):
            asked = dict.fromkeys(wanted, offset)
            return dict(_at_ends(cluster, options, asked))
        case AtOffsets(offsets):
            _check_complete(f"{which}Offsets", offsets, wanted)
            asked = {at: offsets[at] for at in wanted}
            ends = _at_ends(cluster, options, {at: o for at, o in asked.items() if o < 0})
            given = {
                at: Position(Offset(offset), UNKNOWN_EPOCH)
                for at, offset in asked.items()
                if offset >= 0
            }
            return {**ends, **given}
        case AtTimestamps(timestamps, of_all):
            if timestamps is not None:
                _check_complete(f"{which}OffsetsByTimestamp", timestamps, wanted)
            times = {at: of_all if timestamps is None else timestamps[at] for at in wanted}
            found = find_positions(cluster, times)
            return {at: None if it.offset == NO_OFFSET else it for at, it in found.items()}
        case _:
            assert_never(bound)


def _at_ends(cluster: Cluster, options: SourceOptions, asked: Mapping[TopicPartition, int]) -> Ends:
    first = {at: EARLIEST_TIMESTAMP for at, offset in asked.items() if offset == EARLIEST}
    last = [at for at, offset in asked.items() if offset == LATEST]
    return find_positions(cluster, first) | (_latest(cluster, options, last) if last else {})


def _check_complete(
    name: str, given: Mapping[tuple[str, int], int], wanted: list[TopicPartition]
) -> None:
    missing = [at for at in wanted if at not in given]
    surplus = [at for at in given if at not in wanted]
    if missing:
        raise WrongOption(f"{name} names no offset for {missing[0]}; name every partition")
    if surplus:
        topic, partition = surplus[0]
        raise WrongOption(f"{name} names {topic}-{partition}, which is not subscribed to")


def plan_batch(options: SourceOptions) -> list[OffsetRange]:
    """The work of a batch query."""
    with reachable(options) as cluster:
        partitions = find_partitions(cluster, options)
        begins = starting_offsets(cluster, options, partitions.all)
        ends = ending_positions(cluster, options, partitions.all)
    return plan_ranges(options, partitions.topic_ids, begins, ends)


def plan_tasks(
    options: SourceOptions, ranges: Sequence[OffsetRange]
) -> list[tuple[OffsetRange, ...]]:
    """As many as were asked for; otherwise small ranges share a task."""
    records_min = 1 if options.partitions_min else options.records_per_partition_min
    return shared_tasks(ranges, records_min=records_min)


def plan_ranges(
    options: SourceOptions,
    topic_ids: Mapping[str, Uuid],
    begins: Mapping[TopicPartition, Offset],
    ends: Ends,
) -> list[OffsetRange]:
    whole = [
        OffsetRange(at.topic, topic_ids[at.topic], at.partition, begins[at], *end)
        for at, end in sorted(ends.items())
    ]
    return split_ranges(
        whole,
        partitions_min=options.partitions_min,
        records_max=options.records_per_partition_max,
    )
