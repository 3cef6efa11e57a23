"""The live console in a real browser, on three processes of `cotidal up`."""

import contextlib
import json
import re
import subprocess
import sys

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from browser import PageServer, serious_problems, shot
from cotidal.client.cluster import Cluster as Client
from cotidal.client.producer import Producer
from cotidal.testing.ports import quiet_port
from watched import drag

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]

LONG_MS = 60_000
"""The machine may be busy."""


IN_ITS_STEP = """(flight) => cotidal.store.logs.trace
  .filter((line) => line.node === flight.node && line.step === flight.step)
  .filter((line) => line.kind !== "received").map((line) => `${line.kind} ${line.text}`)"""
"""What else the trace has of the step in which a request arrived."""


def cotidal(*arguments, **options):
    command = [sys.executable, "-m", "cotidal", *arguments]
    return subprocess.run(command, check=True, text=True, capture_output=True, **options)


class Up:
    """Three brokers with their console, and two topics."""

    def __init__(self):
        port, page = quiet_port(3), quiet_port()
        command = [sys.executable, "-m", "cotidal", "up", "--ephemeral", "--chaos"]
        command += ["--port", str(port), "--console-port", str(page)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self._process.stdout.readline()
        self.bootstrap = line.removeprefix("cotidal is up: ").split()[0]
        self.home = re.search(r"data in (\S+)", line)[1]
        self.address = self._process.stdout.readline().split()[-1]
        self.produced = 0
        at = ("--bootstrap", self.bootstrap)
        for topic, partitions in (("orders", 1), ("returns", 2)):
            cotidal("topic", "create", topic, "--partitions", str(partitions), *at)

    def produce(self, count, acks="all", bootstrap=None):
        """To the only partition."""
        lines = "".join(f"order {self.produced + number}\n" for number in range(count))
        at = ("--bootstrap", bootstrap or self.bootstrap, "--acks", acks)
        cotidal("produce", "orders", *at, input=lines)
        self.produced += count

    def heal(self):
        """Whatever a test that failed has left cut."""
        cotidal("chaos", "heal", "--data", self.home)

    def stop(self):
        self._process.terminate()
        self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def up():
    made = Up()
    yield made
    made.stop()


@pytest.fixture
def page(open_page, up):
    """Of a cluster that is well, with orders-0 chosen."""
    up.heal()
    opened = open_page(up.address)
    opened.set_default_timeout(LONG_MS)
    until(opened, "p => p.picture.partitions['orders-0']?.isr.length === 3")
    until(opened, "p => Object.values(p.picture.brokers).every((each) => each.state === 'up')")
    up.produce(3)
    until(opened, f"p => p.chosen().logs[p.chosen().leader]?.high_watermark === {up.produced}")
    return opened


def until(page, condition):
    """Of the page's store: a condition that comes true."""
    page.wait_for_function(f"() => ({condition})(cotidal.store)", timeout=LONG_MS)


def chosen(page):
    return page.evaluate("cotidal.store.chosen()")


def click(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def link(page, one, other, act):
    """Cut it, or join it."""
    key = f"{min(one, other)}-{max(one, other)}"
    line = page.locator(f"[aria-label^='Link between brokers {key.replace('-', ' and ')}']")
    line.focus()
    line.press("Enter")
    page.locator("#detail").get_by_role("button", name=act, exact=True).click()
    until(page, f"p => (p.picture.links['{key}']?.cut ?? false) === {str(act == 'Cut').lower()}")


def told(page, text):
    """Newest first, among what happened."""
    return page.locator("#feed li", has_text=text).first


def test_a_cluster_that_is_well_says_so_and_shows_its_logs(page, up):
    page.wait_for_selector("#health:has-text('All well: 3 brokers')")
    assert page.locator(".row .name").all_inner_texts() == ["Broker 1", "Broker 2", "Broker 3"]
    page.locator(".row .hw text", has_text=f"HW {up.produced}").nth(2).wait_for()
    assert page.locator("#metadata li", has_text="topic orders created").count() == 1
    assert page.locator(".lamps .holds").count() == 6
    assert page.title() == "Live cluster · cotidal"


def test_a_record_is_looked_at_on_the_replica_that_was_clicked(page, up):
    offset = up.produced - 1
    node = next(node for node in (1, 2, 3) if node != chosen(page)["leader"])
    until(page, f"p => p.chosen().logs[{node}].high_watermark === {up.produced}")  # then it serves
    since = page.evaluate("cotidal.store.picture.furthest_us")
    page.locator(".row", has_text=f"Broker {node}").locator(".cell").last.click()
    detail = page.locator("#detail")
    detail.get_by_text(f"Offset {offset} on broker {node}").wait_for()
    for line in ("Key null", f"Value order {offset}", "Time (UTC) 20", "Leader epoch "):
        detail.locator("p", has_text=line).wait_for()
    asked = f"line.node === {node} && /Fetch .*orders-0/.test(line.text)"
    until(page, f"p => p.logs.trace.some((line) => line.own && line.at > {since} && {asked})")
    page.keyboard.press("Escape")
    page.wait_for_selector("#detail", state="hidden")


def test_a_record_is_looked_at_in_the_partition_that_was_chosen(page, up):
    with Client(up.bootstrap, timeout_s=20.0) as client:
        producer = Producer(client, "returns", partition=1)
        producer.add(b"too salty", key=b"42")
        producer.flush()
    page.get_by_label("Partition", exact=True).select_option("returns-1")
    written = re.compile("^HW [12]$")  # a first try has written one more
    page.locator(".row .hw text", has_text=written).nth(2).wait_for()  # then each of them serves it
    page.locator(".cell").last.click()
    page.locator("#detail p", has_text="Key 42").wait_for()
    page.locator("#detail p", has_text="Value too salty").wait_for()
    page.locator("#detail p", has_text=re.compile(r"Producer \d+, epoch 0, sequence 0")).wait_for()


def test_a_partition_is_chosen_in_the_picture_in_the_table_and_in_the_strips(page):
    page.get_by_label("Partition", exact=True).select_option("returns-0")
    until(page, "p => p.partition === 'returns-0'")
    page.locator("#partitions").get_by_role("button", name="orders-0").click()
    until(page, "p => p.partition === 'orders-0'")
    second = {"x": 14 + 5, "y": 5}
    page.locator("#partitions canvas").first.click(position=second)
    until(page, "p => p.partition === 'returns-0'")


def test_the_keys_are_those_of_the_simulator(page):
    leader = chosen(page)["leader"]
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]:has-text('What you see')")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog[open]", state="detached")
    click(page, "Help and keys")
    click(page, "Close")
    page.keyboard.press(" ")
    until(page, "p => p.picture.state === 'paused'")
    page.keyboard.press("ArrowLeft")
    until(page, "p => p.picture.now_us < p.picture.furthest_us")
    back = page.evaluate("cotidal.store.picture.now_us")
    page.keyboard.press("ArrowRight")  # to the next thing that was seen, or to now
    until(page, f"p => p.picture.now_us > {back}")
    page.keyboard.press("ArrowLeft")
    until(page, "p => p.picture.state === 'paused'")
    page.keyboard.press(" ")
    until(page, "p => p.picture.state === 'running'")
    follower = next(node for node in (1, 2, 3) if node != leader)
    page.keyboard.press(str(follower))
    page.wait_for_selector(f"#detail h3:text('Broker {follower}')")
    page.keyboard.press("k")
    until(page, f"p => p.picture.brokers[{follower}].state === 'down'")
    page.locator("#detail").get_by_role("button", name="Start", exact=True).click()
    until(page, "p => p.chosen().isr.length === 3")
    page.focus("#skip")
    page.keyboard.press("Enter")
    until(page, "p => document.activeElement.id === 'main' && p.world === 'live'")
    assert not page.url.endswith("#main")  # the address says which world


