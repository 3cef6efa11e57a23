"""The desk in a real browser, over a console and three brokers, each a process of its own.

Every view is opened and every action clicked.
"""

import json
import re

import confluent_kafka
import pytest

from browser import PageServer, serious_problems, shot
from cotidal.cli.topic import wait_for_leaders
from cotidal.client.admin import Resource, change_configs, create_topic, delete_topics
from cotidal.client.cluster import Cluster as Client
from cotidal.client.moving import reassign
from cotidal.client.producer import Producer
from cotidal.testing.cluster import ProcessCluster
from cotidal.values import TopicPartition, WallMillis
from hanging import UNVERIFIED, hang

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.plain]

PATIENCE_MS = 30_000
VIEWS = [
    *("overview", "topics", "records", "groups", "transactions"),
    *("settings", "moves", "quorum", "health", "trace"),
]
HOSTILE = [
    b"<script>document.title = 'taken'</script>",
    b"<img src=x onerror=\"document.title = 'taken'\">",
    b"\xff\xfe\x00 is no UTF-8",
    "turned \u202e around".encode(),
    b"x" * 10_000_000,
    None,
]

NO_CALENDAR = WallMillis(1 << 62)

ANSWERED_LATE = """() => {
  const desk = cotidal.desk, ask = desk.ask.bind(desk);
  const late = new Promise((done) => { desk.answerNow = done; });
  desk.ask = async (what, given) => {
    const found = await ask(what, given);
    if (given?.kind === "topic") { desk.isWaiting = true; await late; }
    return found;
  };
}"""
"""Of a topic's settings, when a test says so."""

NOTED = """() => {
  const desk = cotidal.desk, act = desk.act.bind(desk);
  desk.act = (what, given, then) => { desk.noted = [what, given]; return act(what, given, then); };
}"""
"""What is to be done, and to what."""

BESIDE = """[...document.querySelectorAll('body *')].filter((each) =>
  !each.closest('.scroll, .tabs') && each.getBoundingClientRect().right > 391
).map((each) => each.outerHTML.slice(0, 90))"""

CHOSEN_AT_ONCE = """(choice, values) => {
  for (const value of values) {
    choice.value = value;
    choice.dispatchEvent(new Event("change"));
  }
}"""


@pytest.fixture(scope="module")
def cluster():
    with ProcessCluster(3, settings=UNVERIFIED) as made:
        yield made


@pytest.fixture(scope="module")
def filled(cluster):
    """Topics, a group, an open transaction."""
    with Client(cluster.bootstrap, timeout_s=20.0) as client:
        for name, partitions in (("orders", 2), ("hostile", 1)):
            create_topic(
                client, name, partitions=partitions, replication_factor=3,
                configs={"min.insync.replicas": "2"},
            )  # fmt: skip
            wait_for_leaders(client, name, partitions=partitions)
        big = {
            "max.message.bytes": str(16 * 1024 * 1024),
            "message.timestamp.after.max.ms": str((1 << 63) - 1),
        }
        change_configs(client, Resource.TOPIC, "hostile", set_to=big)
        producer = Producer(client, "orders", partition=0)
        for number in range(120):
            producer.add(b'{"id":%d,"price":1.10}' % number, key=b"k%d" % number)
        producer.flush()
        producer = Producer(client, "hostile", partition=0)
        for value in HOSTILE:
            producer.add(
                value, key=b"<b>key</b>", headers=[("<i>", b"</td><td>")], timestamp=NO_CALENDAR
            )
        producer.flush()
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "billing",
            "client.id": "billing-1",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["orders"])
    while consumer.poll(0.2) is None:
        pass
    consumer.commit(offsets=[confluent_kafka.TopicPartition("orders", 0, 20)], asynchronous=False)
    writer = confluent_kafka.Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": "shop",
            "transaction.timeout.ms": 900_000,  # open for as long as these tests may take
        }
    )
    writer.init_transactions(30)
    writer.begin_transaction()
    writer.produce("orders", b"open", partition=1)
    writer.flush(30)
    yield cluster
    writer.abort_transaction(30)
    consumer.close()


@pytest.fixture(scope="module")
def console(filled):
    made = PageServer(
        "--bootstrap", filled.bootstrap, "--port", "0", "--allow-changes", verb=("console",)
    )
    yield made
    made.stop()


@pytest.fixture
def page(open_page, console):
    opened = open_page(console.address)
    opened.set_default_timeout(PATIENCE_MS)
    return opened


