"""Several nodes on one machine: processes forked from one parent that only watches them.

The parent imports everything once and then forks, so that the nodes share the memory of all code.
It runs no loop and no thread: it can fork again at any time.

    SIGTERM, SIGINT   every node is stopped in order, then the parent ends
    SIGUSR1           nodes that have ended are started again
    start K           in the control pipe: node K is, if it has ended
    a node ends       it is said; the others go on. Before all of them serve: all are stopped

What others need to act on the nodes is in files beside their data (control.py). A node whose
parent is gone (the pipe between them ends) stops in order. Nodes are process groups of their own:
Ctrl-C in a terminal reaches the parent only, which decides.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Final, NamedTuple

from cotidal.api.registry import APIS, INTERNAL, OURS, QUORUM, handler, refusals
from cotidal.broker.child import fork
from cotidal.broker.config import BrokerConfig
from cotidal.broker.control import CONTROL_PIPE, FAULTS_FILE, PID_FILE, UP_FILE, Up
from cotidal.broker.main import EXIT_FAILED, EXIT_STOPPED, run_broker
from cotidal.broker.tracing import trace_file
from cotidal.broker.witness import WITNESS_SOCKET
from cotidal.messages.rpc.apis import APIS as KNOWN
from cotidal.values import NodeId
from cotidal.wire.codec import module_codecs

_HEARD: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGUSR1)


class Child(NamedTuple):
    config: BrokerConfig
    pid: int


class Pipe(NamedTuple):
    read: int
    write: int


class Family:
    def __init__(
        self,
        configs: Sequence[BrokerConfig],
        *,
        home: str,
        chaos: bool = False,
        trace: str | None = None,
        on_up: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        """``home``: the directory of them all. ``chaos``: their links and disks can be disturbed.
        ``trace``: a directory for a recording of every life of every node.
        ``on_up``: all nodes serve, for the first time. ``say``: a sentence for the user."""
        self._home = home
        self._chaos = chaos
        self._trace = trace
        self._starts = {config.node_id: 0 for config in configs}
        self._configs = {config.node_id: config for config in configs}
        self._on_up = on_up
        self._say = say
        self._running: dict[NodeId, Child] = {}
        self._serving: set[NodeId] = set()
        self._is_up = False
        self._is_stopping = False
        self._worst = EXIT_STOPPED

    def run(self) -> int:
        """Until every node has ended; the exit code."""
        _import_everything()
        with ExitStack() as undo, selectors.DefaultSelector() as selector:
            self._leash = _pipe(undo)
            """Its writing end closes with the parent, whatever ends it."""
            self._news = _pipe(undo)
            """On which a node says its process id when it serves."""
            self._signals = _pipe(undo)
            os.set_blocking(self._signals.write, False)
            self._control = _control_pipe(f"{self._home}/{CONTROL_PIPE}", undo)
            for name in (UP_FILE, FAULTS_FILE):
                _unlink(f"{self._home}/{name}")  # of a parent that was killed
                undo.callback(_unlink, f"{self._home}/{name}")
            before = {number: signal.signal(number, _heard) for number in _HEARD}
            if self._chaos:  # until a node hears it, it must not die of it
                before[signal.SIGUSR2] = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
            woken = signal.set_wakeup_fd(self._signals.write)
            undo.callback(_restore, before, woken)
            selector.register(self._signals.read, selectors.EVENT_READ, self._on_signals)
            selector.register(self._news.read, selectors.EVENT_READ, self._on_news)
            selector.register(self._control, selectors.EVENT_READ, self._on_control)
            for node_id in self._configs:
                self._start(node_id)
            while self._running:
                for key, _ in selector.select():
                    key.data()
        return self._worst

    # What happens

    def _on_signals(self) -> None:
        for number in os.read(self._signals.read, 4096):
            if number in (signal.SIGTERM, signal.SIGINT):
                self._stop()
            elif number == signal.SIGUSR1:
                for node_id in self._configs:
                    self._start_again(node_id)
        self._reap()

    def _on_control(self) -> None:
        for line in os.read(self._control, 4096).decode(errors="replace").splitlines():
            match line.split():
                case ["start", number] if number.isdecimal():
                    self._start_again(NodeId(int(number)))
                case _:
                    self._say(f"'{line}' in the control pipe is not understood")

    def _on_news(self) -> None:
        serving = {int(pid) for pid in os.read(self._news.read, 4096).split()}
        for (
            node_id,
            child,
        ) in self._running.items():  # whoever has ended meanwhile is not among them
            if child.pid in serving:
                self._serving.add(node_id)
        if not self._is_up and len(self._serving) == len(self._configs):
            self._is_up = True
            self._tell_others()
            self._on_up()
        else:
            self._tell_others()

    def _tell_others(self) -> None:
        """Once all have served."""
        if self._is_up:
            where = {
                node: (config.advertised or config.listeners)[0]
                for node, config in self._configs.items()
            }
            nodes = {int(node): (each.host, each.port) for node, each in where.items()}
            Up(os.getpid(), nodes, self._chaos, tuple(self._serving)).write(self._home)

    def _reap(self) -> None:
        for node_id, child in list(self._running.items()):
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                del self._running[node_id]
                self._serving.discard(node_id)
                self._tell_others()
                _unlink(_pid_file(child.config))
                self._on_ended(node_id, os.waitstatus_to_exitcode(status))

    def _on_ended(self, node_id: NodeId, code: int) -> None:
        how = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
        if self._is_stopping:
            if code not in (EXIT_STOPPED, -signal.SIGTERM):  # the latter: before it could hear it
                self._say(f"node {node_id} {how}")
                self._worst = self._worst or EXIT_FAILED
        elif not self._is_up:
            self._say(f"node {node_id} {how} before the cluster was up; all nodes stop")
            self._worst = code if code > 0 else EXIT_FAILED
            self._stop()
        elif self._running:
            self._say(f"node {node_id} {how}; the others go on")
        else:
            self._say(f"node {node_id} {how}; no node is left")
            self._worst = EXIT_FAILED

    # What is done

    def _stop(self) -> None:
        self._is_stopping = True
        for child in self._running.values():
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGTERM)

    def _start_again(self, node_id: NodeId) -> None:
        ended = node_id in self._configs and node_id not in self._running
        if ended and self._is_up and not self._is_stopping:
            self._say(f"node {node_id} is started again")
            self._start(node_id)

    def _start(self, node_id: NodeId) -> None:
        config = self._configs[node_id]
        self._starts[node_id] += 1
        pid = fork(lambda: self._be(config))
        self._running[node_id] = Child(config, pid)
        with suppress(OSError), open(_pid_file(config), "w", encoding="ascii") as file:
            file.write(f"{pid}\n")

    def _be(self, config: BrokerConfig) -> int:
        """In the child."""
        signal.set_wakeup_fd(-1)
        for number in _HEARD:
            signal.signal(number, signal.SIG_DFL)
        for unused in (self._leash.write, self._news.read, *self._signals, self._control):
            os.close(unused)
        news = f"{os.getpid()}\n".encode()
        return run_broker(
            config,
            on_serving=lambda _: _tell(self._news.write, news),
            leash=self._leash.read,
            faults=f"{self._home}/{FAULTS_FILE}" if self._chaos else None,
            trace=trace_file(self._trace, config.node_id, self._starts[config.node_id]),
            witness=f"{config.log_dirs[0]}/{WITNESS_SOCKET}",
        )


def _import_everything() -> None:
    """Whatever a node would import later is shared when the parent has it already."""
    with suppress(ImportError):
        import uvloop  # noqa: F401
    for key in (*APIS, *INTERNAL, *OURS):
        handler(key)
    refusals()
    for key in (*APIS, *INTERNAL, *OURS, *QUORUM):
        module_codecs("rpc", KNOWN[key].module)
    for name in ("metadata", "quorum"):
        module_codecs("records", name)
    gc.collect()
    gc.freeze()  # a child's collector leaves these pages alone


def _pipe(undo: ExitStack) -> Pipe:
    pipe = Pipe(*os.pipe())
    undo.callback(os.close, pipe.read)
    undo.callback(os.close, pipe.write)
    return pipe


def _control_pipe(path: str, undo: ExitStack) -> int:
    """Open at both ends, so that it never ends; others write to it by its name."""
    _unlink(path)
    os.mkfifo(path, 0o600)
    undo.callback(_unlink, path)
    descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    undo.callback(os.close, descriptor)
    return descriptor


def _unlink(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


def _heard(number: int, frame: object) -> None:
    """What is done about a signal is done when its number comes out of the pipe."""


def _restore(before: Mapping[signal.Signals, object], woken: int) -> None:
    signal.set_wakeup_fd(woken)
    for number, handled in before.items():
        signal.signal(number, handled)  # type: ignore[arg-type]


def _tell(pipe: int, news: bytes) -> None:
    with suppress(OSError):  # the parent is gone: the leash will tell
        os.write(pipe, news)


def _pid_file(config: BrokerConfig) -> str:
    return f"{config.log_dirs[0]}/{PID_FILE}"