def test_a_follower_is_killed_and_the_high_watermark_goes_on_without_it(page, up):
    before = chosen(page)
    follower = next(node for node in before["isr"] if node != before["leader"])
    click(page, f"Kill broker {follower}")
    until(page, f"p => !p.chosen().isr.includes({follower})")
    until(page, f"p => p.picture.brokers[{follower}].state === 'down'")
    told(page, f"You kill broker {follower}").wait_for()
    told(page, "The ISR of orders-0 shrinks").wait_for()
    up.produce(5)
    until(page, f"p => p.chosen().logs[p.chosen().leader].high_watermark === {up.produced}")
    after = chosen(page)
    assert after["logs"][str(follower)]["end"] == before["logs"][str(follower)]["end"]
    assert after["why_out"][str(follower)].startswith("fenced for")
    assert after["leader_epoch"] == before["leader_epoch"]
    click(page, f"Start broker {follower}")
    until(page, "p => p.chosen().isr.length === 3")
    until(page, f"p => p.chosen().logs[{follower}].end === {up.produced}")


def test_a_leader_is_killed_and_comes_back_with_what_the_next_one_has(page, up):
    before = chosen(page)
    leader = before["leader"]
    click(page, f"Kill broker {leader}")
    until(page, f"p => p.chosen().leader >= 0 && p.chosen().leader !== {leader}")
    until(page, f"p => p.chosen().leader_epoch > {before['leader_epoch']}")
    told(page, f"after broker {leader}").wait_for()
    up.produce(4)
    others = [node for node in before["isr"] if node != leader]
    for node in others:
        until(page, f"p => p.chosen().logs[{node}].high_watermark === {up.produced}")
    shot(page, "console-live")
    click(page, f"Start broker {leader}")
    until(page, "p => p.chosen().isr.length === 3")
    until(page, f"p => p.chosen().logs[{leader}].end === {up.produced}")
    logs = chosen(page)["logs"]
    epochs = logs[str(leader)]["epochs"]
    assert epochs[-1][0] > before["leader_epoch"]
    until(page, "p => new Set(Object.values(p.chosen().logs).map((log) => log.end)).size === 1")


