"""What happens, in sentences."""

import pytest

from cotidal.cli.event_lines import _SENTENCES
from cotidal.console.live.teller import _EVENTS, told_between, told_of

AT = {"topic": "orders", "partition": 0, "leader_epoch": 6}


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (
            {"kind": "isr_shrunk", **AT, "isr": [1, 3], "removed": [2]},
            "The ISR of orders-0 shrinks to 1, 3, without 2.",
        ),
        (
            {"kind": "isr_expanded", **AT, "isr": [1, 3], "added": [3]},
            "Broker 3 has caught up with orders-0: the ISR grows to 1, 3.",
        ),
        (
            {"kind": "leader_changed", **AT, "previous": 1, "leader": 3, "isr": [3, 2]},
            "Broker 3 leads orders-0 in epoch 6, after broker 1; the ISR is 3, 2.",
        ),
        (
            {"kind": "leader_changed", **AT, "previous": 1, "leader": -1, "isr": []},
            "Nobody leads orders-0 any more, in epoch 6.",
        ),
        (
            {"kind": "unclean_election", **AT, "leader": 3, "was_last_leader": False},
            "Broker 3 leads orders-0 UNCLEANLY in epoch 6: it may lack what was acknowledged.",
        ),
        (
            {"kind": "log_truncated", **AT, "teller": 1, "offset": 7, "records": 1},
            "Broker 1's log of orders-0 parted from its leader's at 7: it cuts 1 record.",
        ),
        (
            {"kind": "high_watermark_regressed", **AT, "teller": 1, "previous": 9}
            | {"high_watermark": 7},
            "Broker 1 hears of a lower high watermark of orders-0: 7 after 9.",
        ),
        (
            {"kind": "broker_fenced", "node": 2},
            "The controller fences broker 2: it leads nothing.",
        ),
        (
            {"kind": "controller_changed", "controller": 2, "controller_epoch": 4},
            "Node 2 is the active controller, of term 4.",
        ),
        (
            {"kind": "reassignment_started", **AT, "adding": [4], "removing": [1]},
            "orders-0 is to move: broker 4 comes, 1 goes.",
        ),
    ],
)
def test_an_event_of_a_broker_is_told(event, sentence):
    assert told_of(event).text == sentence


def test_every_happening_has_a_sentence():
    assert set(_EVENTS) == set(_SENTENCES) - {"health"}


def test_what_is_not_known_here_is_passed_over():
    assert told_of({"kind": "of a later version"}) is None


def test_what_is_made_up_is_passed_over():
    assert told_of({"kind": "isr_shrunk"}) is None
    assert told_of({"kind": "isr_shrunk", **AT, "isr": 7, "removed": []}) is None
    made_up = {"kind": "leader_changed", **AT, "previous": 1, "leader": "x", "isr": []}
    assert told_of(made_up) is None


def picture(states, leader=1, epoch=4, isr=(1, 2), controller="1", replicas=(1, 2)):
    brokers = {
        node: {"state": state, "quorum": {"role": "follower", "epoch": 3}}
        for node, state in states.items()
    }
    if controller in brokers:
        brokers[controller]["quorum"] = {"role": "leader", "epoch": 3}
    orders = {"leader": leader, "leader_epoch": epoch, "isr": isr, "replicas": replicas}
    return {"brokers": brokers, "partitions": {"orders-0": orders}}


UP = {"1": "up", "2": "up"}


@pytest.mark.parametrize(
    ("after", "sentences"),
    [
        (picture(UP), []),
        (picture(UP, isr=(2, 1)), []),
        (picture({"1": "up", "2": "fenced"}), ["Broker 2 is fenced; it was up."]),
        (picture({**UP, "3": "up"}), ["Broker 3 is there."]),
        (picture({"1": "up"}), ["Broker 2 is registered no longer."]),
        (picture(UP, controller="2"), ["Node 2 is the active controller, of term 3."]),
        (picture(UP, isr=(1,)), ["The ISR of orders-0 shrinks to 1."]),
        (picture(UP, isr=(1, 2, 3)), ["The ISR of orders-0 grows to 1, 2, 3."]),
        (
            picture(UP, leader=2, epoch=5, isr=(2,)),
            ["Broker 2 leads orders-0 in epoch 5, after broker 1; the ISR is 2."],
        ),
        (picture(UP, leader=-1, epoch=5), ["Nobody leads orders-0 any more."]),
        (picture(UP, replicas=(1, 3)), ["The replicas of orders-0 are 1, 3 now."]),
    ],
)
def test_between_two_pictures_the_difference_is_told(after, sentences):
    assert [told.text for told in told_between(picture(UP), after)] == sentences
