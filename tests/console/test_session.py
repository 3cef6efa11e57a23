import json

import pytest

from cotidal.console.session import Session
from cotidal.console.stories import library
from cotidal.console.world import Command, Refused
from cotidal.limits import PAGE_COMMAND_BYTES_MAX, PAGE_PARTITIONS_WHOLE


class Counter:
    """A world that counts."""

    about = {"title": "counter"}

    def __init__(self):
        self.value = 0
        self.told = []

    @property
    def logs(self):
        return {"told": self.told}

    def obey(self, command):
        match command.name:
            case "add":
                self.value += command.number("by", least=1, most=9)
                self.told.append({"text": f"now {self.value}"})
                return None
            case "forget":
                del self.told[:]
                return None
            case "look":
                return {"value": self.value}
        raise Refused("a counter does not know that")

    def advance(self, passed_ms):
        self.value += passed_ms

    def picture(self):
        return {"value": self.value}


@pytest.fixture
def session():
    made = Session({"counter": lambda command: Counter()})
    hear(made, do="open", world="counter")
    return made


def hear(session, **said):
    session.hear(json.dumps(said))
    return [json.loads(text) for text in session.take()]


def test_a_world_is_opened_and_shown():
    made = Session({"counter": lambda command: Counter()})
    assert hear(made, do="open", world="counter") == [
        {
            "tell": "opened",
            "world": "counter",
            "worlds": ["counter"],
            "about": {"title": "counter", "library": library()},
        },
        {"tell": "picture", "patch": {"value": 0}},
    ]


def test_a_page_that_is_not_ready_gets_no_picture(session):
    assert hear(session, do="add", by=1) == []
    assert hear(session, do="add", by=2) == []
    log, picture = hear(session, do="ready")
    assert log == {
        "tell": "log",
        "name": "told",
        "at": 0,
        "items": [{"text": "now 1"}, {"text": "now 3"}],
    }
    assert picture == {"tell": "picture", "patch": {"value": 3}}


def test_time_is_shown_as_it_passes(session):
    hear(session, do="ready")
    session.turn(40)
    assert [json.loads(text) for text in session.take()] == [
        {"tell": "picture", "patch": {"value": 40}}
    ]


def test_nothing_is_sent_when_nothing_has_changed(session):
    hear(session, do="ready")
    session.turn(0)
    assert session.take() == []


def test_a_log_that_became_shorter_is_told_from_where_it_ends(session):
    hear(session, do="ready")
    hear(session, do="add", by=1)
    hear(session, do="ready")
    log = hear(session, do="forget")[0]
    assert log == {"tell": "log", "name": "told", "at": 0, "items": []}


def test_an_answer_names_its_question(session):
    assert hear(session, do="look", ask=7) == [{"tell": "answer", "ask": 7, "value": 0}]


def test_a_refusal_names_its_command_and_says_why(session):
    assert hear(session, do="fly", ask=8) == [
        {"tell": "refused", "ask": 8, "sentence": "a counter does not know that"}
    ]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "7", '{"do": 7}', '{"do": null}', '{"do": "open", "world": "moon"}',
     '{"do": "add"}', '{"do": "add", "by": true}', '{"do": "add", "by": 1e9}',
     "x" * (PAGE_COMMAND_BYTES_MAX + 1)],
)  # fmt: skip
def test_whatever_a_page_says_it_gets_a_sentence(session, text):
    session.hear(text)
    (told,) = [json.loads(each) for each in session.take()]
    assert told["tell"] == "refused"
    assert told["sentence"]


def test_no_world_is_commanded_before_one_is_open():
    made = Session({})
    assert hear(made, do="run")[0]["sentence"] == "no world is open yet"


def test_a_command_knows_numbers_from_truth():
    with pytest.raises(Refused, match="whole number 'node' from 1 to 3"):
        Command({"do": "kill", "node": True}).number("node", least=1, most=3)


class Later:
    """An answer that takes its time."""

    def __init__(self):
        self.given = None

    def found(self):
        if isinstance(self.given, Refused):
            raise self.given
        return self.given


class Slow(Counter):
    """A world whose answers come when the test gives them."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def obey(self, command):
        self.asked.append(Later())
        return self.asked[-1]


@pytest.fixture
def slow():
    made = Session({"slow": lambda command: Slow()})
    hear(made, do="open", world="slow")
    return made


def answers(session):
    session.turn(0)
    told = [json.loads(text) for text in session.take()]
    return [each for each in told if each["tell"] in ("answer", "refused")]


def test_an_answer_that_takes_time_is_given_when_it_is_found(slow):
    hear(slow, do="look", ask=1)
    hear(slow, do="look", ask=2)
    assert answers(slow) == []
    slow.world.asked[1].given = {"value": 5}
    assert answers(slow) == [{"tell": "answer", "ask": 2, "value": 5}]
    slow.world.asked[0].given = Refused("it took too long")
    assert answers(slow) == [{"tell": "refused", "ask": 1, "sentence": "it took too long"}]
    assert answers(slow) == []


def test_a_question_to_a_world_that_is_left_is_refused(slow):
    hear(slow, do="look", ask=1)
    told = hear(slow, do="open", world="slow")
    assert told[0] == {"tell": "refused", "ask": 1, "sentence": "another world was opened"}


def test_a_page_is_shown_the_partition_that_it_chooses():
    class Many(Counter):
        def picture(self):
            whole = {"leader": 1, "leader_epoch": 0, "replicas": [1], "isr": [1], "elr": []}
            whole |= {"min_isr": 1, "logs": {}}
            partitions = {f"t-{n}": whole for n in range(PAGE_PARTITIONS_WHOLE + 1)}
            return {"brokers": {"1": {"state": "up"}}, "partitions": partitions, "clients": {}}

    session = Session({"many": lambda command: Many()})
    opened = hear(session, do="open", world="many")
    assert list(opened[-1]["patch"]["partitions"]) == ["t-0"]
    hear(session, do="choose", partition="t-9")
    (told,) = hear(session, do="ready")
    assert told["patch"]["partitions"]["t-0"] is None
    assert told["patch"]["partitions"]["t-9"]["leader"] == 1
