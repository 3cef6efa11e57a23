from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotidal.core.cluster.image import Broker
from cotidal.core.cluster.placement import place
from cotidal.core.machine import Entropy
from cotidal.errors import ErrorCode, Refusal
from cotidal.values import Uuid


def broker(number, *, rack=None, fenced=False, leaving=False):
    return Broker(number, number, Uuid(bytes(16)), (), rack, fenced, leaving)


def placed(brokers, partitions, replication_factor, seed=1):
    found = place(
        brokers,
        partitions=partitions,
        replication_factor=replication_factor,
        entropy=Entropy(seed),
    )
    assert not isinstance(found, Refusal), found
    return found


@given(
    racks=st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=9),
    partitions=st.integers(1, 30),
    seed=st.integers(0, 2**64 - 1),
    data=st.data(),
)
def test_replicas_are_distinct_and_leaders_are_even(racks, partitions, seed, data):
    brokers = [broker(number, rack=rack) for number, rack in enumerate(racks)]
    replication_factor = data.draw(st.integers(1, len(brokers)))
    assignments = placed(brokers, partitions, replication_factor, seed)
    assert len(assignments) == partitions
    for replicas in assignments:
        assert len(set(replicas)) == replication_factor
        used = Counter(racks[replica] for replica in replicas)
        assert len(used) == min(replication_factor, len(set(racks)))
    leaders = Counter(replicas[0] for replicas in assignments)
    assert max(leaders.values()) - min(leaders[number] for number in range(len(racks))) <= 1


def test_same_seed_places_alike_and_the_start_is_random():
    brokers = [broker(number) for number in range(5)]
    assert placed(brokers, 7, 3, seed=11) == placed(brokers, 7, 3, seed=11)
    starts = {placed(brokers, 1, 1, seed=seed)[0] for seed in range(40)}
    assert len(starts) == 5


def test_followers_of_one_leader_are_not_always_the_same():
    brokers = [broker(number) for number in range(4)]
    pairs = {replicas for replicas in placed(brokers, 24, 2) if replicas[0] == 0}
    assert len(pairs) == 3


def test_fenced_broker_never_leads_and_follows_only_where_no_other_is_left():
    brokers = [broker(1), broker(2), broker(3, fenced=True), broker(4, leaving=True)]
    assert all(3 not in replicas and 4 not in replicas for replicas in placed(brokers, 8, 2))
    wide = placed(brokers, 8, 4)
    assert {replicas[0] for replicas in wide} == {1, 2}


def test_rack_is_worth_more_than_being_active():
    brokers = [broker(1, rack="a"), broker(2, rack="a"), broker(3, rack="b", fenced=True)]
    assert all(3 in replicas for replicas in placed(brokers, 6, 2))


@pytest.mark.parametrize(
    ("brokers", "says"),
    [
        ([], "0 are registered"),
        ([broker(1)], "1 is registered"),
        ([broker(1, fenced=True), broker(2, leaving=True)], "fenced or shutting down"),
    ],
)
def test_too_few_brokers_is_refused_with_the_reason(brokers, says):
    refused = place(brokers, partitions=1, replication_factor=2, entropy=Entropy(1))
    assert isinstance(refused, Refusal)
    assert refused.error is ErrorCode.INVALID_REPLICATION_FACTOR
    assert says in refused.text
