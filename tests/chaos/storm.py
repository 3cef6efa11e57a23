"""One run: three brokers, real clients, a schedule of faults, and a verdict.

One loop does everything, so that nothing here needs a lock: every 20 ms each writer writes, each
reader reads, and what is due is done to the cluster. It ends by itself: the schedule has an end,
and so has the patience with which all is then awaited to be whole again.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from cotidal.client.admin import create_topic, describe_quorum
from cotidal.client.cluster import Cluster as Client
from cotidal.client.failures import ClientError
from cotidal.invariants import (
    EXACTLY_ONCE,
    ISR_HEALS,
    PRODUCE_IS_ANSWERED,
    READS_REACH_THE_END,
    TXN_ENDS,
)
from cotidal.sim.checkers.kept import lost
from cotidal.sim.faults.schedule import Command
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.history import Acked, History
from cotidal.sim.workloads.transaction_ledger import COPIES, COPIES_PARTITIONS
from cotidal.testing.cluster import ProcessCluster
from cotidal.values import TopicPartition
from tests.chaos.clients import TOPIC, Reader, Writer
from tests.chaos.consumer import now_us
from tests.chaos.judge import (
    look_at_journal,
    look_at_logs,
    look_at_records,
    look_at_traces,
    raised_epochs,
)
from tests.chaos.nemesis import Nemesis
from tests.chaos.plan import STORM, storm_schedule
from tests.chaos.processors import CommittedReader, Ledger, Processor, processed

TICK_S: Final = 0.02
LOOK_TICKS: Final = 10
HEALING_S: Final = 90.0
SILENCE_MAX_S: Final = 180.0
"""Nothing acknowledged at some level for so long, though faults heal all the time: somebody is
stuck, and should be looked at while it is."""
READING_S: Final = 60.0
LEVELS: Final = ((-1, True), (-1, False), (1, False))
"""Of acknowledgement: a writer for each."""
PROCESSORS: Final = 2


class Strike(NamedTuple):
    fault: str
    what: str
    """The whole command."""
    moment_us: int
    waiting: set[TopicPartition]
    """Partitions in which nothing that was written since has been acknowledged with acks=all."""


class Recovery(NamedTuple):
    fault: str
    what: str
    seconds: float


class Level(NamedTuple):
    name: str
    acked: int
    failed: int
    lost: int


class Transactions(NamedTuple):
    """What processors were told of theirs."""

    committed: int
    aborted: int
    failed: dict[str, int]
    """Errors that ended a processor's clients, and how often."""


class Outcome(NamedTuple):
    seed: int
    broken: str | None
    sentence: str
    faults: int
    seconds: float
    recoveries: tuple[Recovery, ...]
    unrecovered: int
    """Faults that the run ended with before every partition took a write again."""
    levels: tuple[Level, ...]
    read: int
    raised: int
    """Epochs that idempotent writers went on in after an error that they could not explain."""
    log_bytes: int
    steps: int
    """Of recorded nodes, taken once more and found the same; 0: none was recorded."""
    transactions: Transactions
    helped: dict[str, int]
    """Clients whose librdkafka stood still (consumer.py, processors.py): how, and how often."""

    def slowest(self) -> dict[str, tuple[int, float, float]]:
        """Fault -> how many, median and worst seconds."""
        by_fault: dict[str, list[float]] = {}
        for fault, _, seconds in self.recoveries:
            by_fault.setdefault(fault, []).append(seconds)
        return {
            fault: (len(found), statistics.median(found), max(found))
            for fault, found in sorted(by_fault.items())
        }


