"""Clusters for the tests of programs that speak to Kafka.

``Cluster``          brokers in this process, on a thread of their own: three are up in a fraction
                     of a second. A node that is killed here flushes nothing and answers nobody,
                     as a killed process does.
``ProcessCluster``   processes of their own, as `cotidal up` starts them: to be killed with -9, or
                     paused.

Both keep their data in a directory that goes when they end, unless they are given one, and both
can have the links between their nodes held or slowed; clients reach every node all the while.

    with Cluster() as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        cluster.partition(1, 2)
        cluster.kill(3)
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Final, Self, TypeVar

from cotidal.broker.config import BrokerConfig
from cotidal.broker.control import PID_FILE, ControlError, Handle
from cotidal.broker.faults import NO_FAULTS, Faults, Pair, both_ways
from cotidal.broker.local import FIRST_CONTROLLER, lay_out
from cotidal.broker.main import Running, new_loop, serve
from cotidal.core.coordinator import partition_of
from cotidal.errors import ErrorCode
from cotidal.testing.ports import quiet_port
from cotidal.testing.replies import Close, RequestT, Rule, Script, ScriptedEdge
from cotidal.values import NodeId, TopicPartition

START_SECONDS_MAX: Final = 30.0
STOP_SECONDS_MAX: Final = 30.0

Result = TypeVar("Result")


class ClusterFailed(Exception):
    """It did not start, or did not stop; with the end of what it said."""


class _Data:
    """The directory of a cluster: its own, or one that outlives it."""

    def __init__(self, directory: str | os.PathLike[str] | None) -> None:
        self.goes = directory is None
        self.path = Path(directory or tempfile.mkdtemp(prefix="cotidal-"))

    def drop(self) -> None:
        if self.goes:
            shutil.rmtree(self.path, ignore_errors=True)


class Disturbed(ABC):
    """A cluster whose links can be held and slowed."""

    def __init__(self) -> None:
        self.faults = NO_FAULTS
        """What is done to it now."""

    @property
    @abstractmethod
    def nodes(self) -> tuple[int, ...]: ...

    @abstractmethod
    def suffer(self, faults: Faults) -> None:
        """All links and disks are as this says from now on."""

    def partition(self, node: int, *others: int, one_way: bool = False) -> None:
        """Nothing passes between a node and the others; all others if none is named.

        ``one_way``: nothing from the node to them; what they say still reaches it.
        """
        self.suffer(self.faults.held(self._pairs(node, others, one_way=one_way)))

    def slow(self, node: int, *others: int, seconds: float, one_way: bool = False) -> None:
        """Everything between a node and the others takes so much longer, each way."""
        self.suffer(self.faults.slowed(self._pairs(node, others, one_way=one_way), seconds))

    def heal(self, *nodes: int) -> None:
        """All links are open; or those of one node, or between one and the others."""
        pairs = self._pairs(nodes[0], nodes[1:]) if nodes else self.faults.delays
        self.suffer(self.faults.healed(pairs))

    def _pairs(self, node: int, others: tuple[int, ...], *, one_way: bool = False) -> list[Pair]:
        others = others or tuple(each for each in self.nodes if each != node)
        if node in others or not {node, *others} <= set(self.nodes):
            raise ClusterFailed(f"there is no link between {node} and {others} in {self.nodes}")
        return [(node, other) for other in others] if one_way else both_ways(node, others)


class Cluster(Disturbed):
    """Brokers in this process."""

    def __init__(
        self,
        brokers: int = 3,
        *,
        settings: Mapping[str, str] | None = None,
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        """``settings``: of every broker, by Kafka's names. ``directory``: data that is to stay."""
        super().__init__()
        self._brokers = brokers
        self._settings = dict(settings or {})
        self._data = _Data(directory)
        self._configs: dict[int, BrokerConfig] = {}
        self._running: dict[int, Running] = {}
        self._script = Script(self.nodes)
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._turn, name="cotidal", daemon=True)

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple(range(1, self._brokers + 1))

    @property
    def bootstrap(self) -> str:
        """Where clients begin: every broker, whether it runs or not."""
        return ",".join(
            f"{address.host}:{address.port}"
            for config in self._configs.values()
            for address in config.advertised or config.listeners[:1]
        )

    def start(self) -> Self:
        self._configs = {config.node_id: config for config in self._lay_out()}
        self._thread.start()
        try:
            self._await(self._serve(self.nodes), START_SECONDS_MAX)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Whatever still runs: in order, or, if nobody wants its data, at once."""
        if self._thread.is_alive():
            with contextlib.suppress(TimeoutError):
                self._await(self._stop(), STOP_SECONDS_MAX)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(STOP_SECONDS_MAX)
        self._data.drop()

    def kill(self, node: int) -> None:
        """As kill -9 would: nothing is flushed, nobody is told."""
        self._await(self._kill(node), STOP_SECONDS_MAX)

    def restart(self, node: int) -> None:
        """Start a node that was killed, on its data; it serves when this returns."""
        if node in self._running:
            raise ClusterFailed(f"node {node} runs")
        self._await(self._serve((node,)), START_SECONDS_MAX)

    def on(
        self,
        request: type[RequestT],
        *,
        nth: int = 1,
        times: int | None = 1,
        node: int | None = None,
        client_id: str | None = None,
        when: Callable[[RequestT], bool] | None = None,
        reply: ErrorCode | Callable[[RequestT], object] | tuple[Any, ...] | None = None,
        delay: float = 0.0,
        close: Close | None = None,
    ) -> Rule[RequestT]:
        """Do otherwise than the brokers would with some requests of clients (replies.py).

        The ``nth`` of this kind from now on, and as many as ``times`` says (None: all from there);
        at one ``node``, of one client, and only those for which ``when`` is true.
        """
        rule = Rule(
            request,
            nth=nth,
            times=times,
            node=node,
            client_id=client_id,
            when=when,
            reply=reply,
            delay=delay,
            close=close,
        )
        self._script.add(rule)
        return rule

    def as_usual(self) -> None:
        """No rule holds any more."""
        self._script.clear()

    def move_leader(self, topic: str, partition: int = 0, *, to: int | None = None) -> int:
        """Really: to this replica, or to the next in line; who leads then."""
        from cotidal.client.cluster import Cluster as Client
        from cotidal.client.moving import Election, elect_leaders, reassign

        place = TopicPartition(topic, partition)
        with Client(self.bootstrap) as client:
            told = client.topic(topic).partitions[partition]
            others = [each for each in told.isr if each != told.leader]
            if to is not None and to != told.leader and to not in others:
                raise ClusterFailed(f"node {to} has no replica of {place} that is in sync")
            if to is None and not others:
                raise ClusterFailed(f"nobody but node {told.leader} could lead {place}")
            leader = NodeId(others[0] if to is None else to)
            order = (leader, *(each for each in told.replicas if each != leader))
            failed = [each for each in reassign(client, {place: order}) if each.error]
            if leader != told.leader and not failed:
                elected = elect_leaders(client, Election.PREFERRED, (place,))
                failed = [each for each in elected if each.error]
            if failed:
                raise ClusterFailed(f"{place} stays where it is: {failed[0].reason}")
        return leader

    def move_coordinator(self, group: str, *, to: int | None = None) -> int:
        """Of a group, really: to this broker, or to another; who coordinates it then."""
        from cotidal.client.cluster import Cluster as Client

        topic = "__consumer_offsets"
        with Client(self.bootstrap) as client:
            count = len(client.topic(topic).partitions)
        return self.move_leader(topic, partition_of(group, count), to=to)

    def suffer(self, faults: Faults) -> None:
        self.faults = faults
        self._await(self._suffer(faults), STOP_SECONDS_MAX)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # On the loop's thread

    def _turn(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    async def _serve(self, nodes: tuple[int, ...]) -> None:
        started = await asyncio.gather(
            *(
                serve(
                    self._configs[node], faults=self.faults, edge=ScriptedEdge(node, self._script)
                )
                for node in nodes
            )
        )
        self._running.update(zip(nodes, started, strict=True))

    async def _stop(self) -> None:
        running, self._running = self._running, {}
        if self._data.goes:
            for each in running.values():
                each.kill()
        await asyncio.gather(*(each.stop() for each in running.values()))

    async def _suffer(self, faults: Faults) -> None:
        for each in self._running.values():
            each.suffer(faults)

    async def _kill(self, node: int) -> None:
        running = self._running.pop(node, None)
        if running is None:
            raise ClusterFailed(f"node {node} does not run")
        running.kill()
        await running.wait()

    def _await(self, what: Coroutine[Any, Any, Result], seconds: float) -> Result:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(seconds)

    def _lay_out(self) -> list[BrokerConfig]:
        port = quiet_port(self._brokers)
        return lay_out(self._brokers, str(self._data.path), port=port, overrides=self._settings)


class ProcessCluster(Disturbed):
    """`cotidal up`, and the processes that it starts."""

    PYTHON: ClassVar = (sys.executable,)

    def __init__(
        self,
        brokers: int = 3,
        *,
        controllers: int = 0,
        settings: Mapping[str, str] | None = None,
        directory: str | os.PathLike[str] | None = None,
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
        trace: str | os.PathLike[str] | None = None,
    ) -> None:
        """``controllers``: so many beside the brokers (1, 3 or 5), which are nodes 101, 102, ...;
        0: the first brokers are. ``environment``: of its processes, beside this one's. ``trace``: a
        directory in which every life of every node is recorded."""
        super().__init__()
        self._controllers = controllers
        self._environment = {**os.environ, **(environment or {})}
        self.bootstrap = ""
        """Where clients begin, once it runs."""
        self.brokers = brokers
        # A test that lists topics, or counts what is written, has only its own, as in Cluster.
        self._settings = {"cotidal.events.enable": "false"} | dict(settings or {})
        self._data = _Data(directory)
        self.port = port
        self._trace = trace
        self.process: subprocess.Popen[str] | None = None

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple(range(1, self.brokers + 1))

    @property
    def processes(self) -> tuple[int, ...]:
        """The brokers, and the controllers beside them."""
        first = FIRST_CONTROLLER
        return (*self.nodes, *range(first, first + self._controllers))

    @property
    def data(self) -> Path:
        return self._data.path / "data"

    @property
    def journal(self) -> Path:
        """What the processes say."""
        return self._data.path / "journal"

    def start(self) -> Self:
        command = [*self.PYTHON, "-m", "cotidal", "up", f"--brokers={self.brokers}"]
        command += [f"--controllers={self._controllers}"] if self._controllers else []
        command += ["--no-console"]
        command += [f"--data={self.data}"]
        command += ["--chaos"] if self.brokers > 1 else []
        command += [f"--trace={self._trace}"] if self._trace is not None else []
        command += [f"--port={self.port or quiet_port(self.brokers)}"]
        command += [f"--override={name}={value}" for name, value in self._settings.items()]
        with self.journal.open("a") as journal:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=journal,
                text=True,
                env=self._environment,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("cotidal is up: "):
            self.process.communicate()
            told = f"it ended with status {self.process.returncode}\n{self.said()}"
            self._data.drop()
            raise ClusterFailed(told)
        self.bootstrap = line.removeprefix("cotidal is up: ").split()[0]
        return self

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """In order; the exit status."""
        assert self.process is not None
        self.process.send_signal(how)
        try:
            self.process.communicate(timeout=STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise ClusterFailed(f"it did not stop\n{self.said()}") from None
        return self.process.returncode

    def end(self) -> None:
        """Whatever is left of it, paused nodes too."""
        if self.process is not None and self.process.poll() is None:
            for node in self.processes:
                with contextlib.suppress(OSError, ValueError):
                    self.signal(node, signal.SIGKILL)
            self.process.kill()
        if self.process is not None:
            self.process.communicate()
        self._data.drop()

    def kill(self, node: int) -> None:
        """With -9; it is gone, and known to be, when this returns."""
        if self.brokers > 1:
            with self._told():
                self._handle.kill(node)
        else:
            self.signal(node, signal.SIGKILL)
            assert self.process is not None
            self.process.wait(STOP_SECONDS_MAX)

    def restart(self, node: int, *, wait: bool = True) -> None:
        """One of several that has ended, or is stopped in order first. ``wait``: it serves then."""
        with self._told():
            if self.is_running(node):
                self._handle.stop(node)
            self._handle.start(node, wait=wait)

    def is_running(self, node: int) -> bool:
        return (self.data / f"node-{node}" / PID_FILE).exists()

    def pause(self, node: int) -> None:
        """With SIGSTOP: alive, and silent."""
        if self.brokers > 1:
            with self._told():
                self._handle.pause(node)
        else:
            self.signal(node, signal.SIGSTOP)

    def resume(self, node: int) -> None:
        self.signal(node, signal.SIGCONT)

    def signal(self, node: int, number: signal.Signals) -> None:
        if self.brokers == 1:
            assert self.process is not None
            self.process.send_signal(number)
        else:
            os.kill(self.pid(node), number)

    def pid(self, node: int) -> int:
        return int((self.data / f"node-{node}" / PID_FILE).read_text())

    def start_again(self) -> None:
        """Whichever nodes have ended."""
        assert self.process is not None
        self.process.send_signal(signal.SIGUSR1)

    def suffer(self, faults: Faults) -> None:
        with self._told():
            self._handle.suffer(faults)
        self.faults = faults

    @property
    def _handle(self) -> Handle:
        return Handle(str(self.data))

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except ControlError as wrong:
            raise ClusterFailed(f"{wrong}\n{self.said()}") from None

    def log(self, node: int, partition: str) -> bytes:
        """All segments of a replica (``orders-0``), as they are on disk."""
        home = self.data if self.brokers == 1 else self.data / f"node-{node}"
        segments = sorted((home / partition).glob("*.log"))
        return b"".join(segment.read_bytes() for segment in segments)

    def said(self, last_chars: int = 2_000) -> str:
        return self.journal.read_text()[-last_chars:]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()
