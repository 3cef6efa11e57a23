"""Partitions of a follower's session of which there is nothing to say. Pure. core.partition.resting

A fetch that waits is indexed by the partitions that it was looked at for (hosting.py). For those
that rest it is not looked at: each stands under its partition, with its session, and stays there
from one fetch to the next. When the partition moves they rise, and the fetch of their session that
waits is looked at again for them. If none waits, the next one finds that they rest no more.

So of a thousand partitions beside one that is written to, a fetch costs a glance at each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotidal.core.partition.leader import FollowerFetched
from cotidal.core.partition.resting import rest
from cotidal.node.hosting import Hosted
from cotidal.node.sessions import FetchedPartition, FetchSession
from cotidal.node.state import NodeState
from cotidal.values import BrokerEpoch, NodeId

if TYPE_CHECKING:
    from cotidal.node.fetch import PendingFetch


def restless(
    state: NodeState, session: FetchSession, node_id: NodeId, broker_epoch: BrokerEpoch
) -> list[FetchedPartition]:
    """A follower fetches again: what is to be looked at for it. The others have been told of it."""
    if session.fetcher != (node_id, broker_epoch):
        session.fetcher = (node_id, broker_epoch)
        session.rise()
    now = state.now
    found = []
    glances = 0
    for fetched in session.partitions.values():
        if fetched.rest is None:
            found.append(fetched)
            continue
        glances += 1
        if not fetched.rest.goes_on(now):
            fetched.rise()
            found.append(fetched)
    state.tally.partition_events += glances
    return found


def lie_down(
    hosted: Hosted, session: FetchSession, fetched: FetchedPartition, told: FollowerFetched
) -> bool:
    """Of a fetch that was granted and told to the leader: it rests, if it knows all that is."""
    if fetched.told_high_watermark != fetched.offset:
        return False
    found = rest(hosted.replica, told)
    if found is None:
        return False
    fetched.rest = found
    fetched.rests_in = hosted.resting
    hosted.resting[fetched] = session
    return True


def disturb(hosted: Hosted) -> list[PendingFetch]:
    """The partition moves. Which fetches wait that are to be looked at again."""
    woken: list[PendingFetch] = []
    for fetched, session in list(hosted.resting.items()):
        fetched.rise()
        pending = session.waiting
        if pending is not None:
            pending.disturbed.append(fetched)
            if not pending.reading:
                woken.append(pending)
    return woken
