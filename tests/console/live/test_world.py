"""A live cluster as a world: now, at a moment that was seen, and asked."""

import time

import pytest

from cotidal.client.failures import Unreachable
from cotidal.console.desk.question import Question
from cotidal.console.live import world as worlds
from cotidal.console.live.clerks import Clerks
from cotidal.console.live.hearsay import Hearsay
from cotidal.console.live.watch import Frame, Watch
from cotidal.console.live.world import READ_ONLY, Live
from cotidal.console.session import Session
from cotidal.console.world import Command, Refused
from cotidal.limits import LIVE_FRAMES_MAX, LIVE_LOG_MAX, LIVE_QUESTIONS_MAX

NOWHERE = "localhost:1"
SECOND = 1_000_000


class Controlled:
    """Controls of a cluster that is not there."""

    def __init__(self, *names):
        self.acts = {name: type("Act", (), {"kind": name}) for name in names}
        self.done = []

    def do(self, name, command):
        self.done.append(name)
        return f"You {name}."


@pytest.fixture
def watch():
    """It has seen three moments; nothing is asked of any cluster."""
    made = Watch(NOWHERE)
    made.begun_us -= 60 * SECOND
    for at, leader in ((10, 1), (20, 2), (30, 3)):
        made._keep(Frame(at * SECOND, {"partitions": {"orders-0": {"leader": leader}}}))
    for at in (15, 25):
        made._add("told", [{"at": at * SECOND, "text": "something"}])
    return made


def live(watch, controls=None, *, allow_changes=False):
    return Live(watch, Clerks(NOWHERE), controls, allow_changes=allow_changes)


def leader(world):
    return world.picture()["partitions"]["orders-0"]["leader"]


def obey(world, **said):
    return world.obey(Command(said))


def answered(awaited):
    deadline = time.monotonic() + 20
    while (found := awaited.found()) is None:
        assert time.monotonic() < deadline
    return found


def test_a_page_goes_with_the_cluster(watch):
    world = live(watch)
    assert leader(world) == 3
    assert world.picture()["state"] == "running"
    watch._keep(Frame(40 * SECOND, {"partitions": {"orders-0": {"leader": 1}}}))
    assert leader(world) == 1


def test_a_page_goes_back_to_what_was_seen_and_comes_again(watch):
    world = live(watch)
    obey(world, do="seek", us=24 * SECOND)
    assert (leader(world), world.picture()["state"]) == (2, "paused")
    obey(world, do="back")
    assert world.picture()["now_us"] == 15 * SECOND
    obey(world, do="step")
    assert world.picture()["now_us"] == 25 * SECOND
    obey(world, do="step")  # nothing more was told: now
    assert world.picture()["state"] == "running"
    obey(world, do="seek", us=0)
    assert leader(world) == 1  # nothing was seen before
    obey(world, do="run")
    assert leader(world) == 3


def test_a_client_is_drawn_at_the_moment_of_its_first_message_whatever_was_seen_then(watch):
    """The cluster was looked at before and after it."""
    told = {"at": watch.begun_us + 25 * SECOND, "step": 1, "kind": "received", "said": "#1 Produce"}
    watch._hearsay = Hearsay(watch.begun_us)
    watch.on_heard([(1, told | {"peer": "shop", "asks": [["Produce", 9]]})])
    world = live(watch)
    (flight,) = world.logs["flights"]
    for moment, there in ((flight["sent_us"], ["shop"]), (20 * SECOND, [])):
        obey(world, do="seek", us=moment)
        assert [each["label"] for each in world.picture()["clients"].values()] == there


def test_a_page_that_pauses_stays_while_the_cluster_goes_on(watch):
    world = live(watch)
    obey(world, do="pause")
    stays = world.picture()["now_us"]
    watch._keep(Frame(watch.now_us + SECOND, {"partitions": {"orders-0": {"leader": 9}}}))
    assert (leader(world), world.picture()["now_us"]) == (3, stays)


def test_only_so_many_moments_are_kept(watch):
    for number in range(LIVE_FRAMES_MAX + 5):
        watch._keep(Frame(number, {}))
    assert len(watch.frames) == LIVE_FRAMES_MAX
    assert watch.frames[-1].at_us == LIVE_FRAMES_MAX + 4


