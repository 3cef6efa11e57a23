"""``python -m bench.spark_queries``: Spark's own connector on Apache Kafka, ours on cotidal.

Three brokers each, topics of six partitions with three replicas, ``local[2]``; queries in turns, as
in ``bench.run``, each once unmeasured before. Both sessions are of the PySpark that is installed
here; the connector is the newest one (``bench.stock_connector``). Exactly-once is held against
the same at-least-once write: the stock connector has no other. A micro-batch is what Spark calls
triggerExecution, of a stream into which 1,000 records come in a second.

A second table has the CPU time of each session (JVM and Python) for a row. What else the machine
does changes it little, and the first one much.

``--compiled PYTHON`` adds a contestant: the same with the decoder of a compiled build.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
from confluent_kafka import Producer

from bench import apache_kafka, cotidal_cluster, stock_connector, usage
from bench.load import ROOT, LoadFailed, Target
from bench.row import Better, Row, Sample, Standing
from bench.run import say
from bench.server import Server, ServerFailed, serving
from bench.table import as_json, as_text
from cotidal.spark.options import parse_sink
from cotidal.spark.sink import write_task

BROKERS: Final = 3
PARTITIONS: Final = 6
FILL_ROWS: Final = 10_000
"""Written at once when a topic is filled."""
RECORDS_PER_SECOND: Final = 1000
STEPS_PER_SECOND: Final = 20
ANSWER_SECONDS_MAX: Final = 600
SAID_MAX: Final = 3000

OURS: Final = "cotidal"
COMPILED: Final = "compiled"
THEIRS: Final = "stock on Kafka"


class Query(NamedTuple):
    row: Row
    verb: str
    size: int = 100
    delivery: str = ""


QUERIES: Final = (
    Query(Row("read_100", "batch read, 100 B", "rows/s", Better.HIGHER, 1.5), "read"),
    Query(Row("read_1k", "batch read, 1 KB", "rows/s", Better.HIGHER, 1.5), "read", 1000),
    Query(Row("count_100", "count, 100 B", "rows/s", Better.HIGHER), "count"),
    Query(Row("count_1k", "count, 1 KB", "rows/s", Better.HIGHER), "count", 1000),
    Query(Row("now_100", "availableNow, 100 B", "rows/s", Better.HIGHER, 1.2), "available"),
    Query(Row("now_1k", "availableNow, 1 KB", "rows/s", Better.HIGHER, 1.2), "available", 1000),
    Query(
        Row("write_once", "batch write, 100 B, at least once", "rows/s", Better.HIGHER, 1.5),
        *("write", 100, "at-least-once"),
    ),
    Query(
        Row("write_exactly", "batch write, 100 B, exactly once", "rows/s", Better.HIGHER, 1.0),
        *("write", 100, "exactly-once"),
    ),
    Query(Row("batch_p50", "micro-batch at 1,000/s, p50", "ms", Better.LOWER, 1.0), "follow"),
)


class Amount(NamedTuple):
    rows: dict[int, int]
    """Of a topic, by the size of its values."""
    follow_seconds: float
    repetitions: int


FULL: Final = Amount({100: 1_000_000, 1000: 200_000}, follow_seconds=30, repetitions=3)
QUICK: Final = Amount({100: 300_000, 1000: 60_000}, follow_seconds=20, repetitions=1)


class Contestant:
    """A session, and the cluster that it asks."""

    def __init__(
        self, name: str, server: Server, amount: Amount, command: Sequence[str], said: Path
    ) -> None:
        """``said``: a file for what the session prints."""
        self.name = name
        self._said = said
        self._server = server
        self._amount = amount
        self._target = Target(server)
        with said.open("wb") as sink:
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sink,
                text=True,
            )  # fmt: skip
        self._answer()
        self._topics: dict[int, str] = {}

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def run(self, query: Query) -> Sample:
        """Raises LoadFailed where the answer is not that of the query."""
        rows = self._amount.rows[query.size]
        asked: dict[str, Any] = {
            "verb": query.verb,
            "bootstrap": self._server.bootstrap,
            "rows": rows,
            "size": query.size,
            "delivery": query.delivery,
            "seconds": self._amount.follow_seconds,
        }
        if query.verb in ("write", "follow"):
            topic = self._target.new_topic(PARTITIONS)
        else:
            topic = self._filled(query.size)
        before = usage.cpu_seconds(self._server.pids())
        if query.verb == "follow":
            with trickling(self._server.bootstrap, topic):
                answer = self._ask(asked | {"topic": topic})
        else:
            answer = self._ask(asked | {"topic": topic})
            if answer["rows"] != rows:
                raise LoadFailed(f"{self.name}: {answer['rows']} of {rows} rows: {query.row.title}")
        seconds = answer["seconds"]
        server_cores = (usage.cpu_seconds(self._server.pids()) - before) / seconds
        value = rows / seconds
        if query.verb == "follow":
            if not answer["batches_ms"]:
                raise LoadFailed(f"{self.name}: a stream of {seconds:.0f} s had no micro-batch")
            value = statistics.median(answer["batches_ms"])
        return Sample(value, answer["cpu_seconds"] / seconds, server_cores)

    def _filled(self, size: int) -> str:
        """A topic with the rows of this size, written the first time that it is asked for."""
        if size not in self._topics:
            self._topics[size] = self._target.new_topic(PARTITIONS)
            fill(self._server.bootstrap, self._topics[size], size, self._amount.rows[size])
        return self._topics[size]

    def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        limit = threading.Timer(ANSWER_SECONDS_MAX, self._process.kill)
        limit.start()
        line = self._process.stdout.readline()
        limit.cancel()
        if not line:
            said = self._said.read_text(errors="replace")[-SAID_MAX:]
            raise LoadFailed(f"{self.name}: its Spark session has ended:\n{said}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def fill(bootstrap: str, topic: str, size: int, rows: int) -> None:
    """In batches as large as the Java producer makes them unless told otherwise."""
    given = {
        "kafka.bootstrap.servers": bootstrap,
        "topic": topic,
        "delivery": "at-least-once",
        "kafka.batch.size": "16384",
    }
    values = np.random.default_rng(size).bytes(size * FILL_ROWS)

    def batches() -> Iterator[pa.RecordBatch]:
        for first in range(0, rows, FILL_ROWS):
            count = min(FILL_ROWS, rows - first)
            yield pa.RecordBatch.from_pydict(
                {
                    "key": [b"k%07d" % at for at in range(first, first + count)],
                    "value": [values[at * size : (at + 1) * size] for at in range(count)],
                }
            )

    write_task(parse_sink(given), topic, 0, batches())


@contextlib.contextmanager
def trickling(bootstrap: str, topic: str) -> Iterator[None]:
    """RECORDS_PER_SECOND into a topic, evenly, for the length of a ``with`` block."""
    done = threading.Event()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 0})

    def run() -> None:
        begun, sent = time.monotonic(), 0
        while not done.wait(1 / STEPS_PER_SECOND):
            due = int((time.monotonic() - begun) * RECORDS_PER_SECOND)
            for number in range(sent, due):
                producer.produce(topic, bytes(100), partition=number % PARTITIONS)
            sent = max(sent, due)
            producer.poll(0)
        producer.flush(30)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextlib.contextmanager
def contestants(amount: Amount, work: Path, compiled: str | None) -> Iterator[list[Contestant]]:
    session = ("-m", "bench.spark_session")
    with contextlib.ExitStack() as stack:
        found: list[Contestant] = []

        def enter(name: str, server: Server, *command: str) -> None:
            say(f"a session: {name}")
            one = Contestant(name, server, amount, command, work / f"{name}.txt")
            stack.callback(one.close)
            found.append(one)

        (work / "kafka").mkdir()
        (work / "cotidal").mkdir()
        jars = map(str, stock_connector.jars())
        theirs = stack.enter_context(serving(apache_kafka.recipe(BROKERS, work / "kafka")))
        enter(THEIRS, theirs, sys.executable, *session, "kafka", *jars)
        ours = stack.enter_context(serving(cotidal_cluster.recipe(BROKERS, work / "cotidal")))
        enter(OURS, ours, sys.executable, *session, "cotidal")
        if compiled is not None:
            enter(COMPILED, ours, compiled, *session, "cotidal")
        yield found


def measured(
    found: Sequence[Contestant], repetitions: int, queries: Sequence[Query] = QUERIES
) -> tuple[Standing, ...]:
    samples: dict[str, dict[str, list[Sample]]] = {query.row.key: {} for query in queries}
    for number in range(repetitions + 1):
        stage = f"query {number}/{repetitions}" if number else "warm-up"
        for query in queries:
            for one in found:
                say(f"{stage}: {query.row.title}: {one.name}")
                sample = one.run(query)
                if number:
                    samples[query.row.key].setdefault(one.name, []).append(sample)
    return tuple(Standing(query.row, samples[query.row.key]) for query in queries)


def cpu_text(standings: Sequence[Standing]) -> str:
    """A line for each query that has rows: the session's CPU for one, beside the stock one's."""
    lines = []
    for standing in standings:
        spent = {
            name: statistics.median(_cpu_us(each) for each in samples)
            for name, samples in standing.samples.items()
        }
        if standing.row.unit == "rows/s":
            times = ", ".join(
                f"{name} {us:.2f}" + ("" if name == THEIRS else f" ({spent[THEIRS] / us:.2f}x)")
                for name, us in spent.items()
            )
            lines.append(f"{standing.row.title:<36}{times}")
    return "\n".join(["CPU of the session for a row, us:", *lines])


def _cpu_us(sample: Sample) -> float:
    assert sample.client_cores is not None
    return sample.client_cores / sample.value * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark_queries", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short repetition")
    parser.add_argument("--repetitions", type=int, help="instead of three, or of one with --quick")
    parser.add_argument("--json", action="store_true", help="every sample, as JSON")
    parser.add_argument("--compiled", metavar="PYTHON", help=".venv-compiled/bin/python")
    parser.add_argument("--query", action="append", help="by its key; may be given again")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, _stop)  # so that what was started is stopped
    amount = QUICK if asked.quick else FULL
    queries = [each for each in QUERIES if not asked.query or each.row.key in asked.query]
    try:
        with (
            tempfile.TemporaryDirectory(prefix="cotidal-spark-") as work,
            contestants(amount, Path(work), asked.compiled) as found,
        ):
            standings = measured(found, asked.repetitions or amount.repetitions, queries)
    except (ServerFailed, LoadFailed, apache_kafka.KafkaMissing) as failure:
        print(failure, file=sys.stderr)
        return 1
    say("")
    if asked.json:
        print(json.dumps(as_json(standings, OURS, THEIRS), indent=1))
        return 0
    print(as_text(standings, OURS, THEIRS))
    if asked.compiled is not None:
        print(as_text(standings, COMPILED, THEIRS))
    print(cpu_text(standings))
    return 0


def _stop(_signal: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(1)


if __name__ == "__main__":
    sys.exit(main())
