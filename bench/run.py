"""One run: the contestants are started, loaded and measured in turns, then stopped.

The contestants have their turns load by load, so that what the machine does meanwhile falls on
both, and who had the first turn has the last one in the next round. What a load has written is read
back in the same turn and then removed, so that each finds the machine as the other did: memory
above all, which costs most when it has not been used before. Every load is run once unmeasured
before: a JVM needs it. What is measured when, and why then:

  start        as often as there are repetitions, each with an empty data directory
  idle memory  a few seconds after the last start, before any load
  loads        in turns
  memory       right after the loads
  idle CPU     after that and of all at once: a JVM that has just started still compiles
  failover     of clusters, at the end: a broker is killed
  applications groups and transactions, after all of that, on clusters of their own

``measure_alone`` is the other way: what somebody finds who starts a cluster and tries it. One
contestant has the machine, its cluster is new each time and nothing is warmed up, and the client is
librdkafka as Python has it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import applications, failover, usage
from bench.load import FULL, QUICK, WARMUP, LoadFailed, Target, Volume, has_generator
from bench.row import (
    CLUSTER_BROKERS_MIN,
    FAILOVER,
    IDLE_CPU,
    IDLE_PSS,
    IDLE_RESIDENT,
    LIBRDKAFKA_LOADS,
    LOADED_PSS,
    LOADED_RESIDENT,
    LOADS,
    START,
    Load,
    Row,
    Sample,
    Standing,
    chains,
    standings,
)
from bench.server import Recipe, Server, serving
from cotidal.client.failures import ClientError

Cook = Callable[[int, Path], Recipe]
"""Prepares a new cluster of so many brokers in a directory."""


class Contestant(NamedTuple):
    name: str
    cook: Cook


class Plan(NamedTuple):
    brokers: int
    repetitions: int
    volume: Volume
    warmup: Volume
    settle_seconds: float
    idle_seconds: float
    amount: applications.Amount


def full(brokers: int) -> Plan:
    return Plan(brokers, 4, FULL, WARMUP, 5, 10, applications.FULL)


def quick(brokers: int) -> Plan:
    return Plan(brokers, 1, QUICK, QUICK, 2, 5, applications.QUICK)


class Run:
    """What has been measured so far."""

    __slots__ = ("_contestants", "_plan", "_samples", "_work")

    def __init__(self, contestants: Sequence[Contestant], plan: Plan, work: Path) -> None:
        self._contestants = contestants
        self._plan = plan
        self._work = work
        self._samples: dict[Row, dict[str, list[Sample]]] = {}

    def standings(self) -> tuple[Standing, ...]:
        return standings(self._samples, self._plan.brokers)

    def measure(self) -> None:
        with self._started() as servers:
            self._settle()
            self._measure_memory(servers, IDLE_RESIDENT, IDLE_PSS)
            if not has_generator():
                say("Go is not installed: the rows of franz-go are left out")
            self._measure_loads(servers, LOADS if has_generator() else LIBRDKAFKA_LOADS)
            self._measure_memory(servers, LOADED_RESIDENT, LOADED_PSS)
            self._settle()
            for repetition in range(self._plan.repetitions):
                self._measure_idle_cpu(servers, f"{repetition + 1}/{self._plan.repetitions}")
            if self._plan.brokers >= CLUSTER_BROKERS_MIN:
                self._measure_failover(servers)
        self.measure_applications()

    def measure_applications(self) -> None:
        """Each contestant alone, on a cluster of its own."""
        for repetition in range(self._plan.repetitions):
            for contestant in self._contestants:
                say(f"applications {repetition + 1}/{self._plan.repetitions}: {contestant.name}")
                directory = self._work / f"{contestant.name.split()[0]}-applications-{repetition}"
                directory.mkdir()
                try:
                    with serving(contestant.cook(self._plan.brokers, directory)) as server:
                        measured = applications.measure(server, self._plan.amount)
                except (ClientError, LoadFailed) as failure:  # the other rows stand all the same
                    say(f"these applications are left out: {failure}")
                    continue
                for row, sample in measured.items():
                    self._note(row, contestant.name, sample)

    def measure_alone(self) -> None:
        """Each contestant by itself on a new cluster, as often as there are repetitions."""
        turns = list(self._contestants)
        for repetition in range(self._plan.repetitions):
            for contestant in turns:
                stage = f"alone {repetition + 1}/{self._plan.repetitions}"
                say(f"{stage}: {contestant.name}")
                directory = self._work / f"{contestant.name.split()[0]}-alone-{repetition}"
                directory.mkdir()
                with serving(contestant.cook(self._plan.brokers, directory)) as server:
                    self._note(START, contestant.name, Sample(server.start_seconds))
                    self._measure_newcomer({contestant.name: server}, stage)
            turns.reverse()

    def _measure_newcomer(self, servers: dict[str, Server], stage: str) -> None:
        self._settle()
        self._measure_memory(servers, IDLE_RESIDENT, IDLE_PSS)
        for name, server in servers.items():
            target = Target(server)
            for chain in chains(LIBRDKAFKA_LOADS):
                self._run_chain(target, name, chain, self._plan.volume, stage, counts=True)
        self._measure_memory(servers, LOADED_RESIDENT, LOADED_PSS)
        self._settle()
        self._measure_idle_cpu(servers, stage)
        if self._plan.brokers >= CLUSTER_BROKERS_MIN:
            self._measure_failover(servers)

    @contextlib.contextmanager
    def _started(self) -> Iterator[dict[str, Server]]:
        """Start everything as often as there are repetitions; the last ones stay."""
        servers: dict[str, Server] = {}
        with contextlib.ExitStack() as stack:
            for repetition in range(self._plan.repetitions):
                is_last = repetition == self._plan.repetitions - 1
                for contestant in self._contestants:
                    say(f"start {repetition + 1}/{self._plan.repetitions}: {contestant.name}")
                    directory = self._work / f"{contestant.name.split()[0]}-{repetition}"
                    directory.mkdir()
                    server = Server(contestant.cook(self._plan.brokers, directory)).start()
                    stack.callback(server.stop)
                    self._note(START, contestant.name, Sample(server.start_seconds))
                    if is_last:
                        servers[contestant.name] = server
                    else:
                        server.stop()
            yield servers

    def _measure_loads(self, servers: dict[str, Server], loads: Sequence[Load]) -> None:
        turns = [(name, Target(server)) for name, server in servers.items()]
        for number in (None, *range(1, self._plan.repetitions + 1)):
            volume = self._plan.warmup if number is None else self._plan.volume
            stage = "warm-up" if number is None else f"load {number}/{self._plan.repetitions}"
            for chain in chains(loads):
                for name, target in turns:
                    self._run_chain(target, name, chain, volume, stage, counts=number is not None)
            turns.reverse()

    def _run_chain(
        self,
        target: Target,
        name: str,
        chain: Sequence[Load],
        volume: Volume,
        stage: str,
        *,
        counts: bool,
    ) -> None:
        """A load that writes and those that read it back; what they wrote is gone afterwards."""
        for load in chain:
            say(f"{stage}: {load.rows[0][0].title}: {name}")
            os.sync()  # nobody pays for what another one left to be written back
            for row, sample in target.run(load, volume).items():
                if counts:
                    self._note(row, name, sample)
        target.drop_topics()

    def _measure_memory(self, servers: dict[str, Server], resident: Row, shared: Row) -> None:
        for name, server in servers.items():
            used = usage.memory(server.pids())
            self._note(resident, name, Sample(used.resident_mb))
            self._note(shared, name, Sample(used.proportional_mb))

    def _measure_idle_cpu(self, servers: dict[str, Server], stage: str) -> None:
        say(f"{stage}: idle")
        before = {name: usage.cpu_seconds(server.pids()) for name, server in servers.items()}
        begun = time.monotonic()
        time.sleep(self._plan.idle_seconds)
        for name, server in servers.items():
            used = usage.cpu_seconds(server.pids()) - before[name]
            percent = 100 * used / (time.monotonic() - begun)
            self._note(IDLE_CPU, name, Sample(percent))

    def _measure_failover(self, servers: dict[str, Server]) -> None:
        """Last of all, and once: the killed broker stays dead."""
        for name, server in servers.items():
            say(f"failover: {name}")
            topic = Target(server).new_topic(1, {"min.insync.replicas": "2"})
            self._note(FAILOVER, name, Sample(failover.strike_once(server, topic)))

    def _settle(self) -> None:
        say("letting things settle")
        time.sleep(self._plan.settle_seconds)

    def _note(self, row: Row, name: str, sample: Sample) -> None:
        self._samples.setdefault(row, {}).setdefault(name, []).append(sample)


def say(sentence: str) -> None:
    """Progress, on stderr: one line that is written over on a terminal, else a line each."""
    if sys.stderr.isatty():
        print(f"\r\033[K{sentence}", end="", file=sys.stderr, flush=True)
    else:
        print(sentence, file=sys.stderr, flush=True)