def go(page, view):
    page.click(f"#tab-{view}")
    page.wait_for_selector(f"#desk[aria-labelledby=tab-{view}] .card")


def confirm(page, *, loses=False):
    """The plan is read, and accepted."""
    page.wait_for_selector("#confirm")
    text = page.inner_text("#dialog")
    if loses:
        assert page.is_disabled("#confirm")
        page.check("#accept")
    page.click("#confirm")
    page.wait_for_selector("#dialog", state="hidden")
    page.wait_for_selector("#desk > .told.good")
    return text


def read(page, topic, **fields):
    page.fill("#records-topic", topic)
    for name, value in fields.items():
        page.fill(f"#records-{name}", value)
    page.click("#read button[type=submit]")
    for _ in range(400):
        if page.locator(f".told:has-text('{topic}-')").count():
            return
        page.wait_for_timeout(100)
    said = page.locator(".told").all_inner_texts()
    raise AssertionError(f"{topic} was not read; the page says {said}")


def cells(page, row):
    """Texts of a row after its first cell."""
    return page.locator(row).first.locator("td").all_inner_texts()


def values(page):
    return page.locator("tr.record td:nth-child(4)").all_inner_texts()


@pytest.mark.parametrize(("scheme", "views"), [("light", VIEWS[:5]), ("dark", VIEWS[5:])])
def test_every_view_opens_and_axe_finds_no_serious_problem(open_page, console, axe, scheme, views):
    page = open_page(console.address, color_scheme=scheme)
    for view in views:
        go(page, view)
        page.wait_for_selector("#desk table, #desk .note")
        if view == "settings":  # one row is like another, and axe looks at each
            page.get_by_label("Find").fill("retention")
        assert serious_problems(page, axe, within="#desk, #tabs") == [], view
        assert not page.is_visible("#stage")
    page.click("#tab-picture")
    page.wait_for_selector("#stage")
    assert not page.is_visible("#desk")


def test_tabs_are_walked_with_the_arrow_keys_and_stand_in_the_address(page, open_page):
    page.focus("#tab-picture")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#desk .verdict")
    assert page.evaluate("document.activeElement.id") == "tab-overview"
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#stage")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#tab-trace[aria-selected=true]")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#tab-quorum[aria-selected=true]")
    assert "tab=quorum" in page.url
    page.reload()
    page.wait_for_selector("#desk .verdict:has-text('leads in epoch')")
    page.wait_for_selector("#desk tbody tr >> nth=2")
    role, end, behind, *since = cells(page, "#desk tbody tr:has(.pill.leader)")
    assert (role, behind, since) == ("leader", "0", ["–", "–"])
    assert int(end.replace(",", "")) > 0


def test_the_overview_says_in_one_sentence_that_all_is_well(page):
    go(page, "overview")
    page.wait_for_selector(".verdict.good:has-text('All well: 3 brokers')")
    assert page.locator("#desk tbody tr").count() == 3
    assert page.locator("#desk tbody .pill.control").all_inner_texts() == ["controller"]
    for row in page.locator("#desk tbody tr").all():
        leads, hosts = row.locator("td").all_inner_texts()[3:5]
        assert int(leads) < int(hosts)
    page.click("#desk tbody tr:first-child button")
    page.wait_for_selector("#tab-settings[aria-selected=true]")
    assert page.input_value("#settings-name") == "1"


def test_hostile_records_are_shown_and_do_nothing(page):
    go(page, "records")
    read(page, "hostile")
    page.wait_for_selector("tr.record >> nth=5")
    shown = values(page)
    assert shown[0] == HOSTILE[0].decode()
    assert shown[1] == HOSTILE[1].decode()
    assert shown[2].startswith("000000")
    assert shown[3] == "turned \\u202e around"
    assert "Show more of 10,000,000 bytes" in shown[4]
    assert len(shown[4]) < 2_000
    assert shown[5] == "null"
    assert page.locator("#desk script, #desk img, #desk table b:has-text('key')").count() == 0
    page.click("text=Show more of 10,000,000 bytes")
    page.wait_for_selector("text=The first part of 10,000,000 bytes")
    page.click("#compare")
    page.wait_for_selector(".told:has-text('replicas hold the same records from offset 0 to 5')")
    assert "taken" not in page.title()