def test_an_old_leader_that_took_records_while_cut_off_is_cut_to_what_the_next_one_has(page, up):
    before = chosen(page)
    leader = before["leader"]
    others = [node for node in before["isr"] if node != leader]
    with Client(up.bootstrap, timeout_s=20.0) as client:
        producer = Producer(client, "orders", partition=0, acks=1)
        producer.add(b"both have this")
        producer.flush()
        up.produced += 1
        parted = up.produced
        until(page, f"p => Object.values(p.chosen().logs).every((log) => log.end === {parted})")
        for other in others:
            link(page, leader, other, "Cut")
        for _ in range(3):
            producer.add(b"only the old leader has this")
        producer.flush()  # nobody else will ever have these
    until(page, f"p => ![-1, {leader}].includes(p.chosen().leader)")
    after = chosen(page)
    assert after["leader_epoch"] > before["leader_epoch"]
    address = page.evaluate(f"cotidal.store.picture.brokers[{after['leader']}].address")
    up.produce(2, bootstrap=address)
    until(page, f"p => p.chosen().logs[p.chosen().leader].end === {parted + 2}")
    for other in others:
        link(page, leader, other, "Join")
    cut = (
        f"Broker {leader}'s log of orders-0 parted from its leader's at {parted}: it cuts 3 records"
    )
    told(page, cut).wait_for()
    until(page, f"p => p.chosen().logs[{leader}].end === {parted + 2}")
    until(page, "p => p.chosen().isr.length === 3")
    same = "new Set(Object.values(p.chosen().logs).map((log) => String(log.epochs))).size === 1"
    until(page, f"p => {same}")


def test_a_broker_is_paused_killed_and_stopped_and_goes_on(page):
    node = next(node for node in chosen(page)["isr"] if node != chosen(page)["leader"])
    click(page, f"Pause broker {node}")
    until(page, f"p => p.picture.brokers[{node}].state === 'paused'")
    click(page, f"Resume broker {node}")
    until(page, f"p => p.picture.brokers[{node}].state === 'up'")
    until(page, "p => p.chosen().isr.length === 3")
    page.locator(f"#map [aria-label^='Broker {node} ']").click()
    acts = (
        ("Pause", "paused"),
        ("Resume", "up"),
        ("Kill", "down"),
        ("Start", "up"),
        ("Stop", "down"),
    )
    for act, state in acts:
        page.locator("#detail").get_by_role("button", name=act, exact=True).click()
        until(page, f"p => p.picture.brokers[{node}].state === '{state}'")
    click(page, f"Start broker {node}")
    until(page, "p => p.chosen().isr.length === 3")


