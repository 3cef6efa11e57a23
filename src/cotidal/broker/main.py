"""The composition root: a node, its sockets, its disk, its clock, put together and taken apart.

``serve`` starts a node on the running loop and does nothing process-wide, so that a test can run a
whole cluster inside itself. ``run_broker`` is the process: allocator, file descriptors, signals.

Exit codes: 0 stopped in order; 1 could not start or go on (one sentence says why); 2 a mistake in
the configuration; 70 a fault of ours, told with what led to it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from cotidal import __version__
from cotidal.broker import memory
from cotidal.broker.child import EXIT_FAULT
from cotidal.broker.config import BrokerConfig, bound_addresses
from cotidal.broker.counters import Counters
from cotidal.broker.descriptors import descriptors, raise_limit
from cotidal.broker.directory import LogDir
from cotidal.broker.disk import Disk
from cotidal.broker.driver import Driver, now_millis, wall_millis
from cotidal.broker.edge import Edge
from cotidal.broker.faults import NO_FAULTS, Faults, read_faults
from cotidal.broker.full_disk import FillableFiles
from cotidal.broker.identity import gate, node_config
from cotidal.broker.journal import Journal, LibrarySink, stream_sink
from cotidal.broker.links import Links
from cotidal.broker.listeners import Listener, ListenerError, bind, bracketed
from cotidal.broker.metadata_log import MetadataError, MetadataLog
from cotidal.broker.metrics import Gauges, NodeMetrics
from cotidal.broker.metrics_endpoint import Answers, MetricsEndpoint
from cotidal.broker.peers import Peers
from cotidal.broker.server import Bounds, Server
from cotidal.broker.storage import Held, StorageError, mark_clean, new_id, open_all
from cotidal.broker.tracing import make_node
from cotidal.broker.witness import Gallery
from cotidal.limits import (
    HELD_BYTES_MAX,
    METRICS_CONNECTIONS_MAX,
    METRICS_PARTITIONS_MAX,
    NODE_RESIDENT_BYTES_MAX,
    PARTIAL_FRAME_STALL_MS,
)
from cotidal.log.files import OsFiles
from cotidal.log.filesystem import FileSystem
from cotidal.log.metadata_store import METADATA_PARTITION
from cotidal.messages.rpc.apis import APIS as KNOWN
from cotidal.node.effects import (
    CloseConnection,
    Fault,
    MeterTime,
    Note,
    PauseReading,
    Read,
    Respond,
    ResumeReading,
    Serve,
    Stop,
)
from cotidal.node.events import ShutdownRequested, Started
from cotidal.values import BrokerEpoch

EXIT_STOPPED: Final = 0
EXIT_FAILED: Final = 1

StartError = (StorageError, ListenerError, MetadataError)
"""What keeps a node from starting; each is one sentence."""


class Running:
    """A node of this process, from its start to its end."""

    def __init__(
        self,
        config: BrokerConfig,
        journal: Journal,
        files: FileSystem | None = None,
        *,
        chaos: bool = False,
        trace: str | None = None,
        witness: str | None = None,
        edge: Edge | None = None,
    ) -> None:
        """Takes the directory, binds the ports and reads the metadata log; StartError if not.

        ``chaos``: its links and disks can be disturbed (``suffer``). ``trace``: the file in which
        its life is recorded. ``witness``: a socket at which it is watched. ``edge``: who stands
        between its sockets and itself.
        """
        loop = asyncio.get_running_loop()
        self.config = config
        self.journal = journal
        self._links = Links(config.node_id, loop) if chaos else None
        self._trace = trace
        self._witness = witness
        self._gallery: Gallery | None = None
        self._edge = edge
        self.counters = Counters()
        self._loop = loop
        self._ended: asyncio.Future[int] = loop.create_future()
        self._serving: asyncio.Future[None] = loop.create_future()
        self._task: asyncio.Task[None] | None = None
        self._sockets: list[tuple[Listener, tuple[socket.socket, ...]]] = []
        kind = FillableFiles if chaos else OsFiles
        self._files = kind(descriptors().files) if files is None else files
        self._held: Held | None = None
        try:
            self._held = open_all(
                self._files, config.log_dirs, config.metadata_dir, node_id=config.node_id
            )
            for listener in config.listeners:
                self._sockets.append(bind(listener, config.socket_buffers))
            self._compose(self._held)
        except BaseException:
            self._let_go()
            raise

    def _compose(self, held: Held) -> None:
        config, loop, journal, counters = self.config, self._loop, self.journal, self.counters
        bound = tuple(listener for listener, _ in self._sockets)
        self.addresses = bound_addresses(config.advertised, bound)
        """Where clients find this node."""
        self.metrics_address: Listener | None = None
        self._metadata = MetadataLog(
            loop,
            self._files,
            config.metadata_dir,
            clean=held.metadata.clean,
            settings={name: config.number(name) for name in _METADATA_SETTINGS},
            post=self._post,
            on_broken=self._on_broken,
            on_fault=self._on_worker_fault,
        )
        for _, reason in held.missing:
            journal.error(f"a log directory is offline: {reason}")
        stored = self._metadata.load()
        for sentence in stored.repaired:
            journal.warning(sentence)
        self._node, machine = make_node(
            node_config(config, held, self.addresses, bound), self._trace, journal
        )
        self._driver = Driver(
            machine, loop, journal=journal, counters=counters, on_fault=self._on_fault
        )
        if self._witness is not None:
            self._gallery = Gallery(
                loop,
                self._witness,
                driver=self._driver,
                machine=machine,
                names=lambda: self._node.topic_names,
                journal=journal,
            )
        self._server = Server(
            loop,
            bounds=server_bounds(config),
            post=self._driver.post if self._edge is None else self._edge.on_event,
            journal=journal,
            counters=counters,
        )
        if self._edge is not None:
            self._edge.attach(self._driver.post, self._server)
        self._disk = Disk(
            loop,
            self._files,
            [LogDir(each.meta.directory_id, each.path, each.clean) for each in held.logs],
            missing=held.missing,
            metadata_path=config.metadata_dir,
            checkpoint_ms=config.number("log.flush.offset.checkpoint.interval.ms"),
            post=self._driver.post,
            on_broken=self._on_broken,
            on_fault=self._on_worker_fault,
            hold=self._server.on_held,
            room=self._server.answer_room,
            journal=journal,
            counters=counters,
        )
        self._peers = Peers(
            loop,
            client_id=f"node-{config.node_id}",
            post=self._driver.post,
            warn=lambda sentence: journal.limited("peers", "warning", sentence),
            counters=counters,
            links=self._links,
        )
        self._driver.obey_with(self._obeys(), self._server.flush, self._peers.flush)
        self._metrics = MetricsEndpoint(
            loop, Answers(scrape=self._node_metrics().scrape, healthy=self._is_serving)
        )
        self._driver.post(
            Started(
                stored.quorum_state,
                stored.batches,
                new_id(),
                wall_millis(),
                held.broker_epoch,
                stored.log_start,
                stored.snapshots,
            )
        )

    def _obeys(self) -> dict[type, Callable[[Any], None]]:
        server = self._server
        by_disk = self._disk.obeys()
        read_partitions, read_metadata = by_disk[Read], self._metadata.read

        def read(effect: Read) -> None:
            if effect.wants[0].partition == METADATA_PARTITION:
                read_metadata(effect)
            else:
                read_partitions(effect)

        return {
            Respond: server.respond if self._edge is None else self._edge.on_reply,
            CloseConnection: server.close_connection,
            PauseReading: server.pause_reading,
            ResumeReading: server.resume_reading,
            MeterTime: self._driver.meter_time,
            **by_disk,
            **self._metadata.obeys(),
            **self._peers.obeys(),
            Read: read,
            Note: self._on_note,
            Fault: self._on_partition_fault,
            Serve: self._on_serve,
            Stop: self._on_stop,
        }

    # Life

    async def start(self) -> None:
        """Until clients are served; or until the node ends, whatever ends it."""
        if self.config.metrics is not None:
            listener, sockets = bind(self.config.metrics)
            self.metrics_address = listener
            await self._metrics.listen(sockets)
        if self._gallery is not None:
            await self._gallery.open()
        await self._listen(controllers=True)
        if "broker" not in self.config.roles and not self._serving.done():
            self._serving.set_result(None)  # no clients to wait for
        await asyncio.wait((self._serving, self._ended), return_when=asyncio.FIRST_COMPLETED)
        if not self._ended.done():
            await self._listen(controllers=False)

    async def _listen(self, *, controllers: bool) -> None:
        for listener, sockets in self._sockets:
            is_controller = listener.name in self.config.controller_listeners
            if is_controller is controllers:
                await self._server.listen(sockets, gate(listener.name, is_controller))

    def request_stop(self) -> None:
        self._post(ShutdownRequested())

    async def stop(self) -> int:
        """In order: what is acknowledged is flushed, the directory is marked clean."""
        if not self._ended.done():
            self.request_stop()
        return await self.wait()

    def kill(self) -> None:
        """As kill -9 would: nothing is flushed, nothing more is sent."""
        self._abandon(-signal.SIGKILL)

    async def wait(self) -> int:
        """The exit code, once the node has ended."""
        code = await asyncio.shield(self._ended)
        if self._task is not None:
            await self._task
        await self._peers.closed()
        return code

    def suffer(self, faults: Faults) -> None:
        """From now on its links and disks are as this says; only where chaos was allowed."""
        assert self._links is not None
        self._links.suffer(faults)
        if isinstance(self._files, FillableFiles):
            self._files.fill([log for node, log in faults.full if node == self.config.node_id])

    # What the node says about itself

    def _post(self, event: Any) -> None:
        self._driver.post(event)

    def _on_note(self, effect: Note) -> None:
        self.journal.say(effect.level, effect.text)

    def _on_partition_fault(self, effect: Fault) -> None:
        self.counters.log_failures += 1
        self.journal.error(effect.where)

    def _on_serve(self, effect: Serve) -> None:
        if not self._serving.done():
            self._serving.set_result(None)

    def _on_stop(self, effect: Stop) -> None:
        if self._task is None:
            self._task = self._loop.create_task(self._stop(effect))

    def _is_serving(self) -> bool:
        return self._serving.done() and self._task is None and not self._ended.done()

    def _node_metrics(self) -> NodeMetrics:
        node = self._node
        return NodeMetrics(
            node_id=self.config.node_id,
            version=__version__,
            counters=self.counters,
            tally=node.tally,
            gauges=self._gauges,
            vitals=lambda: node.vitals(now_millis(), partitions_max=METRICS_PARTITIONS_MAX),
            api_name=lambda key: KNOWN[key].name,
        )

    def _gauges(self) -> Gauges:
        return Gauges(
            partitions=self._disk.partitions,
            log_bytes=self._disk.sizes(),
            parked_requests=self._server.awaiting,
            disk_jobs=self._disk.jobs,
            offline_logs=self._disk.offline_logs,
            offline_directories=self._disk.offline_directories,
            fills=self._fills(),
        )

    def _fills(self) -> dict[str, float]:
        files = self._files
        fills = self._server.fills() | self._peers.fills()
        fills["METRICS_CONNECTIONS_MAX"] = len(self._metrics.open) / METRICS_CONNECTIONS_MAX
        if isinstance(files, OsFiles):
            fills["OPEN_FILES_MAX"] = (files.open_count + files.left) / files.max_open
        resident = memory.resident_bytes()
        if resident is not None:
            fills["NODE_RESIDENT_BYTES_MAX"] = resident / NODE_RESIDENT_BYTES_MAX
        return fills

    # The end

    async def _stop(self, effect: Stop) -> None:
        code = EXIT_STOPPED
        try:
            self._peers.close()
            self._server.close_all()
            clean = list(await self._disk.close())
            self._driver.stop()
            await self._loop.run_in_executor(None, self._metadata.close)
            if self.config.metadata_dir not in self.config.log_dirs:
                clean.append(self.config.metadata_dir)
            if not effect.opened_all:
                clean = []
            for path in clean:
                mark_clean(self._files, path, BrokerEpoch(effect.broker_epoch))
            if not set(self.config.log_dirs) <= set(clean):
                what = "closed" if effect.opened_all else "opened"
                self.journal.warning(f"not all logs were {what}: they are checked at next start")
            self._server.abort_all()  # those who do not take what is left for them
            await asyncio.sleep(0)
        except Exception as error:
            self.journal.error(f"could not stop in order: {error!r}")
            code = EXIT_FAILED
        self._let_go()
        self._end(code)

    def _on_broken(self, sentence: str) -> None:
        self.journal.error(f"{sentence}; this node stops")
        self._abandon(EXIT_FAILED)

    def _on_worker_fault(self, error: Exception) -> None:
        self._driver.fault(error)

    def _on_fault(self) -> None:
        self._abandon(EXIT_FAULT)

    def _abandon(self, code: int) -> None:
        if self._ended.done():
            return
        self._driver.stop()
        self._peers.close()
        self._server.abort_all()
        self._disk.abandon()
        self._metadata.abandon()
        self._let_go()
        self._end(code)

    def _let_go(self) -> None:
        for _, sockets in self._sockets:
            for sock in sockets:
                sock.close()
        if self._held is not None:
            self._held.release()
        if isinstance(self._files, OsFiles):
            self._files.give_up_all()

    def _end(self, code: int) -> None:
        self._metrics.close()
        if self._gallery is not None:
            self._gallery.close()
        if not self._ended.done():
            self._ended.set_result(code)


_METADATA_SETTINGS = ("metadata.log.segment.bytes", "metadata.log.segment.ms")


def server_bounds(config: BrokerConfig) -> Bounds:
    held = config.number("queued.max.request.bytes")
    return Bounds(
        connections_max=min(config.number("max.connections"), descriptors().connections),
        connections_per_address_max=config.number("max.connections.per.ip"),
        address_overrides=dict(config.address_overrides),
        idle_ms=config.number("connections.max.idle.ms"),
        stall_ms=PARTIAL_FRAME_STALL_MS,
        frame_bytes_max=config.number("socket.request.max.bytes"),
        held_bytes_max=held if held > 0 else HELD_BYTES_MAX,
    )


async def serve(
    config: BrokerConfig,
    *,
    journal: Journal | None = None,
    files: FileSystem | None = None,
    faults: Faults | None = None,
    edge: Edge | None = None,
) -> Running:
    """Start a node on this loop; it serves when this returns. StartError if it cannot be.

    ``files``: where its directory is; the operating system's file system unless told otherwise.
    ``faults``: how its links and disks are at first; None: nobody is going to disturb them.
    ``edge``: who stands between its sockets and itself, in tests of clients.
    Nothing process-wide happens: no signal handler, no allocator setting, no logging set up.
    """
    journal = journal or Journal(LibrarySink(f"node {config.node_id}"))
    running = Running(config, journal, files, chaos=faults is not None, edge=edge)
    if faults is not None:
        running.suffer(faults)
    await running.start()
    return running


# The process ----------------------------------------------------------------------------------


def run_broker(
    config: BrokerConfig,
    *,
    on_serving: Callable[[Running], None] | None = None,
    leash: int | None = None,
    faults: str | None = None,
    trace: str | None = None,
    witness: str | None = None,
) -> int:
    """Run one node in the foreground until it is told to stop; the exit code.

    ``leash``: a pipe of whoever started it. When its other end is gone, the node stops too.
    ``faults``: a file that says how its links and disks are (faults.py), read again on SIGUSR2.
    ``trace``: a file in which its life is recorded (tracing.py).
    ``witness``: a socket at which others on this machine see what it does (witness.py).
    """
    journal = Journal(stream_sink(f"node {config.node_id}"))
    for warning in config.warnings:
        journal.warning(warning)
    memory.tune_allocator()
    raise_limit(journal)
    loop = new_loop()
    try:
        running = partial(
            Running, config, journal, chaos=faults is not None, trace=trace, witness=witness
        )
        return loop.run_until_complete(_run(running, on_serving, leash, faults))
    except StartError as error:
        journal.error(str(error))
        return EXIT_FAILED
    finally:
        loop.close()


async def _run(
    make: Callable[[], Running],
    on_serving: Callable[[Running], None] | None,
    leash: int | None,
    faults: str | None,
) -> int:
    running = make()
    config, journal = running.config, running.journal
    loop = asyncio.get_running_loop()
    if faults is not None:
        loop.add_signal_handler(signal.SIGUSR2, _on_faults, running, faults)
        _on_faults(running, faults)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_signal, running)
    if leash is not None:
        loop.add_reader(leash, _on_leash_gone, running, leash)
    await running.start()
    if running._is_serving():
        told = running.addresses or config.listeners  # a controller has no address for clients
        where = ", ".join(f"{bracketed(each.host)}:{each.port}" for each in told)
        journal.info(
            f"node {config.node_id} serving on {where}"
            f" (data in {', '.join(config.log_dirs)}, {_seconds_since_start():.2f} s)"
        )
        if on_serving is not None:
            on_serving(running)
        memory.tune_collector()
        memory.GiveBack(loop, running.counters)
    return await running.wait()


def _on_signal(running: Running) -> None:
    running.request_stop()


def _on_faults(running: Running, path: str) -> None:
    try:
        with open(path, encoding="utf-8") as file:
            running.suffer(read_faults(file.read()))
    except FileNotFoundError:
        running.suffer(NO_FAULTS)
    except ValueError as wrong:
        running.journal.warning(f"{path} is passed over: {wrong}")


def _on_leash_gone(running: Running, leash: int) -> None:
    asyncio.get_running_loop().remove_reader(leash)
    running.journal.warning("the process that started this node is gone; it stops")
    running.request_stop()


def new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # not made for this platform
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _seconds_since_start() -> float:
    """Of this process, Python's own start included where the system tells."""
    try:
        with open("/proc/self/stat", encoding="ascii") as stat:
            ticks = int(stat.read().rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return time.process_time()
