"""Threads that look at a cluster while any page is open, and remember what they saw.

One asks the cluster, twice a second; where its nodes run on this machine, another hears what they
do as they do it. Pages never ask the cluster for their picture: all of them get what was seen last,
however many there are. What is given is only ever replaced or added to, never changed, so that
pages read it without a lock.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from cotidal.client.addresses import Address
from cotidal.client.admin import Quorum, describe_quorum
from cotidal.client.cluster import Cluster
from cotidal.client.failures import ClientError
from cotidal.client.metadata import Metadata
from cotidal.client.status import Sizes, Status, gather
from cotidal.console.live.chronicle import BEFORE_MS, TOPIC, Chronicle
from cotidal.console.live.controls import Controls
from cotidal.console.live.ears import Ears
from cotidal.console.live.hearsay import CONSOLE, Hearsay
from cotidal.console.live.metadata import MetadataLog
from cotidal.console.live.sight import Seen, picture_of, silent_picture
from cotidal.console.live.tail import Tail
from cotidal.console.live.teller import Told, told_between, told_of
from cotidal.console.world import Json
from cotidal.limits import (
    LIVE_FRAMES_MAX,
    LIVE_LOG_MAX,
    LIVE_POLL_MS,
    LIVE_POLL_SHARE,
    LIVE_TRACE_MAX,
    LIVE_UNWATCHED_MS,
)
from cotidal.values import NodeId

ANSWER_TIMEOUT_S: Final = 1.5
"""A broker that hangs must not make the picture of the others old."""
CONNECT_TIMEOUT_S: Final = 1.0
SIZES_EVERY_S: Final = 10.0
SILENT_AGAIN_S: Final = 3.0
"""So long after it did not answer, a broker is asked again."""
COMPARE_EVERY_S: Final = 2.0
"""How often all brokers are asked who leads what, in case the first one is cut off."""
COMPARED_MAX: Final = 8
"""Of a large cluster, so many of them."""
LISTEN_S: Final = 0.1
ORDER_US: Final = 150_000
"""A node tells what it did a twentieth of a second later, or a little more when it is busy."""


class Frame(NamedTuple):
    """The cluster as it was seen at a moment."""

    at_us: int
    picture: Json


class Watch:
    def __init__(self, bootstrap: str, home: str | None = None) -> None:
        """``home``: where the cluster's data lies, if `cotidal up` runs it on this machine."""
        self._bootstrap = bootstrap
        self._controls = None if home is None else Controls(home)
        self._metadata = None if home is None else MetadataLog(home)
        self.begun_us = _wall_us() - BEFORE_MS * 1000
        """Moments are told from here on: what the brokers told a little earlier has one too."""
        self.status: Status | None = None
        self.frames: Sequence[Frame] = ()
        self.logs = {name: Tail(LIVE_LOG_MAX) for name in ("told", "metadata", "throughput")}
        self.logs |= {name: Tail(LIVE_TRACE_MAX) for name in ("samples", "trace", "flights")}
        self._ears = None if home is None else Ears(home)
        self._hearsay = Hearsay(self.begun_us)
        self._looked_at = 0.0
        self._wanted = threading.Event()
        self._first = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._sizes: Sizes = {}
        self._sizes_at = 0.0
        self._compared_at = 0.0
        self._silent: dict[NodeId, tuple[float, str]] = {}
        """Who did not answer: when, and why."""
        self._ends: tuple[int, dict[str, int]] | None = None
        """How far leaders had got, and when that was."""

    # What pages do

    def look(self) -> None:
        """A page is open: go on, or begin."""
        self._looked_at = time.monotonic()
        self._wanted.set()
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
                self._thread.start()
                if self._ears is not None:
                    threading.Thread(target=self._listen, name="ears", daemon=True).start()

    def wait(self, timeout_s: float) -> None:
        """Until something was seen for the first time."""
        self._first.wait(timeout_s)

    def tell(self, kind: str, text: str) -> None:
        """What a person did here."""
        self._add("told", [self._told(Told(kind, text), _wall_us())])

    @property
    def now_us(self) -> int:
        return _wall_us() - self.begun_us

    @property
    def hears(self) -> bool:
        """What nodes do, as they do it."""
        return self._ears is not None

    def clients(self, at_us: int) -> Json:
        """Who produced and fetched at a moment, as a picture has them."""
        return self._hearsay.clients(at_us)

    @property
    def _is_watched(self) -> bool:
        return time.monotonic() - self._looked_at <= LIVE_UNWATCHED_MS / 1000

    # What the threads do

    def _listen(self) -> None:
        assert self._ears is not None
        early: list[tuple[int, Json]] = []
        while True:
            if not self._is_watched:
                self._ears.close()
            self._wanted.wait()
            try:
                early = self._in_order([*early, *self._ears.hear(LISTEN_S)])
            except Exception:  # a bug of ours must not leave pages without news
                traceback.print_exc(file=sys.stderr)
                self._ears.close()
                time.sleep(LISTEN_S)

    def _in_order(self, heard: list[tuple[int, Json]]) -> list[tuple[int, Json]]:
        """Nodes tell at different times: what is new waits until all have. What still waits."""
        heard.sort(key=lambda each: each[1]["at"])
        whole = bisect_right(heard, _wall_us() - ORDER_US, key=lambda each: each[1]["at"])
        self.on_heard(heard[:whole])
        return heard[whole:]

    def on_heard(self, heard: Sequence[tuple[int, Json]]) -> None:
        """By nodes, of themselves."""
        if not heard:
            return
        hearsay = self._hearsay
        self._add("trace", [hearsay.line(node, told) for node, told in heard])
        self._add("flights", [each for node, told in heard for each in hearsay.flights(node, told)])
        samples = [hearsay.sample(told) for _, told in heard]
        self._add("samples", [each for each in samples if each is not None])

    def _run(self) -> None:
        with Cluster(
            self._bootstrap,
            timeout_s=ANSWER_TIMEOUT_S,
            connect_timeout_s=CONNECT_TIMEOUT_S,
            client_id=CONSOLE,
        ) as cluster:
            chronicle = Chronicle(cluster)
            while True:
                if not self._is_watched:
                    chronicle.close()
                    cluster.close()
                    self._wanted.clear()
                self._wanted.wait()
                begun = time.thread_time()  # waiting for a broker that hangs is no work
                try:
                    self._see(cluster, chronicle)
                except Exception:  # a bug of ours must not leave pages with an old picture
                    traceback.print_exc(file=sys.stderr)
                self._first.set()
                spent = time.thread_time() - begun
                time.sleep(max(LIVE_POLL_MS / 1000, spent * LIVE_POLL_SHARE))

    def _see(self, cluster: Cluster, chronicle: Chronicle) -> None:
        before = self.frames[-1].picture if self.frames else {}
        try:
            try:
                seen = self._gathered(cluster)
            except ClientError:  # who was asked first has just gone: ask another one
                seen = self._gathered(cluster)
        except ClientError as failure:
            picture = silent_picture(before, str(failure))
        else:
            picture = picture_of(seen, before)
            self.status = seen.status
            self._note(seen, before, picture, chronicle)
        self._keep(Frame(self.now_us, picture))

    def _gathered(self, cluster: Cluster) -> Seen:
        now = time.monotonic()
        controls = self._controls
        machines = {} if controls is None else controls.machines()
        links = {} if controls is None else controls.links()
        self._hearsay.slow_ms = {
            link: how["slow_ms"] for link, how in links.items() if "slow_ms" in how
        }
        recently = {
            node: why for node, (at, why) in self._silent.items() if now - at < SILENT_AGAIN_S
        }
        for node, machine in machines.items():
            if machine.state in ("paused", "down"):
                recently[NodeId(node)] = f"it is {machine.state}"
        is_stale = now - self._sizes_at > SIZES_EVERY_S
        sizes = None if is_stale else self._sizes
        status = gather(cluster, internal=True, passed_over=recently, sizes=sizes)
        all_of_them = now - self._compared_at > COMPARE_EVERY_S
        if all_of_them:
            self._compared_at = now
        if _ask_one_who_knows_better(cluster, status, recently, all_of_them=all_of_them):
            status = gather(cluster, internal=True, passed_over=recently, sizes=sizes)
        if is_stale:
            self._sizes, self._sizes_at = status.sizes, now
        self._silent = {
            node: self._silent.get(node, (now, why)) if node in recently else (now, why)
            for node, why in status.scene.silent.items()
            if node not in machines
        }
        return Seen(status, self._quorum(cluster), machines, links)

    def _quorum(self, cluster: Cluster) -> Quorum | None:
        try:
            return describe_quorum(cluster)
        except ClientError:
            return None

    # What is remembered

    def _note(self, seen: Seen, before: Json, picture: Json, chronicle: Chronicle) -> None:
        if seen.status.metadata.topic(TOPIC) is not None:
            self._add_events(chronicle.news())
        elif "partitions" in before:
            now = _wall_us()
            self._add("told", [self._told(each, now) for each in told_between(before, picture)])
        if self._metadata is not None and seen.quorum is not None:
            nodes = (seen.quorum.leader, *seen.machines)
            self._add("metadata", self._metadata.news(nodes, seen.quorum.high_watermark))
        self._measure(picture)

    def _add_events(self, events: Sequence[Json]) -> None:
        told = [(event["time"] * 1000, told_of(event)) for event in events]
        self._add("told", [self._told(each, at) for at, each in told if each is not None])

    def _told(self, told: Told, wall_us: int) -> Json:
        when = time.strftime("%H:%M:%S", time.localtime(wall_us / 1e6))
        return {**told._asdict(), "at": max(0, wall_us - self.begun_us), "when": when}

    def _measure(self, picture: Json) -> None:
        """Records that leaders have taken since the last look."""
        now = self.now_us
        ends = {
            name: partition["logs"][str(partition["leader"])]["end"]
            for name, partition in picture["partitions"].items()
            if str(partition["leader"]) in partition["logs"]
        }
        if self._ends is not None:
            then, known = self._ends
            grown = sum(max(0, end - known.get(name, end)) for name, end in ends.items())
            self._add("throughput", [{"from": then, "at": now, "records": grown}])
        self._ends = (now, ends)

    def _keep(self, frame: Frame) -> None:
        self.frames = (*self.frames[-LIVE_FRAMES_MAX + 1 :], frame)

    def _add(self, name: str, items: Sequence[Json]) -> None:
        with self._lock:  # what a person did is told by another thread
            self.logs[name].extend(items)


def _ask_one_who_knows_better(
    cluster: Cluster, status: Status, passed_over: Mapping[NodeId, str], *, all_of_them: bool
) -> bool:
    """Whether there is one. A broker that is cut off from all others goes on telling what it last
    knew, and may have fenced them: those that it calls fenced are asked as well, and now and then
    all are."""
    known = _epochs(status.metadata)
    for broker in status.brokers[:COMPARED_MAX]:
        if broker.node_id in passed_over or not (broker.is_fenced or all_of_them):
            continue
        address = Address(broker.host, broker.port)
        try:
            with Cluster(
                str(address),
                timeout_s=CONNECT_TIMEOUT_S,
                connect_timeout_s=CONNECT_TIMEOUT_S,
                client_id=CONSOLE,
            ) as alone:
                told = _epochs(alone.metadata())
        except ClientError:
            continue
        if any(epoch > known.get(at, epoch) for at, epoch in told.items()):
            cluster.prefer(address)
            return True
    return False


def _epochs(metadata: Metadata) -> dict[tuple[str, int], int]:
    return {
        (topic.name, each.partition): each.leader_epoch
        for topic in metadata.topics
        for each in topic.partitions
    }


def _wall_us() -> int:
    return time.time_ns() // 1000
