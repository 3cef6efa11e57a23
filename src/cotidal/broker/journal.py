"""What a node says about itself: one sentence a line.

On a terminal a line reads ``12:04:31.207 node 1  warning: sentence``; elsewhere each line is one
JSON object, so that a collector needs no pattern. A node inside somebody's test run speaks through
the standard ``logging`` package instead, which that person has configured, or not.

A sentence that a hostile peer can provoke goes through ``limited``: a few a minute for each kind,
then silence, then how many were left out. Nothing here is process-wide.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Final, Protocol, TextIO

from cotidal.limits import JOURNAL_SENTENCES_PER_MINUTE

LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class Sink(Protocol):
    def write(self, level: str, text: str) -> None: ...


class Journal:
    """Where sentences go. Also counts what it was told to leave out."""

    __slots__ = ("_counts", "_least", "_minute", "_sink")

    def __init__(self, sink: Sink, least: str = "info") -> None:
        self._sink = sink
        self._least = LEVELS[least]
        self._counts: dict[str, int] = {}
        self._minute = 0

    def debug(self, text: str) -> None:
        self.say("debug", text)

    def info(self, text: str) -> None:
        self.say("info", text)

    def warning(self, text: str) -> None:
        self.say("warning", text)

    def error(self, text: str) -> None:
        self.say("error", text)

    def say(self, level: str, text: str) -> None:
        if LEVELS.get(level, 20) >= self._least:
            self._sink.write(level, text)

    def limited(self, kind: str, level: str, text: str) -> None:
        """Say it, unless this kind of sentence was already said often enough in this minute."""
        minute = int(time.monotonic()) // 60
        if minute != self._minute:
            self._minute = minute
            for earlier, count in self._counts.items():
                if count > JOURNAL_SENTENCES_PER_MINUTE:
                    more = count - JOURNAL_SENTENCES_PER_MINUTE
                    self.say(level, f"{more} more sentences about '{earlier}' were left out")
            self._counts.clear()
        count = self._counts.get(kind, 0) + 1
        self._counts[kind] = count
        if count <= JOURNAL_SENTENCES_PER_MINUTE:
            self.say(level, text)


class TerminalSink:
    __slots__ = ("_name", "_stream")

    def __init__(self, name: str, stream: TextIO) -> None:
        self._name = name
        self._stream = stream

    def write(self, level: str, text: str) -> None:
        now = time.time()
        clock = time.strftime("%H:%M:%S", time.localtime(now))
        mark = "" if level == "info" else f"{level}: "
        _emit(self._stream, f"{clock}.{int(now * 1000) % 1000:03d} {self._name}  {mark}{text}\n")


class JsonSink:
    __slots__ = ("_name", "_stream")

    def __init__(self, name: str, stream: TextIO) -> None:
        self._name = name
        self._stream = stream

    def write(self, level: str, text: str) -> None:
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
        line = {
            "time": f"{stamp}.{int(now * 1000) % 1000:03d}Z",
            "level": level,
            "node": self._name,
            "text": text,
        }
        _emit(self._stream, json.dumps(line, ensure_ascii=False) + "\n")


class LibrarySink:
    """Speaks through ``logging.getLogger("cotidal")``: for a node inside another program."""

    __slots__ = ("_logger", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._logger = logging.getLogger("cotidal")

    def write(self, level: str, text: str) -> None:
        self._logger.log(LEVELS.get(level, 20), "%s: %s", self._name, text)


def stream_sink(name: str, stream: TextIO | None = None) -> Sink:
    stream = stream or sys.stderr
    return TerminalSink(name, stream) if stream.isatty() else JsonSink(name, stream)


def _emit(stream: TextIO, line: str) -> None:
    try:
        stream.write(line)
        stream.flush()
    except (OSError, ValueError):  # whoever read our sentences has gone: serve on without them
        pass
