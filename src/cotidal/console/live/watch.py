"""One thread that looks at a cluster while any page is open, and remembers what it saw.

Pages never ask the cluster for their picture: all of them get what this thread saw last, however
many there are. What it gives is only ever replaced or added to, never changed, so that pages read
it without a lock.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Sequence
from typing import Final, NamedTuple

from cotidal.client.admin import Quorum, describe_quorum
from cotidal.client.cluster import Cluster
from cotidal.client.failures import ClientError
from cotidal.client.status import Sizes, Status, gather
from cotidal.console.live.sight import Seen, picture_of, silent_picture
from cotidal.console.world import Json
from cotidal.limits import (
    LIVE_FRAMES_MAX,
    LIVE_LOG_MAX,
    LIVE_POLL_MS,
    LIVE_POLL_SHARE,
    LIVE_UNWATCHED_MS,
)
from cotidal.values import NodeId

ANSWER_TIMEOUT_S: Final = 2.0
"""A broker that hangs must not make the picture of the others old."""
CONNECT_TIMEOUT_S: Final = 1.0
SIZES_EVERY_S: Final = 10.0
SILENT_AGAIN_S: Final = 3.0
"""So long after it did not answer, a broker is asked again."""


class Frame(NamedTuple):
    """The cluster as it was seen at a moment."""

    at_us: int
    picture: Json


class Watch:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.begun_us = _wall_us()
        """Moments are told from here on."""
        self.status: Status | None = None
        self.frames: Sequence[Frame] = ()
        self.logs: dict[str, list[Json]] = {"told": [], "metadata": [], "throughput": []}
        self.forgotten = 0
        """How often the oldest of the logs was let go."""
        self._looked_at = 0.0
        self._wanted = threading.Event()
        self._first = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._sizes: Sizes = {}
        self._sizes_at = 0.0
        self._silent: dict[NodeId, tuple[float, str]] = {}
        """Who did not answer: when, and why."""

    # What pages do

    def look(self) -> None:
        """A page is open: go on, or begin."""
        self._looked_at = time.monotonic()
        self._wanted.set()
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
                self._thread.start()

    def wait(self, timeout_s: float) -> None:
        """Until something was seen for the first time."""
        self._first.wait(timeout_s)

    @property
    def now_us(self) -> int:
        return _wall_us() - self.begun_us

    # What the thread does

    def _run(self) -> None:
        with Cluster(
            self._bootstrap, timeout_s=ANSWER_TIMEOUT_S, connect_timeout_s=CONNECT_TIMEOUT_S
        ) as cluster:
            while True:
                if time.monotonic() - self._looked_at > LIVE_UNWATCHED_MS / 1000:
                    cluster.close()
                    self._wanted.clear()
                self._wanted.wait()
                begun = time.monotonic()
                try:
                    self._see(cluster)
                except Exception:  # a bug of ours must not leave pages with an old picture
                    traceback.print_exc(file=sys.stderr)
                self._first.set()
                spent = time.monotonic() - begun
                time.sleep(max(LIVE_POLL_MS / 1000, spent * LIVE_POLL_SHARE))

    def _see(self, cluster: Cluster) -> None:
        before = self.frames[-1].picture if self.frames else {}
        try:
            seen = self._gathered(cluster)
        except ClientError as failure:
            picture = silent_picture(before, str(failure))
        else:
            picture = picture_of(seen, before)
            self.status = seen.status
        self._keep(Frame(self.now_us, picture))

    def _gathered(self, cluster: Cluster) -> Seen:
        now = time.monotonic()
        recently = {
            node: why for node, (at, why) in self._silent.items() if now - at < SILENT_AGAIN_S
        }
        is_stale = now - self._sizes_at > SIZES_EVERY_S
        status = gather(
            cluster, internal=True, passed_over=recently, sizes=None if is_stale else self._sizes
        )
        if is_stale:
            self._sizes, self._sizes_at = status.sizes, now
        self._silent = {
            node: self._silent[node] if node in recently else (time.monotonic(), why)
            for node, why in status.scene.silent.items()
        }
        return Seen(status, self._quorum(cluster), {}, {})

    def _quorum(self, cluster: Cluster) -> Quorum | None:
        try:
            return describe_quorum(cluster)
        except ClientError:
            return None

    def _keep(self, frame: Frame) -> None:
        self.frames = (*self.frames[-LIVE_FRAMES_MAX + 1 :], frame)

    def _add(self, name: str, items: Sequence[Json]) -> None:
        """Pages that have more than is left get it all again."""
        log = self.logs[name]
        log.extend(items)
        if len(log) > LIVE_LOG_MAX:
            self.logs[name] = log[-LIVE_LOG_MAX // 2 :]
            self.forgotten += 1


def _wall_us() -> int:
    return time.time_ns() // 1000
