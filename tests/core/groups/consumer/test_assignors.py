"""Who gets what (rules G of docs/spec/groups.md)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cotidal.core.groups.consumer.assignors import ASSIGNORS, Subscriber, range_, uniform
from group_bench import topic_id

A, B = topic_id("a"), topic_id("b")


def of(topic, *numbers):
    return tuple((topic, number) for number in numbers)


def test_uniform_gives_everybody_as_many_or_one_more():
    found = uniform({name: Subscriber((A, B), ()) for name in "xyz"}, {A: 4, B: 4})
    assert sorted(len(own) for own in found.values()) == [2, 3, 3]


def test_uniform_moves_no_more_than_it_must():
    old = {"x": of(A, 0, 1, 2), "y": of(A, 3, 4, 5)}
    subscribers = {name: Subscriber((A,), own) for name, own in old.items()}
    found = uniform({**subscribers, "z": Subscriber((A,), ())}, {A: 6})
    assert sorted(len(own) for own in found.values()) == [2, 2, 2]
    assert set(found["x"]) < set(old["x"])
    assert set(found["y"]) < set(old["y"])


def test_uniform_leaves_the_odd_one_with_who_has_it():
    old = {"x": of(A, 0), "y": of(A, 1, 2)}
    found = uniform({name: Subscriber((A,), own) for name, own in old.items()}, {A: 3})
    assert found == old


def test_uniform_goes_by_subscriptions_where_they_differ():
    subscribers = {
        "x": Subscriber((A, B), ()),
        "y": Subscriber((A,), ()),
        "z": Subscriber((B,), ()),
    }
    found = uniform(subscribers, {A: 6, B: 3})
    assert [len(found[name]) for name in "xyz"] == [3, 3, 3]
    assert {topic for topic, _ in found["y"]} == {A}
    assert {topic for topic, _ in found["z"]} == {B}


def test_uniform_balances_what_was_lopsided():
    subscribers = {"x": Subscriber((A, B), of(A, 0, 1, 2, 3)), "y": Subscriber((A,), ())}
    found = uniform(subscribers, {A: 4, B: 2})
    assert [len(found[name]) for name in "xy"] == [3, 3]


def test_range_gives_the_same_numbers_of_both_topics_to_one_member():
    found = range_({name: Subscriber((A, B), ()) for name in "yx"}, {A: 3, B: 3})
    assert found == {"x": of(A, 0, 1) + of(B, 0, 1), "y": of(A, 2) + of(B, 2)}


def test_range_puts_static_members_first_in_the_order_of_their_instances():
    subscribers = {
        "a": Subscriber((A,), ()),
        "b": Subscriber((A,), (), "two"),
        "c": Subscriber((A,), (), "one"),
    }
    assert range_(subscribers, {A: 3}) == {"c": of(A, 0), "b": of(A, 1), "a": of(A, 2)}


TOPICS = (A, B, topic_id("c"))


@st.composite
def groups(draw):
    counts = {topic: draw(st.integers(1, 6)) for topic in TOPICS}
    everything = [(topic, number) for topic in TOPICS for number in range(counts[topic] + 1)]
    subscribers = {}
    for at in range(draw(st.integers(1, 6))):
        topics = tuple(draw(st.lists(st.sampled_from(TOPICS), unique=True, max_size=3)))
        owned = tuple(draw(st.lists(st.sampled_from(everything), unique=True, max_size=6)))
        subscribers[f"m{at}"] = Subscriber(topics, owned)
    return subscribers, counts


@settings(max_examples=200, deadline=None)
@given(groups(), st.sampled_from(sorted(ASSIGNORS)))
def test_every_partition_that_somebody_wants_has_one_owner_who_subscribes(group, name):
    subscribers, counts = group
    found = ASSIGNORS[name](subscribers, counts)
    given_out = [at for own in found.values() for at in own]
    wanted = {topic for each in subscribers.values() for topic in each.topics}
    assert sorted(given_out) == sorted((t, n) for t in wanted for n in range(counts[t]))
    assert all(
        topic in subscribers[member].topics for member, own in found.items() for topic, _ in own
    )
    again = {m: each._replace(owned=found[m]) for m, each in subscribers.items()}
    assert ASSIGNORS[name](again, counts) == found, "what is balanced stays"


@settings(max_examples=200, deadline=None)
@given(groups())
def test_nobody_who_could_take_a_partition_has_two_fewer_than_its_owner(group):
    subscribers, counts = group
    found = uniform(subscribers, counts)
    for own in found.values():
        for topic, _ in own:
            takers = [m for m, each in subscribers.items() if topic in each.topics]
            assert all(len(own) - len(found[taker]) < 2 for taker in takers)
