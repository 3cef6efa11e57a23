"""Kafka Streams counts words exactly once while brokers, or one of its own processes, are killed.

Streams brings what plain clients do not: a group of its own protocol type whose leader assigns
tasks, repartition and changelog topics that it makes itself, records deleted once they are
processed, and transactions that span all of them. ``java/WordCount.java`` gives every count of
every word, so what is asked for is more than a sum: each word's counts are 1, 2, 3, ... .
"""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench import apache_kafka
from real_cluster import QUICK, until
from tests.interop.suites import Ran, Suite
from tests.interop.trios import Trio, behind

pytestmark = [pytest.mark.interop, pytest.mark.timeout(500)]

SOURCE: Final = Path(__file__).parent / "java" / "WordCount.java"
PARTITIONS: Final = 3
WORDS: Final = tuple(f"word{number}" for number in range(40))
WORDS_IN_LINE: Final = 5
LINES: Final = 400
"""More, before each blow."""
PATIENCE_SECONDS: Final = 120


@pytest.fixture(scope="module")
def classes(kafka: None, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The class path of the compiled program."""
    compiler = shutil.which("javac")
    if compiler is None:
        pytest.skip("javac is not installed: a JDK is needed, not only a Java runtime")
    try:
        jars = apache_kafka.streams_classpath()
    except apache_kafka.KafkaMissing as missing:
        pytest.skip(str(missing))
    compiled = str(tmp_path_factory.mktemp("classes"))
    subprocess.run([compiler, "-Xlint:all,-processing", "-cp", jars, "-d", compiled, str(SOURCE)],
                   check=True)  # fmt: skip
    return f"{jars}:{compiled}"


class Application:
    """One process of the word count; a state directory of its own."""

    def __init__(self, classes: str, directory: Path, *given: str) -> None:
        directory.mkdir()
        self._said = directory / "said.txt"
        command = (
            *(apache_kafka.require_java(), "-Xmx256M", "-XX:+UseSerialGC"),
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            *("-cp", classes, "WordCount", *given, str(directory / "state")),
        )
        with self._said.open("w") as said:
            self._process = subprocess.Popen(command, stdout=said, stderr=said)

    @property
    def said(self) -> str:
        return self._said.read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(20)


class Words:
    """The lines that were written, and the counts that a read_committed reader saw since."""

    def __init__(self, bootstrap: str, lines: str, counts: str) -> None:
        self.written: Counter[str] = Counter()
        self.counts: dict[str, list[int]] = {}
        self._lines = lines
        self._draw = random.Random(lines)
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, **QUICK}
        )
        self._reader = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "-",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                **QUICK,
            }
        )
        self._reader.assign([TopicPartition(counts, each, 0) for each in range(PARTITIONS)])

    def write(self) -> None:
        for number in range(LINES):
            words = self._draw.choices(WORDS, k=WORDS_IN_LINE)
            self.written.update(words)
            self._producer.produce(self._lines, " ".join(words), partition=number % PARTITIONS)
        assert self._producer.flush(60) == 0

    @property
    def counted(self) -> int:
        return sum(map(len, self.counts.values()))

    def read_until(self, wanted: int, *applications: Application) -> None:
        """So many counts have come; or it was waited for too long, which the counts will tell."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.counted < wanted and time.monotonic() < deadline:
            if not any(application.is_running for application in applications):
                return
            self.read(0.2)

    def read(self, seconds: float) -> None:
        for message in self._reader.consume(1_000, seconds):
            if message.error() is None:
                word, count = message.key() or b"", message.value() or b"-1"
                self.counts.setdefault(word.decode(), []).append(int(count))

    def close(self) -> None:
        self._reader.close()


class Play:
    """The word count on a cluster; what a test does to it is between two acts."""

    def __init__(self, cluster: Trio, classes: str, directory: Path, name: str) -> None:
        self.cluster = cluster
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUICK})
        self._lines, counts = f"{name}-lines", f"{name}-counts"
        new = [NewTopic(topic, PARTITIONS, 3) for topic in (self._lines, counts)]
        for made in self._admin.create_topics(new).values():
            made.result(30)
        self._classes, self._directory = classes, directory
        self._given = (cluster.bootstrap, name, self._lines, counts)
        self._group = name
        self.applications: list[Application] = []
        self.words = Words(cluster.bootstrap, self._lines, counts)

    def begin(self) -> Application:
        place = self._directory / f"application-{len(self.applications)}"
        self.applications.append(Application(self._classes, place, *self._given))
        return self.applications[-1]

    def act(self) -> None:
        """Some more to count, of which half has been when this returns."""
        before = self.words.written.total()
        self.words.write()
        middle = (before + self.words.written.total()) // 2
        self.words.read_until(middle, *self.applications)

    def kill_leader_of(self, topic: str) -> int:
        leader = int(self._admin.list_topics(topic, timeout=20).topics[topic].partitions[0].leader)
        self.cluster.kill(leader)
        return leader

    def kill_leader_of_lines(self) -> int:
        return self.kill_leader_of(self._lines)

    def kill_leader_of_what_is_between(self) -> int:
        return self.kill_leader_of(f"{self._group}-counts-repartition")

    def heal(self, node: int) -> None:
        self.cluster.restart(node)
        until(lambda: not behind(self._admin), 90)

    def finish(self) -> Ran:
        """What came of it, when all has been counted and nothing more comes."""
        self.words.read_until(self.words.written.total(), *self.applications)
        for _ in range(10):
            self.words.read(0.2)
        wrong = {
            "every word is counted once, in order": _miscounted(self.words),
            "no thread of the application dies": "; ".join(
                line
                for each in self.applications
                for line in each.said.splitlines()
                if line.startswith("A thread died")
            ),
        }
        return Ran(
            tuple(check for check, why in wrong.items() if not why),
            {check: why for check, why in wrong.items() if why},
            (),
        )

    def end(self) -> None:
        for application in self.applications:
            application.kill()
        self.words.close()


def _miscounted(words: Words) -> str:
    wrong = {
        word: (words.counts.get(word, [])[-3:], times)
        for word, times in words.written.items()
        if words.counts.get(word) != list(range(1, times + 1))
    }
    return f"last counts and what was written: {wrong}" if wrong else ""


@pytest.fixture
def play(cluster: Trio, classes: str, topic: str, tmp_path: Path) -> Iterator[Play]:
    play = Play(cluster, classes, tmp_path, topic)
    try:
        yield play
    finally:
        play.end()


def test_counts_are_exact_though_two_brokers_are_killed(
    play: Play, judge: Callable[..., dict[str, str]]
) -> None:
    play.begin()
    play.act()
    for kill in (play.kill_leader_of_lines, play.kill_leader_of_what_is_between):
        play.words.write()
        killed = kill()
        play.act()
        play.heal(killed)
    ran = play.finish()
    suite = Suite("kafka-streams", apache_kafka.VERSION, "word count, exactly_once_v2, two kill -9")
    assert judge(suite, ran, {}) == {}


def test_counts_are_exact_though_one_of_two_processes_is_killed(
    play: Play, judge: Callable[..., dict[str, str]]
) -> None:
    first = play.begin()
    play.act()
    play.begin()
    play.act()
    play.words.write()
    first.kill()
    play.act()
    ran = play.finish()
    suite = Suite("kafka-streams", apache_kafka.VERSION, "word count, one of two processes killed")
    assert judge(suite, ran, {}) == {}