def test_records_are_turned_looked_through_and_laid_out(page):
    go(page, "records")
    read(page, "orders", **{"from": "10"})
    page.wait_for_selector("tr.record:has-text('k59')")
    assert page.locator("tr.record").count() == 50
    page.click("#newer")
    page.wait_for_selector("tr.record:has-text('k60')")
    page.click("#older")
    page.wait_for_selector("tr.record:has-text('k10')")
    page.select_option("#records-form", "json")
    read(page, "orders", **{"from": "0", "text": '"id":77,'})
    page.wait_for_selector("tr.record:has-text('k77')")
    assert values(page) == ['{\n  "id": 77,\n  "price": 1.10\n}']
    page.select_option("#records-form", "hex")
    page.select_option("#records-replica", "2")
    read(page, "orders")
    page.wait_for_selector(".told:has-text('on broker 2')")
    page.fill("#records-topic", "order")
    page.click("#read button[type=submit]")
    page.wait_for_selector(".told.bad:has-text(\"did you mean 'orders'\")")


def test_a_record_is_produced(page):
    go(page, "records")
    page.click("summary:has-text('Produce a record')")
    form = page.locator("#produce")
    form.get_by_label("Partition").fill("1")
    form.get_by_label("Topic").fill("orders")
    form.get_by_label("Key").fill("by hand")
    form.get_by_label("Headers").fill("why=test")
    form.locator("textarea").fill("written in the page")
    form.get_by_role("button", name="Produce").click()
    told = page.wait_for_selector("#produce .told.good").inner_text()
    assert re.fullmatch(
        r"Written to orders-1 at offset \d+ \(all in-sync replicas have it\)\.", told
    )
    form.get_by_label("Acknowledged by").select_option("1")
    form.get_by_label("a null value").check()
    form.get_by_label("Key").fill("gone")
    form.get_by_role("button", name="Produce").click()
    page.wait_for_selector("#produce .told.good:has-text('its leader has it')")
    page.get_by_label("At most", exact=True).fill("20")
    read(page, "orders", partition="1")
    page.wait_for_selector("tr.record:has-text('written in the page')")
    page.wait_for_selector("tr.record:has-text('gone') .pill:text('null')")


def test_a_topic_is_made_grown_set_moved_and_deleted(page):
    go(page, "topics")
    page.click("summary:has-text('New topic')")
    form = page.locator("#new-topic")
    form.get_by_label("Name").fill("by-hand")
    form.get_by_label("Partitions").fill("1")
    form.get_by_label("Replicas").fill("2")
    form.get_by_label("Settings").fill("min.insync.replicas = 1, cleanup.policy=compact")
    form.get_by_role("button").click()
    plan = confirm(page)
    assert "1 partition, 2 replicas each, min.insync.replicas=1, cleanup.policy=compact" in plan
    page.wait_for_selector("section[aria-label='Topic by-hand']")
    page.get_by_label("Partitions in all").fill("3")
    page.click("[data-key=grow]")
    assert "It has 1 partition and will have 3." in confirm(page)
    page.wait_for_selector("summary:has-text('by-hand-2')")
    page.click("[data-key=settings]")
    page.wait_for_selector("#tab-settings[aria-selected=true]")
    page.click("[data-key='set-retention.ms']")
    page.fill("#set-config input", "5000")
    page.click("#set-config button[type=submit]")
    assert "it will be '5000'" in confirm(page)
    page.wait_for_selector("tr:has-text('retention.ms') .pill:text('topic')")
    page.click("[data-key='set-retention.ms']")
    page.click("text=To its default…")
    page.click("text=Leave it as it is")
    page.wait_for_selector("#dialog", state="hidden")
    page.click("[data-key='set-retention.ms']")
    page.click("text=To its default…")
    assert "default" in confirm(page)
    page.wait_for_selector("tr:has-text('retention.ms') .pill:text('topic')", state="detached")
    go(page, "topics")
    page.click("[data-key=move]")
    page.wait_for_selector("#tab-moves[aria-selected=true]")
    page.fill("#move-brokers", "1, 2, 3")
    page.fill("#move-throttle", "10MB")
    page.locator("#move").get_by_label("Replicas of each").fill("3")
    page.click("#move button[type=submit]")
    assert "at most 10,000,000 bytes a second" in confirm(page)
    page.wait_for_selector("section[aria-label=Throttles] tr:has-text('broker 1')")
    page.wait_for_selector("section[aria-label='Under way']:has-text('Nothing is being moved')")
    page.click("#unthrottle")
    confirm(page)
    page.wait_for_selector("section[aria-label=Throttles]:has-text('Nothing is throttled')")
    go(page, "topics")
    page.click("[data-key='topic-by-hand']")
    page.click("[data-key=delete]")
    assert "There is no way back" in confirm(page, loses=True)
    page.wait_for_selector("[data-key='topic-by-hand']", state="detached")


