"""Which replica a consumer is sent to (KIP-392)."""

from __future__ import annotations

from cotidal.core.partition.leader import FollowerFetched, on_follower_fetched
from cotidal.core.partition.nearest import select_read_replica
from cotidal.core.partition.replica import Replica
from cotidal.values import BrokerEpoch, Millis, NodeId, Offset
from replicas import appointment, fetched, leading

RACKS = {NodeId(1): "east", NodeId(2): "west", NodeId(3): "west"}


def leader(*, two: int = 10, three: int = 10, isr: tuple[int, ...] = (1, 2, 3)) -> Replica:
    replica = leading(end=10, told=appointment(isr=isr))
    fetched(replica, 2, two)
    fetched(replica, 3, three)
    return replica


def nearest(replica: Replica, rack: str, offset: int = 5) -> int:
    return select_read_replica(replica, client_rack=rack, racks=RACKS, offset=Offset(offset))


def test_a_consumer_in_the_leaders_rack_stays_with_the_leader() -> None:
    assert nearest(leader(), "east") == 1


def test_a_consumer_without_a_rack_or_with_nobody_in_it_stays_with_the_leader() -> None:
    assert nearest(leader(), "") == 1
    assert nearest(leader(), "north") == 1


def test_the_furthest_follower_in_the_consumers_rack_is_chosen() -> None:
    assert nearest(leader(two=9, three=8), "west") == 2
    assert nearest(leader(two=8, three=9), "west") == 3


def test_of_two_equally_far_the_one_caught_up_last_is_chosen() -> None:
    replica = leader()
    fetched(replica, 2, 10, now=50)
    assert nearest(replica, "west") == 2


def test_a_follower_outside_the_isr_is_not_chosen() -> None:
    assert nearest(leader(two=9, three=10, isr=(1, 2)), "west") == 2


def test_a_follower_that_has_not_come_so_far_is_not_chosen() -> None:
    assert nearest(leader(two=4, three=5), "west", offset=5) == 3
    assert nearest(leader(two=4, three=4), "west", offset=5) == 1


def test_a_follower_whose_log_starts_later_is_not_chosen() -> None:
    replica = leader(three=9)
    event = FollowerFetched(NodeId(2), Offset(10), Offset(6), BrokerEpoch(102))
    on_follower_fetched(replica, event, Millis(0))
    assert nearest(replica, "west", offset=5) == 3


def test_a_follower_that_never_fetched_is_not_chosen() -> None:
    assert nearest(leading(end=10), "west", offset=0) == 1
