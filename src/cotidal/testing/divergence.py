"""A partition that has parted: its old leader is down, with records that nobody else has.

    with diverged() as parted:
        ...                      # what your client does before the old leader is back
        parted.come_back()       # it cuts its tail, and catches up
        ...

How it comes about, in a cluster of three: records that all replicas have; then the leader is cut
off from its followers and takes more with acks=1; it is killed; another one leads, in the next
epoch, and takes other records at the same offsets.

    offset        0 .. fork-1     fork ..
    old leader    common          drowned     in old_epoch, acknowledged with acks=1, to be cut
    new leader    common          kept        in new_epoch, acknowledged with acks=all

The first of the records with acks=1 may still reach a follower, in the answer to a fetch that was
under way: then it is common, and survives.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple

from cotidal.client.admin import create_topic
from cotidal.client.cluster import Cluster as Client
from cotidal.client.failures import ClientError
from cotidal.client.metadata import Partition
from cotidal.client.offsets import end_offsets
from cotidal.client.producer import Producer
from cotidal.client.rounds import ACKS_ALL
from cotidal.testing.cluster import Cluster, ClusterFailed
from cotidal.values import TopicPartition

PATIENCE_S: Final = 30.0
LOOK_S: Final = 0.02


class Diverged(NamedTuple):
    cluster: Cluster
    at: TopicPartition
    old_leader: int
    new_leader: int
    old_epoch: int
    new_epoch: int
    fork: int
    """The first offset at which the old leader has another record than the others."""
    common: tuple[bytes, ...]
    """Values from offset 0 on, on all replicas."""
    drowned: tuple[bytes, ...]
    """Values from ``fork`` on, on the old leader alone."""
    kept: tuple[bytes, ...]
    """Values from ``fork`` on, on the others."""

    @property
    def bootstrap(self) -> str:
        return self.cluster.bootstrap

    def come_back(self) -> None:
        """Start the old leader; it is in sync with the others when this returns."""
        self.cluster.restart(self.old_leader)
        with Client(self.bootstrap) as client:
            _until(
                lambda: self.old_leader in _partition(client, self.at).isr,
                "the old leader did not come back into the ISR",
            )


@contextmanager
def diverged(
    topic: str = "orders",
    *,
    common: int = 10,
    drowned: int = 5,
    kept: int = 3,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Diverged]:
    """A cluster of three for one with statement, with a topic of one partition that has parted.

    ``drowned`` and ``kept``: two at least, so that the logs differ whatever a follower still got.
    """
    if min(drowned, kept) < 2:
        raise ValueError("two records at least are drowned, and two are kept")
    with Cluster(3, settings=settings) as cluster:
        yield diverge(cluster, topic, common=common, drowned=drowned, kept=kept)


def diverge(
    cluster: Cluster, topic: str, *, common: int = 10, drowned: int = 5, kept: int = 3
) -> Diverged:
    """Let a new topic of a cluster of three, all up, part."""
    at = TopicPartition(topic, 0)
    with Client(cluster.bootstrap) as client:
        create_topic(client, topic, partitions=1, replication_factor=3, configs={})
        _until(lambda: len(_partition(client, at).isr) == 3, "not all replicas came up")
        shared = _write(client, topic, "common", common, acks=ACKS_ALL)
        before = _partition(client, at)
        lonely = Producer(client, topic, acks=1, partition=0)
        cluster.partition(before.leader)
        told = _send(lonely, "drowned", drowned)
    cluster.kill(before.leader)
    cluster.heal()
    with Client(cluster.bootstrap) as client:
        _until(
            lambda: _partition(client, at).leader not in (-1, before.leader), "nobody leads instead"
        )
        after = _partition(client, at)
        fork = end_offsets(client, [at])[at]
        survived = fork - common
        if survived >= drowned:
            raise ClusterFailed("a follower got every record that was to be its leader's alone")
        others = _write(client, topic, "kept", kept, acks=ACKS_ALL)
    return Diverged(
        cluster,
        at,
        before.leader,
        after.leader,
        before.leader_epoch,
        after.leader_epoch,
        fork,
        (*shared, *told[:survived]),
        told[survived:],
        others,
    )


def _write(client: Client, topic: str, name: str, count: int, *, acks: int) -> tuple[bytes, ...]:
    return _send(Producer(client, topic, acks=acks, partition=0), name, count)


def _send(producer: Producer, name: str, count: int) -> tuple[bytes, ...]:
    """One batch for each record: a follower may get the first, and not the rest with it."""
    values = tuple(b"%s-%d" % (name.encode(), number) for number in range(count))
    for value in values:
        producer.add(value)
        producer.flush()
    return values


def _partition(client: Client, at: TopicPartition) -> Partition:
    return client.topic(at.topic).partitions[at.partition]


def _until(condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            if condition():
                return
        except (ClientError, IndexError):  # an election is under way, or a topic is just made
            pass
        if time.monotonic() > deadline:
            raise ClusterFailed(f"{otherwise} within {PATIENCE_S:.0f} s")
        time.sleep(LOOK_S)