def test_messages_travel_between_brokers_and_tell_what_they_caused(page, up):
    page.wait_for_selector("#map .flight.fetch")
    up.produce(1)
    mine = "(f) => f.api === 'Produce' && f.source >= 1000 && f.said.includes('orders-0')"
    until(page, f"p => p.logs.flights.some({mine})")
    until(page, "p => Object.values(p.picture.clients).some((c) => c.label === 'cotidal')")
    page.wait_for_selector("#map .client.producer")
    flight = page.evaluate(f"cotidal.store.logs.flights.findLast({mine})")
    moment = flight["at"] - 1000
    page.evaluate(f"cotidal.seek({moment})")
    until(page, f"p => p.picture.state === 'paused' && p.picture.now_us === {moment}")
    page.locator("#map [aria-label^='Produce request from cotidal']").dispatch_event("click")
    detail = page.locator("#detail")
    detail.get_by_text("Produce request").wait_for()
    told_of_it = detail.locator("p").all_inner_texts()
    came = page.evaluate("(at) => cotidal.exactly(at)", flight["at"])
    travelled = f"cotidal to broker {flight['target']}, {flight['bytes']} bytes of records"
    assert flight["bytes"] > 0
    assert told_of_it[:2] == [f"From, to {travelled}", f"Received {came}"]
    in_its_step = {f"Caused {each}" for each in page.evaluate(IN_ITS_STEP, flight)}
    assert in_its_step.issuperset(told_of_it[3:])  # others may have been answered in it, too
    assert any(each.startswith("Caused append orders-0") for each in told_of_it)
    detail.get_by_role("button", name="Close").click()
    copied = "(f) => f.api === 'Fetch' && f.answer && f.target < 1000 && f.bytes > 0"
    page.evaluate(f"cotidal.seek(cotidal.store.logs.flights.findLast({copied}).at + 1000)")
    page.wait_for_selector("#map .flight.records.answer")
    page.locator("#play").click()
    until(page, "p => p.picture.state === 'running'")


def test_acknowledgements_are_measured_by_their_level(page, up):
    up.produce(1)
    up.produce(1, acks="1")
    for level in ("all", "1"):
        until(page, f"p => p.logs.samples.some((each) => each.acks === '{level}')")
        page.wait_for_selector(f"#latency .acks-{level}[d^=M]")
    page.wait_for_selector("#latency .note:has-text('acks=all: median')")


def test_the_trace_tells_what_nodes_do_and_goes_to_a_moment(page, up):
    page.click("#tab-trace")
    up.produce(1)
    rows = page.locator("#desk .trace tbody tr:not(.spacer)")
    page.fill("#trace-text", "append orders-0")
    rows.filter(has_text="orders-0").first.wait_for()
    until(page, "p => document.querySelectorAll('#desk .trace tbody tr.wanted').length >= 3")
    texts = rows.all_inner_texts()
    assert all("append" in text for text in texts), texts
    page.select_option("#trace-node", "2")
    until(page, "p => document.querySelectorAll('#desk .trace tr.b1').length === 0")
    assert rows.count() > 0
    page.fill("#trace-text", "BrokerHeartbeat")
    page.select_option("#trace-node", "")
    until(page, "p => document.querySelectorAll('#desk .trace tbody tr').length === 2")
    page.uncheck("#trace-quiet")
    rows.filter(has_text="BrokerHeartbeat").first.wait_for()
    page.fill("#trace-text", "")
    moment = rows.first.locator("button").evaluate(
        "(button) => { button.click(); return button.at }"
    )
    until(page, f"p => p.picture.state === 'paused' && p.picture.now_us === {moment}")
    page.wait_for_selector("#desk .note:has-text('up to')")
    assert page.locator("#timeline").is_visible()
    page.click("#tab-topics")
    page.wait_for_selector("#timeline", state="hidden")
    page.click("#tab-picture")
    page.locator("#play").click()
    until(page, "p => p.picture.state === 'running'")


def test_links_are_cut_and_slowed_and_made_whole(page):
    link(page, 1, 2, "Cut")
    link(page, 1, 2, "Join")
    detail = page.locator("#detail")
    slider = detail.get_by_label("Slower by, milliseconds each way")
    slider.fill("120")
    slider.dispatch_event("change")
    until(page, "p => p.picture.links['1-2']?.slow_ms === 120")
    slider.fill("0")
    slider.dispatch_event("change")
    until(page, "p => p.picture.links['1-2'] === undefined")
    page.locator(".broker[aria-label^='Broker 3']").press("Enter")
    far = detail.get_by_label("Distance, milliseconds each way")
    for by_ms, slow in (("60", "=== 60"), ("0", "=== undefined")):
        far.fill(by_ms)
        far.dispatch_event("change")
        until(page, f"p => p.picture.links['1-3']?.slow_ms {slow}")