def test_a_page_hears_every_line_once_though_the_oldest_are_let_go(watch):
    session = Session({"live": lambda command: live(watch)})
    session.hear('{"do": "open"}')
    known = []

    def hear():
        session.hear('{"do": "ready"}')
        for message in session.outbox:
            if message["tell"] == "log" and message["name"] == "told":
                known.extend(message["items"])
        session.outbox.clear()

    hear()
    known.clear()
    said = [{"at": at, "text": ""} for at in range(LIVE_LOG_MAX + 40)]
    for at in range(0, len(said), 20):
        watch._add("told", said[at : at + 20])
        hear()
    assert known == said
    assert len(list(watch.logs["told"])) < LIVE_LOG_MAX


@pytest.fixture
def questions(monkeypatch):
    def fail(desk, asked):
        raise Unreachable("broker 2", "it is gone")

    found = {
        "double": Question(lambda desk, asked: {"is": 2 * asked.number("it", least=0, most=9)}),
        "change": Question(lambda desk, asked: {}, changes=True),
        "fail": Question(fail),
        "bug": Question(lambda desk, asked: {"is": 1 // 0}),
    }
    monkeypatch.setattr(worlds, "QUESTIONS", found)


def test_a_question_reaches_the_desk_with_its_arguments(watch, questions):
    asked = obey(live(watch), do="ask", what="double", arguments={"it": 4})
    assert answered(asked) == {"is": 8}


def test_what_the_cluster_or_the_desk_refuses_is_a_sentence(watch, questions):
    world = live(watch)
    with pytest.raises(Refused, match="cannot reach broker 2: it is gone"):
        answered(obey(world, do="ask", what="fail"))
    with pytest.raises(Refused, match="needs a whole number 'it'"):
        answered(obey(world, do="ask", what="double"))
    with pytest.raises(Refused, match="'what' is one of double"):
        obey(world, do="ask", what="format-the-disk")
    with pytest.raises(Refused, match="'arguments' is an object"):
        obey(world, do="ask", what="double", arguments=[4])


def test_a_fault_of_a_question_is_told_and_ends_no_clerk(watch, questions, capsys):
    world = live(watch)
    for _ in range(6):
        with pytest.raises(Refused, match="the console failed: ZeroDivisionError"):
            answered(obey(world, do="ask", what="bug"))
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert answered(obey(world, do="ask", what="double", arguments={"it": 1})) == {"is": 2}


def test_without_leave_nothing_is_changed(watch, questions):
    controls = Controlled("kill")
    world = live(watch, controls)
    assert world.about["can"] == []
    with pytest.raises(Refused) as refused:
        obey(world, do="ask", what="change")
    assert str(refused.value) == READ_ONLY
    with pytest.raises(Refused, match="only shows"):
        obey(world, do="kill", node=2)
    assert controls.done == []


def test_with_leave_it_is_changed_and_told(watch, questions):
    controls = Controlled("kill")
    world = live(watch, controls, allow_changes=True)
    assert world.about["can"] == ["kill"]
    assert answered(obey(world, do="ask", what="change")) == {}
    assert answered(obey(world, do="kill", node=2)) == {"sentence": "You kill."}
    assert controls.done == ["kill"]
    assert world.logs["told"][-1]["text"] == "You kill."
    with pytest.raises(Refused, match="knows no 'wipe'"):
        obey(world, do="wipe", node=2)


def test_where_processes_are_not_ours_they_cannot_be_killed(watch):
    with pytest.raises(Refused, match="knows no 'kill'"):
        obey(live(watch, allow_changes=True), do="kill", node=2)


def test_more_questions_than_a_person_asks_are_refused(monkeypatch):
    monkeypatch.setattr("cotidal.console.live.clerks.LIVE_CLERKS_MAX", 0)
    clerks = Clerks(NOWHERE)
    for _ in range(LIVE_QUESTIONS_MAX):
        clerks.ask(lambda cluster: {})
    with pytest.raises(Refused, match="questions wait for an answer already"):
        clerks.ask(lambda cluster: {})


def test_a_cluster_that_does_not_answer_is_told_as_such():
    watch = Watch("127.0.0.1:1")
    watch.look()
    watch.wait(20)
    picture = live(watch).picture()
    assert picture["health"]["state"] == "bad"
    assert picture["health"]["sentence"].startswith("No broker answers: cannot reach 127.0.0.1:1")