def test_settings_of_brokers_and_topics_are_found(page):
    go(page, "settings")
    form = page.locator("#settings-form")
    row = page.locator("#desk tbody tr")
    kind = form.get_by_label("Of a")
    kind.evaluate(CHOSEN_AT_ONCE, ["topic", "broker"])  # the last one counts
    page.wait_for_selector("#desk tr:has-text('log.retention.ms')")
    assert page.input_value("#settings-name") == "1"
    kind.select_option("topic")
    page.fill("#settings-name", "hostile")
    form.get_by_role("button", name="Show").click()
    page.wait_for_selector("#desk tr:has-text('max.message.bytes'):has-text('16777216')")
    assert "Largest record batch accepted." in cells(page, "tr:has-text('max.message.bytes')")
    form.get_by_label("only what was changed").check()
    page.wait_for_selector("#desk tr:has-text('retention.bytes')", state="detached")
    assert "max.message.bytes" in row.nth(0).inner_text()
    form.get_by_label("Find").fill("insync")
    page.wait_for_selector("#desk tr:has-text('max.message.bytes')", state="detached")
    assert row.count() == 1
    page.fill("#settings-name", "nobody")
    form.get_by_role("button", name="Show").click()
    page.wait_for_selector("#desk > .told.bad")


def test_settings_that_come_late_do_not_replace_those_that_were_asked_for_since(page):
    go(page, "settings")
    page.wait_for_selector("#desk tr:has-text('retention.ms')")
    page.evaluate(ANSWERED_LATE)
    form = page.locator("#settings-form")
    form.get_by_role("button", name="Show").click()
    page.wait_for_function("() => cotidal.desk.isWaiting")
    form.get_by_label("Of a").select_option("broker")
    page.wait_for_selector("#desk tr:has-text('log.retention.ms')")
    page.evaluate("cotidal.desk.answerNow(), new Promise(requestAnimationFrame)")
    assert page.locator("[data-key='set-log.retention.ms']").count() == 1


def test_topics_are_found_and_lead_to_records(page):
    go(page, "topics")
    page.wait_for_selector("[data-key=topic-hostile]")
    assert page.locator("[data-key=topic-__consumer_offsets]").count() == 0
    page.get_by_label("Find").fill("ord")
    page.get_by_label("the cluster's own too").check()
    page.wait_for_selector("[data-key=topic-hostile]", state="detached")
    page.get_by_label("Find").fill("__consumer")
    page.wait_for_selector("[data-key=topic-__consumer_offsets]")
    page.get_by_label("Find").fill("")
    page.click("[data-key=topic-orders]")
    page.click("[data-key=records]")
    page.wait_for_selector(".told:has-text('orders-0 on broker')")
    for button, said in (("Records", "orders-1 on broker"), ("Compare replicas", "orders-1")):
        go(page, "topics")
        partition = page.locator("details.partition:has-text('orders-1')")
        if partition.get_attribute("open") is None:
            partition.locator("summary").click()
        partition.get_by_role("button", name=button).click()
        page.wait_for_selector(f".told:has-text('{said}')")


def test_leaders_are_elected_by_hand(page, client, make_topic):
    """Another replica is preferred from now on, first of one partition, then of another."""
    make_topic("led", partitions=2)
    told = client.topic("led").partitions
    for each in told:
        first, *rest = each.replicas
        reassign(client, {TopicPartition("led", each.partition): (*rest, first)})
    go(page, "topics")
    page.click("[data-key=topic-led]")
    partition = page.locator("details.partition:has-text('led-0')")
    partition.locator("summary").click()
    partition.get_by_role("button", name="Elect preferred leader").click()
    plan = confirm(page)
    assert "Nothing is lost" in plan
    assert "led-1" not in plan
    page.wait_for_selector(f"summary:has-text('led-0 led by {told[0].replicas[1]}')")
    go(page, "overview")
    page.wait_for_selector("text=1 partition is not led by the preferred leader.")
    page.click("[data-key=elect]")
    assert "led-1" in confirm(page)
    go(page, "topics")
    page.wait_for_selector(f"summary:has-text('led-1 led by {told[1].replicas[1]}')")