def drag_until(page, condition, *points):
    """A message that passes may be caught in place of what is under it: then once more."""
    for _ in range(30):
        drag(page, *points)
        with contextlib.suppress(PlaywrightTimeout):
            page.wait_for_function(f"() => ({condition})(cotidal.store)", timeout=2_000)
            return
    raise AssertionError(f"nothing was dragged so that {condition}")


def test_links_are_cut_and_slowed_by_dragging(page):
    """Broker 1 stands at the top; the stroke goes round it."""
    one, other = page.evaluate("[1, 2].map(id => cotidal.map.places.get(id))")
    middle = (one["x"] + other["x"]) / 2, (one["y"] + other["y"]) / 2
    aside = (middle[0] + 12, middle[1] - 8)
    drag_until(page, "p => p.picture.links['1-2']?.slow_ms > 20", middle, aside)
    drag_until(page, "p => !p.picture.links['1-2']", middle, aside, middle)
    top = (one["x"], one["y"])
    both = "p.picture.links['1-2']?.slow_ms > 20 && p.picture.links['1-3']?.slow_ms > 20"
    drag_until(page, f"p => {both}", top, (top[0], top[1] - 12))
    drag_until(page, "p => !p.picture.links['1-2']", top, (top[0], top[1] + 30))
    across = ((110, 120), (350, 120))
    for cut in ("=== true", "=== undefined"):
        drag(page, *across)
        until(page, f"p => p.picture.links['1-2']?.cut {cut} && p.picture.links['1-3']?.cut {cut}")


def test_the_time_line_goes_back_to_what_was_seen_and_returns(page, up):
    until(page, "p => p.logs.told.length > 3")
    click(page, "Step back")
    until(page, "p => p.picture.state === 'paused' && p.picture.now_us < p.picture.furthest_us")
    stays = page.evaluate("cotidal.store.picture.now_us")
    up.produce(1)
    until(page, f"p => p.picture.furthest_us > {stays} + 2e6")
    assert page.evaluate("cotidal.store.picture.now_us") == stays
    page.wait_for_selector("#play:has-text('Now')")
    click(page, "Step")
    until(page, f"p => p.picture.now_us > {stays}")
    page.locator("#timeline input").fill("500")
    half = "Math.abs(p.picture.now_us / p.picture.furthest_us - 0.5) < 0.1"
    until(page, f"p => p.picture.state === 'paused' && {half}")
    page.get_by_label("every step").check()
    page.locator("#feed button.when").first.click()
    until(page, "p => p.logs.told.some((each) => each.at === p.picture.now_us)")
    page.locator("#play").click()
    until(page, f"p => p.chosen().logs[p.chosen().leader].high_watermark === {up.produced}")
    page.wait_for_selector("#play:has-text('Pause')")


def test_two_tabs_see_the_same_cluster(page, open_page, up):
    other = open_page(up.address)
    until(other, "p => p.chosen()?.isr.length === 3")
    node = next(node for node in chosen(page)["isr"] if node != chosen(page)["leader"])
    click(page, f"Kill broker {node}")
    for each in (page, other):
        until(each, f"p => p.picture.brokers[{node}].state === 'down'")
        told(each, f"You kill broker {node}").wait_for()
    click(other, f"Start broker {node}")
    for each in (page, other):
        until(each, "p => p.chosen().isr.length === 3")


