"""One sentence a line, for people or for machines; and not too many."""

from __future__ import annotations

import io
import json
import logging

import pytest

from cotidal.broker.journal import Journal, JsonSink, LibrarySink, TerminalSink, stream_sink


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Lines:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def write(self, level: str, text: str) -> None:
        self.texts.append(text)


def test_a_terminal_gets_a_line_that_reads_well() -> None:
    stream = Terminal()
    journal = Journal(stream_sink("node 1", stream))
    journal.info("all is well")
    journal.warning("look here")
    first, second = stream.getvalue().splitlines()
    assert first[12:] == " node 1  all is well"
    assert second[12:] == " node 1  warning: look here"


def test_elsewhere_each_line_is_one_json_object() -> None:
    stream = io.StringIO()
    Journal(stream_sink("node 1", stream)).error("bröken\nin two lines")
    line = json.loads(stream.getvalue())
    assert (line["level"], line["node"], line["text"]) == (
        "error",
        "node 1",
        "bröken\nin two lines",
    )
    assert stream.getvalue().count("\n") == 1


def test_a_node_in_another_program_speaks_through_its_logging(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, logger="cotidal"):
        Journal(LibrarySink("node 3")).warning("hello")
    assert caplog.record_tuples == [("cotidal", logging.WARNING, "node 3: hello")]


def test_debug_sentences_are_kept_to_oneself_unless_asked_for() -> None:
    lines = Lines()
    Journal(lines).debug("quiet")
    Journal(lines, "debug").debug("loud")
    assert lines.texts == ["loud"]


def test_what_a_peer_can_provoke_is_rationed_and_the_rest_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [60.0]
    monkeypatch.setattr("cotidal.broker.journal.time.monotonic", lambda: now[0])
    lines = Lines()
    journal = Journal(lines)
    for _ in range(100):
        journal.limited("bad bytes", "warning", "bad bytes came")
    assert lines.texts == ["bad bytes came"] * 5
    now[0] = 120.0
    journal.limited("other", "warning", "another kind")
    assert lines.texts[5:] == ["95 more sentences about 'bad bytes' were left out", "another kind"]


@pytest.mark.parametrize("sink", [TerminalSink, JsonSink])
def test_a_reader_that_went_away_does_not_stop_the_node(sink: type[TerminalSink]) -> None:
    stream = io.StringIO()
    stream.close()
    Journal(sink("node 1", stream)).info("nobody hears")