def test_a_move_is_stopped(page, client, make_topic):
    """A byte a second after its first fetch, which is of a mebibyte at most."""
    make_topic("stuck", *[b"x" * 100_000] * 40, replicas=1)
    (home,) = client.topic("stuck").partitions[0].replicas
    go(page, "moves")
    page.fill("#throttle-rate", "1")
    page.fill("#throttle-topics", "stuck")
    page.click("#throttle button[type=submit]")
    assert "Replicas of stuck that are not in sync" in confirm(page)
    page.fill("#move-topics", "stuck")
    page.fill("#move-brokers", str(home % 3 + 1))
    page.fill("#move-throttle", "1")
    page.click("#move button[type=submit]")
    confirm(page)
    under_way = "tr:has([data-key=stop-stuck-0])"
    some_is_there = re.compile(r"[0-2]\.\d MiB of 3\.8 MiB left")
    page.locator(under_way, has_text=some_is_there).wait_for()
    assert cells(page, under_way)[1:3] == [str(home % 3 + 1), str(home)]
    assert page.locator(f"{under_way} progress").evaluate("(bar) => bar.value < 1")
    page.wait_for_selector("tr:has-text('broker 2'):has-text('1 B/s out, 1 B/s in')")
    page.evaluate(NOTED)
    page.click("[data-key=stop-stuck-0]")
    confirm(page)
    noted = page.evaluate("cotidal.desk.noted")
    assert noted == ["cancel-reassign", {"partitions": [["stuck", 0]]}]  # no other's move
    page.locator("#move").get_by_label("Off brokers").fill("1, 2, 3")
    page.click("#move button[type=submit]")
    page.wait_for_selector("#desk > .told.bad")
    page.wait_for_selector("section[aria-label='Under way']:has-text('Nothing is being moved')")
    page.click("#unthrottle")
    confirm(page)


def test_groups_and_transactions_tell_what_is_open(page):
    go(page, "groups")
    page.click("[data-key=group-billing]")
    page.wait_for_selector("section[aria-label='Group billing'] td:has-text('billing-1')")
    committed, end, behind, reader, _ = cells(
        page, "section[aria-label='Group billing'] tr:has-text('orders-0'):has(b)"
    )
    assert (int(committed) + int(behind), end, reader) == (120, "120", "billing-1")
    page.wait_for_selector(f"section[aria-label='Group billing'] p:has-text('{behind} records')")
    go(page, "transactions")
    page.wait_for_selector(".verdict:has-text('1 transaction open in partitions; none hangs')")
    page.wait_for_selector("tr:has-text('orders-1') .pill.good:text('known to its coordinator')")
    page.click("[data-key=txn-shop]")
    page.wait_for_selector("section[aria-label='Transactional id shop']:has-text('orders-1')")
    page.click("[data-key=abort]")
    page.wait_for_selector("#desk > .told.bad:has-text('no transaction hangs')")
    go(page, "groups")
    group = page.locator("section[aria-label='Group billing']")
    group.get_by_role("button", name="orders-0").click()
    page.wait_for_selector(".told:has-text('orders-0 on broker')")


def test_what_hangs_is_aborted(page, cluster, make_topic):
    hang(cluster.bootstrap, make_topic("haunted"))
    go(page, "transactions")
    page.wait_for_selector(".verdict.bad:has-text('1 open transaction hangs')")
    page.wait_for_selector("tr:has-text('haunted-0'):has-text(' h ago') .pill.bad:text('hangs')")
    page.click("[data-key=abort]")
    assert "haunted-0" in confirm(page, loses=True)
    page.wait_for_selector(".verdict.good:has-text('none hangs')")


