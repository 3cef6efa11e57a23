"""What nodes tell of themselves, as lines, messages and samples."""

from cotidal.console.live.hearsay import (
    CONSOLE,
    FLIGHT_US,
    GUEST_US,
    GUESTS_KNOWN_MAX,
    GUESTS_MAX,
    Hearsay,
)

BEGUN = 1_000_000


def received(peer="node-2", api="Fetch", size=0, at=50):
    told = {"at": BEGUN + at, "step": 3, "kind": "received", "said": f"#1 {api}", "peer": peer}
    return told | {"asks": [[api, size]]}


def respond(peer="node-2", api="Fetch", size=0, at=80, **more):
    told = {"at": BEGUN + at, "step": 4, "kind": "respond", "said": f"#1 {api}", "peer": peer}
    return told | {"api": api, "bytes": size} | more


def test_a_request_arrives_when_its_receiver_has_it_and_an_answer_leaves_when_it_is_sent():
    hearsay = Hearsay(BEGUN)
    (request,) = hearsay.flights(1, received())
    (answer,) = hearsay.flights(1, respond(size=90))
    assert (request["source"], request["target"], request["answer"]) == (2, 1, False)
    assert (request["sent_us"], request["arrives_us"]) == (50 - FLIGHT_US, 50)
    assert (answer["source"], answer["target"], answer["answer"]) == (1, 2, True)
    assert (answer["sent_us"], answer["arrives_us"], answer["bytes"]) == (80, 80 + FLIGHT_US, 90)
    assert request["number"] != answer["number"]


def test_a_message_tells_what_was_said_and_in_which_step_of_which_node():
    """There the page finds what it caused."""
    hearsay = Hearsay(BEGUN)
    (request,) = hearsay.flights(1, received(api="Produce", size=90))
    (answer,) = hearsay.flights(1, respond())
    for flight, step, at in ((request, 3, 50), (answer, 4, 80)):
        assert (flight["node"], flight["step"], flight["at"]) == (1, step, at)
        assert flight["said"] == f"#1 {flight['api']}"
    assert request["bytes"] == 90
    line = hearsay.line(1, respond())
    assert line == {"at": 80, "node": 1, "step": 4, "kind": "respond", "text": "#1 Fetch"}


def test_questions_that_come_together_are_a_message_each():
    asked = received() | {"asks": [["Produce", 90], ["Fetch", 0]]}
    flights = Hearsay(BEGUN).flights(1, asked)
    assert [(each["api"], each["bytes"]) for each in flights] == [("Produce", 90), ("Fetch", 0)]


def test_a_client_may_be_called_almost_as_a_node_is():
    hearsay = Hearsay(BEGUN)
    assert len(list(hearsay.flights(1, received(peer="node-exporter")))) == 1
    assert [each["label"] for each in hearsay.clients(100).values()] == ["node-exporter"]


def test_a_message_on_a_slow_link_is_under_way_for_as_long_as_it_is():
    hearsay = Hearsay(BEGUN)
    hearsay.slow_ms = {"1-2": 1200}
    (slow,) = hearsay.flights(2, respond(peer="node-1"))
    (usual,) = hearsay.flights(2, respond(peer="node-3"))
    assert slow["arrives_us"] - slow["sent_us"] == 1_200_000
    assert usual["arrives_us"] - usual["sent_us"] == FLIGHT_US


def test_who_produces_and_who_fetches_is_drawn_until_it_is_silent_for_long():
    hearsay = Hearsay(BEGUN)
    (flight,) = hearsay.flights(1, received(peer="shop", api="Produce"))
    list(hearsay.flights(1, received(peer="billing")))
    shown = hearsay.clients(1000)
    assert {each["label"]: each["kind"] for each in shown.values()} == {
        "shop": "producer", "billing": "consumer",
    }  # fmt: skip
    assert shown["shop (producer)"]["host"] == flight["source"]
    assert len({each["host"] for each in shown.values()}) == 2
    assert hearsay.clients(GUEST_US + 1000) == {}


def test_a_client_is_there_from_when_its_first_message_was_sent_also_for_those_who_go_back():
    hearsay = Hearsay(BEGUN)
    again = 3 * GUEST_US
    (first,) = hearsay.flights(1, received(peer="shop", api="Produce", at=GUEST_US))
    (later,) = hearsay.flights(1, received(peer="shop", api="Produce", at=again))
    assert first["source"] == later["source"]
    for flight in (first, later):
        for moment in (flight["sent_us"], flight["arrives_us"], flight["arrives_us"] + GUEST_US):
            assert [each["host"] for each in hearsay.clients(moment).values()] == [first["source"]]
        assert hearsay.clients(flight["sent_us"] - 1) == {}
        assert hearsay.clients(flight["arrives_us"] + GUEST_US + 1) == {}


def test_only_so_many_clients_are_remembered_and_no_two_share_a_place():
    hearsay = Hearsay(BEGUN)
    hosts = set()
    for number in range(GUESTS_KNOWN_MAX + 1):
        (flight,) = hearsay.flights(1, received(peer=f"p{number}", api="Produce", at=number))
        hosts.add(flight["source"])
    assert len(hosts) == GUESTS_KNOWN_MAX + 1
    assert len(hearsay._guests) == GUESTS_KNOWN_MAX
    assert ("p0", "producer") not in hearsay._guests


def test_so_many_clients_are_drawn_and_those_heard_of_last():
    hearsay = Hearsay(BEGUN)
    for number in range(GUESTS_MAX + 3):
        list(hearsay.flights(1, received(peer=f"p{number}", api="Produce", at=number)))
    labels = [each["label"] for each in hearsay.clients(100).values()]
    assert labels == [f"p{number}" for number in range(GUESTS_MAX + 2, 2, -1)]


def test_what_the_console_asks_for_itself_is_no_message_of_the_picture():
    hearsay = Hearsay(BEGUN)
    for told in (received(peer=CONSOLE), received(peer="shop", api="Metadata"), received(peer="")):
        assert list(hearsay.flights(1, told)) == []
    assert hearsay.clients(100) == {}
    assert len(list(hearsay.flights(1, received(peer=CONSOLE, api="Produce")))) == 1
    assert hearsay.line(1, received(peer=CONSOLE))["own"]
    assert "own" not in hearsay.line(1, received())


def test_how_long_a_producer_waited_is_a_sample_by_its_level():
    hearsay = Hearsay(BEGUN)
    assert hearsay.sample(respond(api="Produce", acks="all", took_us=900)) == {
        "at": 80, "acks": "all", "us": 900,
    }  # fmt: skip
    assert hearsay.sample(respond()) is None


def test_what_was_passed_over_is_counted_in_a_line():
    line = Hearsay(BEGUN).line(3, {"at": BEGUN + 5, "step": 9, "kind": "passed", "count": 1812})
    assert (line["at"], line["node"]) == (5, 3)
    assert line["text"].startswith("1,812 more moments")