class Storm:
    def __init__(
        self,
        cluster: ProcessCluster,
        *,
        seed: int,
        faults: int,
        traces: Path | None = None,
        on_strike: Callable[[int, Command], None] = lambda number, command: None,
    ) -> None:
        """``traces``: where the cluster records its nodes, each to be lived again in the end."""
        self._cluster = cluster
        self._traces = traces
        self._seed = seed
        self._faults = faults
        self._tell = on_strike
        self._partitions = [TopicPartition(TOPIC, number) for number in range(STORM.partitions)]
        self._copies = [TopicPartition(COPIES, number) for number in range(COPIES_PARTITIONS)]
        self._ledger = Ledger()
        self._processors: list[Processor] = []
        self._committed_readers: list[CommittedReader] = []
        self.history = History()
        self.final = History()
        self._strikes: list[Strike] = []
        self._recoveries: list[Recovery] = []
        self._struck = 0
        self._raised = 0
        self._log_bytes = 0
        self._steps = 0
        self._writers: list[Writer] = []
        self._readers: list[Reader] = []

    def go(self) -> Outcome:
        begun = time.monotonic()
        broken, sentence = None, ""
        try:
            self._set_up()
            self._endure()
            self._recover()
            self._roll()
            self._read_all()
            self._process_all()
            self._look_at_what_is_left()
        except Violation as violation:
            broken, sentence = violation.name, violation.sentence
        finally:
            for processor in self._processors:
                processor.stop()
            for reader in (*self._readers, *self._committed_readers):
                reader.close()
        return Outcome(
            self._seed,
            broken,
            sentence,
            self._struck,
            time.monotonic() - begun,
            tuple(self._recoveries),
            len(self._strikes),
            tuple(self._level(writer) for writer in self._writers),
            self.history.read,
            self._raised,
            self._log_bytes,
            self._steps,
            self._transactions(),
            self._helped(),
        )

    # What happens

    def _set_up(self) -> None:
        self._cluster.start()
        bootstrap, processes = self._cluster.bootstrap, self._cluster.processes
        with Client(bootstrap) as client:
            create_topic(client, TOPIC, partitions=STORM.partitions, configs={})
            create_topic(client, COPIES, partitions=COPIES_PARTITIONS, configs={})
        self._nemesis = Nemesis(
            self._cluster,
            storm_schedule(
                self._seed, self._faults, controllers=len(processes) - len(self._cluster.nodes)
            ),
            logs=[str(each) for each in self._partitions],
            whole=self._is_whole,
            on_strike=self._on_strike,
        )
        self._writers = [
            Writer(
                bootstrap,
                number,
                self.history,
                partitions=STORM.partitions,
                acks=acks,
                idempotent=idempotent,
                on_acked=self._on_acked,
            )
            for number, (acks, idempotent) in enumerate(LEVELS, start=1)
        ]
        self._readers = [
            Reader(bootstrap, self.history, partitions=STORM.partitions, seed=self._seed, rack=rack)
            for rack in ("", "rack-2", "rack-3")
        ]
        self._committed_readers = [
            CommittedReader(bootstrap, self._ledger, rack=rack) for rack in ("", "rack-3")
        ]
        self._processors = [
            Processor(bootstrap, f"processor-{number}", self._ledger, seed=self._seed)
            for number in range(PROCESSORS)
        ]

    def _endure(self) -> None:
        begun = time.monotonic()
        while self._nemesis.struck < self._faults and not self._nemesis.exhausted:
            for _ in range(LOOK_TICKS):
                self._nemesis.tick(int((time.monotonic() - begun) * 1000))
                for writer in self._writers:
                    writer.write()
                self._turn()
            self._nemesis.look()
            heard_us = min(writer.heard_us for writer in self._writers)
            if now_us() - heard_us > SILENCE_MAX_S * 1e6:
                raise self._unanswered()
            heard_us = min(reader.heard_us for reader in self._readers)
            if now_us() - heard_us > SILENCE_MAX_S * 1e6:
                raise self._unread()
        self._begun = begun
        self._nemesis.heal()

    def _recover(self) -> None:
        """Writers go on until every partition has taken something, and all replicas are in sync."""
        self._until(lambda: not self._strikes, HEALING_S, self._unanswered, writes=True)
        self._until(self._is_whole, HEALING_S, self._behind, writes=True)

    def _roll(self) -> None:
        """One node after the other, in order, while writers go on; then they wait for answers."""
        for node in self._cluster.processes:
            self._strike("rolling restart", f"of node {node}")
            self._nemesis.roll(node)
            self._recover()
        self._until(
            lambda: not any(writer.unanswered for writer in self._writers),
            HEALING_S,
            self._unanswered,
        )
        self._until(self._is_whole, HEALING_S, self._behind)

    def _read_all(self) -> None:
        last = Reader(
            self._cluster.bootstrap, self.final, partitions=STORM.partitions, seed=self._seed
        )
        self._readers.append(last)
        for reader in self._readers:
            reader.restless = False
        ends = self._ends()
        self._until(
            lambda: all(reader.positions == ends for reader in self._readers),
            READING_S,
            self._unread,
        )

    def _process_all(self) -> None:
        """Every input is processed and every transaction ended; what a new reader then sees is
        judged."""
        ends, bootstrap = self._ends(), self._cluster.bootstrap
        self._until(
            lambda: processed(bootstrap, STORM.partitions) == ends,
            HEALING_S,
            lambda: Violation(
                EXACTLY_ONCE,
                f"the group stands at {processed(bootstrap, STORM.partitions)} of {ends};"
                f" {self._transactions()}",
            ),
        )
        for processor in self._processors:
            processor.stop()
        last = CommittedReader(bootstrap, self._ledger)
        self._committed_readers.append(last)
        self._until(
            lambda: all(reader.is_at_the_end for reader in self._committed_readers),
            READING_S,
            lambda: Violation(
                TXN_ENDS, f"{[(each.name, each.ends) for each in self._committed_readers]}"
            ),
        )
        found = {
            place: [results[offset] for offset in sorted(results)]
            for place, results in last.results.items()
        }
        self._ledger.judge(found, {TopicPartition(TOPIC, n): end for n, end in ends.items()})

    def _look_at_what_is_left(self) -> None:
        raised = {each: raised_epochs(self._cluster.log(1, str(each))) for each in self._partitions}
        self._raised = len({each for found in raised.values() for each in found.values()})
        look_at_records(self.history, self.final, self._writers, raised)
        status = self._cluster.stop()
        if status != 0:
            raise Violation(ISR_HEALS, f"it stopped with {status}\n{self._cluster.said()}")
        self._log_bytes = look_at_logs(self._cluster, self._partitions + self._copies)
        look_at_journal(self._cluster)
        if self._traces is not None:
            self._steps = look_at_traces(self._traces)

    # Turns

    def _turn(self) -> None:
        until = time.monotonic() + TICK_S
        for writer in self._writers:
            writer.poll()
        for reader in (*self._readers, *self._committed_readers):
            reader.read()
        for processor in self._processors:
            if processor.broken is not None:
                raise processor.broken
        time.sleep(max(0.0, until - time.monotonic()))

    def _until(
        self,
        condition: Callable[[], bool],
        seconds: float,
        otherwise: Callable[[], Violation],
        *,
        writes: bool = False,
    ) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise otherwise()
            for _ in range(LOOK_TICKS):
                self._nemesis.tick(int((time.monotonic() - self._begun) * 1000))
                for writer in self._writers if writes else ():
                    writer.write()
                self._turn()
            self._nemesis.look()

    def _behind(self) -> Violation:
        return Violation(ISR_HEALS, f"not every replica is in sync\n{self._cluster.said()}")

    def _unanswered(self) -> Violation:
        told = [f"{each.name}: {each.unanswered} unanswered" for each in self._writers]
        waiting = [(each.what, sorted(map(str, each.waiting))) for each in self._strikes]
        beliefs = "\n".join(each.belief for each in self._writers)
        return Violation(
            PRODUCE_IS_ANSWERED, f"{'; '.join(told)}; no write since {waiting[:3]}\n{beliefs}"
        )

    def _unread(self) -> Violation:
        return Violation(READS_REACH_THE_END, "\n".join(each.belief for each in self._readers))

    # What is known

    def _on_strike(self, command: Command) -> None:
        self._struck += 1
        self._strike(command.fault, str(command))
        self._tell(self._struck, command)

    def _strike(self, fault: str, what: str) -> None:
        self._strikes.append(Strike(fault, what, now_us(), set(self._partitions)))

    def _on_acked(self, acked: Acked) -> None:
        if acked.acks != -1:
            return
        for strike in list(self._strikes):
            if acked.made_us > strike.moment_us:
                strike.waiting.discard(acked.partition)
                if not strike.waiting:
                    self._strikes.remove(strike)
                    seconds = (acked.moment_us - strike.moment_us) / 1e6
                    self._recoveries.append(Recovery(strike.fault, strike.what, seconds))

    def _is_whole(self) -> bool:
        """Every replica is in the ISR, and every voter has all of the metadata log."""
        if not self._nemesis.quiet:
            return False
        try:
            with Client(self._cluster.bootstrap, timeout_s=5.0) as client:
                topics = client.metadata().topics
                quorum = describe_quorum(client)
        except ClientError:
            return False
        ends = [voter.end_offset for voter in quorum.voters]
        in_sync = all(len(each.isr) == 3 for topic in topics for each in topic.partitions)
        return (
            in_sync and {TOPIC, COPIES} <= {each.name for each in topics} and min(ends) == max(ends)
        )

    def _ends(self) -> dict[int, int]:
        """Every log ends here; all is in sync, and nobody writes."""
        return {number: self._readers[0].end_of(number) for number in range(STORM.partitions)}

    def _transactions(self) -> Transactions:
        failed: Counter[str] = Counter()
        for processor in self._processors:
            failed.update(processor.failed)
        return Transactions(self._ledger.committed, self._ledger.aborted, dict(failed))

    def _helped(self) -> dict[str, int]:
        helped: Counter[str] = Counter()
        for client in (*self._readers, *self._committed_readers, *self._processors):
            helped.update(client.helped)
        return dict(helped)

    def _level(self, writer: Writer) -> Level:
        levels = (self.history.acked, self.history.acked_by_leader)
        own = [
            fact
            for facts in levels
            for acked in facts.values()
            for fact in acked
            if writer.owns(fact.crc)
        ]
        gone = lost([*own, *writer.unplaced], self.final) if self.final.consumed else []
        failed = sum(writer.failed.values())
        return Level(writer.name, writer.acked, failed, len(gone))