def test_what_the_health_pipeline_found_is_shown_once_it_writes(page, client, make_topic):
    if client.metadata(["__cotidal_health"]).topic("__cotidal_health").partitions:
        delete_topics(client, ["__cotidal_health"])  # a first try left it
    go(page, "health")
    page.wait_for_selector("#desk code:has-text('cotidal pipeline run health --follow --publish')")
    window = {"v": 1, "start": 1_794_742_130_000, "end": 1_794_742_140_000}
    worst = window | {"kind": "flapping", "topic": "<b>orders", "partition": 0, "replica": 2}
    lead = window | {"kind": "broker", "broker": 1, "leads": 4, "replicas": 6, "acks": 1833}
    lead |= {"under_replicated": 0, "offline_replicas": 0, "events_dropped": 0}
    lead |= {"ack_p50_ms": 2, "ack_p99_ms": 8}
    part = window | {"kind": "partition", "topic": "orders", "partition": 1, "lag_records": 7}
    part |= {"lag_ms": 12, "under_replicated_s": 4, "under_min_isr_s": 0, "left": 1, "joined": 2}
    part |= {"elections": 3, "unclean": 1, "records_cut": 5}
    rows = (worst | {"times": 3, "raised": True}, lead, part)
    producer = Producer(client, make_topic("__cotidal_health"), partition=0)
    for row in rows:
        producer.add(json.dumps(row).encode(), key=row["kind"].encode())
    producer.flush()
    page.wait_for_selector("#desk tr:has-text('1,833'):has-text('< 8 ms')")
    page.wait_for_selector(".verdict.warn:has-text('1 alarm raised.')")
    alarm = page.locator(".troubles li").inner_text()
    assert alarm == "Broker 2 has left the ISR of <b>orders-0 3 times within five minutes."
    found = {
        "Partitions": ["7", "12 ms", "4 s", "–", "1", "2", "3, 1 unclean", "5"],
        "Brokers": ["4", "6", "0", "1,833", "< 2 ms", "< 8 ms", "–", "0"],
        "Before that": ["7", "1", "3", "5", "1,833", "< 8 ms"],
    }
    for section, told in found.items():
        assert cells(page, f"section[aria-label='{section}'] tbody tr") == told


def test_a_console_that_only_shows_plans_and_does_nothing(open_page, filled):
    server = PageServer("--bootstrap", filled.bootstrap, "--port", "0", verb=("console",))
    try:
        page = open_page(server.address)
        go(page, "topics")
        page.click("[data-key=topic-orders]")
        page.click("[data-key=delete]")
        page.check("#accept")
        assert page.is_disabled("#confirm")
        assert "start it with --allow-changes" in page.inner_text("#dialog")
        said = page.evaluate(
            "cotidal.link.ask({do: 'ask', what: 'delete-topic', arguments: {topic: 'orders'}})"
            ".catch((error) => error.message)"
        )
        assert "only shows" in said
        page.close()
    finally:
        server.stop()


def test_who_is_left_is_elected_uncleanly(page, cluster, client, make_topic, until):
    """The last one in sync is dead; the other lacks what only that one had."""
    make_topic("spare", partitions=8)  # from so many partitions on, they can be searched
    make_topic("risked", b"kept", replicas=2, min_insync_replicas="1")
    told = client.topic("risked").partitions[0]
    (follower,) = set(told.replicas) - {told.leader}
    cluster.kill(follower)
    until(lambda: client.topic("risked").partitions[0].isr == (told.leader,))
    producer = Producer(client, "risked", partition=0)
    producer.add(b"lost")
    producer.flush()
    cluster.kill(told.leader)
    cluster.restart(follower)
    page.get_by_label("unhealthy first").check()
    page.wait_for_selector("#partitions tr.none:has-text('risked-0')")
    page.wait_for_selector("#partitions tbody .spacer:first-child + tr.none")
    page.get_by_label("Search partitions").fill("RISKED")
    page.wait_for_selector("#partitions tr:has-text('orders-0')", state="detached")
    page.wait_for_selector("#partitions tr.none:has-text('risked-0')")
    go(page, "topics")
    page.wait_for_selector("tr:has([data-key=topic-risked]) .pill.bad")
    page.click("[data-key=topic-risked]")
    page.click("text=Elect uncleanly…")
    assert f"What only broker {told.leader} may hold nobody can tell" in confirm(page, loses=True)
    page.wait_for_selector(f"summary:has-text('risked-0 led by {follower}')")
    cluster.restart(told.leader)
    page.wait_for_selector("#health.good, #health:has-text('All well')")


def test_pictures_of_the_desk(open_page, console):
    page = open_page(console.address)
    page.set_viewport_size({"width": 1440, "height": 720})
    go(page, "records")
    read(page, "orders", **{"from": "100"})
    page.wait_for_selector("tr.record:has-text('k119')")
    shot(page, "desk-records")
    page.set_viewport_size({"width": 390, "height": 844})
    for view in VIEWS:
        go(page, view)
        page.wait_for_selector("#desk table, #desk .note")
        assert page.evaluate(BESIDE) == [], view