def test_every_other_world_is_one_click_away(page):
    worlds = page.locator("#worlds")
    for name, world in (("Sandbox", "simulator"), ("Durability lab", "lab")):
        worlds.get_by_role("button", name=name).click()
        until(page, f"p => p.world === '{world}' && p.picture.state !== undefined")
        page.wait_for_selector("#health", state="hidden")
        worlds.get_by_role("button", name="Live").click()
        until(page, "p => p.world === 'live' && p.picture.state === 'running'")
        page.wait_for_selector("#health", state="visible")
    for name, title in (("Lessons", "Lessons"), ("Runs", "Runs of the simulator")):
        worlds.get_by_role("button", name=name).click()
        page.wait_for_selector(f"dialog[open] h2:text-is('{title}')")
        if name == "Lessons":
            assert page.locator("dialog ol button").count() > 10
            page.get_by_text("All other stories").click()
            page.wait_for_selector("dialog details[open] button")
        else:
            assert page.locator("dialog select option").count() > 10
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog[open]", state="detached")
    worlds.get_by_role("button", name="Lessons").click()
    page.locator("dialog ol button").first.click()
    until(page, "p => p.world === 'story' && p.about.lesson?.number === 1")
    worlds.get_by_role("button", name="Live").click()
    until(page, "p => p.world === 'live' && p.picture.state === 'running'")
    click(page, "Step back")
    until(page, "p => p.picture.state === 'paused'")
    worlds.get_by_role("button", name="Live").click()  # as it is now
    until(page, "p => p.picture.state === 'running'")


def test_axe_finds_no_serious_problem_in_the_console_light_or_dark(page, axe):
    assert serious_problems(page, axe) == []
    page.click("#theme")
    page.wait_for_selector("html[data-theme=dark]")
    assert serious_problems(page, axe, within="#stage, #timeline, #below") == []
    page.click("#theme")


def test_a_narrow_screen_has_all_of_the_live_picture_and_nothing_beside_it(page, up):
    name = "warehouse.of-a-topic-with-a-rather-long-name"
    cotidal("topic", "create", name, "--bootstrap", up.bootstrap)
    page.set_viewport_size({"width": 390, "height": 844})
    until(page, f"p => '{name}-0' in p.picture.partitions")
    page.wait_for_selector("#map .flight")
    wide = page.evaluate(
        "[...document.querySelectorAll('body *')].filter((each) => !each.closest('.scroll, .tabs,"
        " .rows, svg') && each.getBoundingClientRect().right > 391)"
        ".map((each) => each.outerHTML.slice(0, 90))"
    )
    assert wide == []
    page.locator("#lag").scroll_into_view_if_needed()
    page.click("#tab-trace")
    page.wait_for_selector("#desk .trace tbody tr:not(.spacer)")
    shot(page, "live-narrow")


# A console of its own


@pytest.fixture
def read_only(up):
    options = ("--port", str(quiet_port()), "--bootstrap", up.bootstrap, "--data", up.home)
    made = PageServer(*options, verb=("console",))
    yield made
    made.stop()


def test_a_console_without_leave_shows_and_refuses(read_only, open_page):
    opened = open_page(read_only.address)
    until(opened, "p => p.chosen()?.isr.length === 3")
    assert opened.get_by_role("button", name="Kill broker 1").count() == 0
    where = re.sub("^http", "ws", read_only.base) + "world"
    with connect(where, origin=read_only.base.rstrip("/"), proxy=None) as socket:
        socket.send(json.dumps({"do": "open", "world": "live"}))
        for said in ({"do": "kill", "node": 1}, {"do": "ask", "what": "elect"}):
            socket.send(json.dumps({**said, "ask": 1}))
            message = json.loads(socket.recv(60))
            while message.get("ask") != 1:
                message = json.loads(socket.recv(60))
            assert message["tell"] == "refused"
            assert "--allow-changes" in message["sentence"]
    brokers = opened.evaluate("cotidal.store.picture.brokers")
    assert {each["state"] for each in brokers.values()} == {"up"}


def test_a_page_of_another_origin_cannot_command_the_cluster(up):
    where = re.sub("^http", "ws", up.address) + "world"
    with pytest.raises(InvalidStatus, match="403"):
        connect(where, origin="http://evil.example", proxy=None)


def test_a_console_that_comes_back_is_found_again(read_only, open_page, errors):
    opened = open_page(read_only.address)
    until(opened, "p => p.chosen() !== undefined")
    opened.evaluate("cotidal.store.about.isOld = true")
    read_only.stop()
    opened.wait_for_selector("#banner:has-text('The server is gone')", timeout=LONG_MS)
    read_only.start()
    opened.wait_for_selector("#banner:has-text('Connected again')", timeout=LONG_MS)
    until(opened, "p => !p.about.isOld && p.world === 'live' && p.picture.state === 'running'")
    opened.context.close()
    errors.clear()  # the browser tells of every attempt to connect that failed
