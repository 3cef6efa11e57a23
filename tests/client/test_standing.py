"""Why a replica is out of the ISR, and what an election of it would drop."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cotidal.client.metadata import Partition
from cotidal.client.replicas import Eligible, Follower, Held, Led, Told
from cotidal.client.standing import (
    Bound,
    Loss,
    PartitionStanding,
    ReplicaStanding,
    Role,
    Scene,
    common_end,
    epoch_ends,
    loss_text,
    stand,
)
from cotidal.values import NO_NODE, EpochEntry, LeaderEpoch, NodeId, Offset, TopicPartition

AT = TopicPartition("orders", 0)


def log(
    end: int, *epochs: tuple[int, int], hw: int = 0, start: int = 0, offline: str | None = None
) -> Held:
    entries = tuple(EpochEntry(LeaderEpoch(e), Offset(first)) for e, first in epochs or ((0, 0),))
    return Held(Offset(start), Offset(end), Offset(hw), entries, offline)


def follower(
    end: int | None, fetched: int | None = 100, speed: int | None = None, throttled: bool = False
) -> Follower:
    return Follower(None if end is None else Offset(end), fetched, None, speed, throttled)


def partition(leader: int, isr: tuple[int, ...], offline: tuple[int, ...] = ()) -> Partition:
    nodes = tuple(map(NodeId, (1, 2, 3)))
    return Partition(
        0,
        NodeId(leader),
        LeaderEpoch(5),
        nodes,
        tuple(map(NodeId, isr)),
        tuple(map(NodeId, offline)),
    )


def scene(
    logs: dict[int, Held],
    *,
    leader: int = 1,
    followers: dict[int, Follower] | None = None,
    fenced: dict[int, int] | None = None,
    silent: dict[int, str] | None = None,
) -> Scene:
    known = {NodeId(node): for_ms for node, for_ms in (fenced or {}).items()}
    led = {AT: Led(2, {NodeId(node): each for node, each in (followers or {}).items()})}
    told = {
        NodeId(node): Told({AT: held}, led if node == leader else {}, known)
        for node, held in logs.items()
    }
    return Scene(
        told,
        {NodeId(node): why for node, why in (silent or {}).items()},
        frozenset(known),
        frozenset(map(NodeId, (1, 2, 3))),
    )


def of(standing: PartitionStanding, node: int) -> ReplicaStanding:
    return next(each for each in standing.replicas if each.node_id == node)


def test_an_in_sync_replica_that_has_all_would_drop_nothing() -> None:
    seen = stand(AT, partition(1, (1, 2, 3)), scene({n: log(9, hw=9) for n in (1, 2, 3)}))
    assert seen.is_well
    assert not seen.has_a_story
    assert [each.role for each in seen.replicas] == [Role.LEADER, Role.IN_SYNC, Role.IN_SYNC]
    assert of(seen, 2).loss == Loss(0, 0, Bound.EXACT)
    assert of(seen, 1).loss is None
    assert all(each.why is None for each in seen.replicas)


def test_what_would_go_is_split_at_the_high_watermark() -> None:
    logs = {1: log(12, hw=10), 2: log(10, hw=9), 3: log(4, hw=4)}
    seen = stand(AT, partition(1, (1, 2)), scene(logs, followers={3: follower(4)}))
    assert of(seen, 2).loss == Loss(0, 2, Bound.EXACT)
    assert of(seen, 3).loss == Loss(6, 2, Bound.EXACT)
    assert loss_text(Loss(6, 2, Bound.EXACT)) == (
        "6 acknowledged with acks=all, 2 with acks=1 or not at all"
    )


def test_a_log_of_another_history_keeps_only_what_is_common() -> None:
    logs = {1: log(20, (0, 0), (3, 10), hw=15), 2: log(18, (0, 0), (1, 10), (2, 14), hw=10)}
    seen = stand(AT, partition(1, (1,)), scene(logs, followers={2: follower(10)}))
    assert of(seen, 2).loss == Loss(5, 5, Bound.EXACT)


def test_of_a_silent_replica_its_leader_tells_at_most_what_would_go() -> None:
    told = scene({1: log(12, hw=10)}, followers={2: follower(7, 9_000)}, fenced={2: 12_430})
    seen = of(stand(AT, partition(1, (1,), (2,)), told), 2)
    assert seen.loss == Loss(3, 2, Bound.AT_MOST)
    assert seen.known_end == 7
    assert seen.why == "fenced for 12.4 s, holds up to 7 of 12"


def test_without_a_leader_at_least_what_survivors_tell_would_go() -> None:
    logs = {2: log(9, hw=8), 3: log(5, hw=5)}
    eligible = Eligible((), (NodeId(1),))
    seen = stand(AT, partition(NO_NODE, ()), scene(logs, fenced={1: 500}), eligible=eligible)
    assert seen.unheard == (1,)
    assert of(seen, 2).loss == Loss(0, 0, Bound.AT_LEAST)
    assert of(seen, 3).loss == Loss(3, 1, Bound.AT_LEAST)
    assert of(seen, 1).loss is None
    assert of(seen, 1).why == "fenced for 0.5 s"
    assert of(seen, 3).why == "there is no leader to follow, holds up to 5 of 9"
    assert loss_text(Loss(0, 0, Bound.AT_LEAST)) == "nothing that is known here"


def test_without_a_leader_an_eligible_replica_that_answers_hides_nothing() -> None:
    logs = {2: log(9, hw=9), 3: log(5, hw=5)}
    seen = stand(
        AT, partition(NO_NODE, ()), scene(logs), eligible=Eligible((NodeId(2),), (NodeId(1),))
    )
    assert seen.unheard == ()
    assert of(seen, 2).role is Role.ELIGIBLE
    assert of(seen, 3).loss == Loss(4, 0, Bound.EXACT)


def test_why_in_words() -> None:
    logs = {1: log(9_977, hw=9_000), 2: log(8_201, hw=8_000)}

    def why(**told: Follower) -> str | None:
        followers = {2: told["two"]}
        standing = stand(
            AT, partition(1, (1,)), scene(logs, followers=followers), leader_bytes=997_700
        )
        return of(standing, 2).why

    assert why(two=follower(8_201, speed=41_000)) == (
        "caught up to 8,201 of 9,977, 41 KB/s, about 5 s left"
    )
    assert why(two=follower(8_201, speed=41_000, throttled=True)) == (
        "caught up to 8,201 of 9,977, 41 KB/s, about 5 s left, throttled"
    )
    assert why(two=follower(8_201, 12_400)) == "fetched last 12.4 s ago, holds up to 8,201 of 9,977"
    assert why(two=follower(None, None)) == (
        "has not fetched from this leader yet, holds up to 8,201 of 9,977"
    )


def test_a_replica_that_has_caught_up_is_about_to_be_taken_in() -> None:
    logs = {1: log(9, hw=9), 2: log(9, hw=9)}
    seen = stand(AT, partition(1, (1,)), scene(logs, followers={2: follower(9)}))
    assert of(seen, 2).why == "has caught up, and is about to be taken in"


def test_a_log_that_is_offline_tells_its_reason_and_no_offsets() -> None:
    logs = {1: log(9, hw=9), 2: log(4, offline="no space left on device")}
    seen = of(stand(AT, partition(1, (1,)), scene(logs, followers={2: follower(4)})), 2)
    assert seen.why == "log offline: no space left on device"
    assert seen.held is None
    assert seen.loss == Loss(5, 0, Bound.AT_MOST)


def test_an_in_sync_replica_that_does_not_answer_is_a_story() -> None:
    told = scene({1: log(9, hw=9)}, followers={2: follower(9)}, silent={2: "no answer"})
    seen = stand(AT, partition(1, (1, 2, 3)), told)
    assert seen.is_well
    assert seen.has_a_story
    assert of(seen, 2).role is Role.IN_SYNC
    assert of(seen, 2).why == "broker 2 does not answer"


def test_a_broker_that_does_not_answer_is_said_to_and_one_unknown_too() -> None:
    told = scene({1: log(9, hw=9)}, followers={2: follower(3, 400)}, silent={2: "refused"})
    told = told._replace(registered=frozenset(map(NodeId, (1, 2))))
    seen = stand(AT, partition(1, (1,)), told)
    assert of(seen, 2).why == "broker 2 does not answer, holds up to 3 of 9"
    assert of(seen, 3).why == "broker 3 is not registered"
    assert of(seen, 3).loss is None


def test_epochs_are_told_with_their_ends() -> None:
    assert epoch_ends(log(9, (0, 0), (2, 4), (3, 7))) == ((0, 4), (2, 7), (3, 9))
    assert epoch_ends(log(9)._replace(epochs=())) == ()
    assert epoch_ends(log(9)._replace(epochs=None)) == ()


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two logs as the epoch of each offset: a common prefix, then each its own way."""
    shared = sorted(draw(st.lists(st.integers(0, 3), max_size=6)))
    least = shared[-1] if shared else 0
    one = sorted(draw(st.lists(st.integers(least, 6), max_size=5)))
    other = sorted(draw(st.lists(st.integers(least, 6), max_size=5)))
    return shared + one, shared + other


def held_of(epochs: list[int]) -> Held:
    starts = [(e, at) for at, e in enumerate(epochs) if at == 0 or epochs[at - 1] != e]
    entries = tuple(EpochEntry(LeaderEpoch(e), Offset(at)) for e, at in starts)
    return Held(Offset(0), Offset(len(epochs)), Offset(0), entries)


@given(histories())
def test_the_common_end_is_the_longest_prefix_of_equal_epochs(
    both: tuple[list[int], list[int]],
) -> None:
    one, other = both
    expected = next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    assert common_end(held_of(one), held_of(other)) == expected
    assert common_end(held_of(other), held_of(one)) == expected
