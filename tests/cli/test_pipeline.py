"""``cotidal pipeline``: what it says before Spark is started, and what it makes of a report."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotidal.cli.main import run
from cotidal.cli.pipeline import spark_session, tell
from cotidal.cli.verb import Failed
from cotidal.spark.audit.findings import Finding, Kind
from cotidal.testing.cluster import Cluster

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def bootstrap() -> object:
    with Cluster(1) as cluster:
        yield cluster.bootstrap


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (("audit", "--topic", "nowhere"), 1, "topic 'nowhere' does not exist"),
        (("audit", "--data", "nowhere"), 1, "there is no directory nowhere"),
        (("health",), 1, "set cotidal.events.enable=true"),
        (("health", "--follow"), 2, "--follow needs --out"),
        (("health", "--publish"), 2, "--publish goes with --follow"),
        (("archive", "--out", "x"), 2, "name a topic, or --merge"),
        (("archive", "nowhere", "--out", "x"), 1, "topic 'nowhere' does not exist"),
        (("restore", "nowhere", "--from", "x"), 1, "topic 'nowhere' does not exist"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(
    bootstrap: str,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    status: int,
    sentence: str,
) -> None:
    assert run(["pipeline", "run", *arguments, "--bootstrap", bootstrap]) == status
    assert sentence in capsys.readouterr().err


def test_a_machine_without_java_is_told_how_to_get_it(
    bootstrap: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert run(["pipeline", "run", "audit", "--bootstrap", bootstrap]) == 1
    told = capsys.readouterr().err
    assert "Spark needs Java 17 or newer" in told
    assert len(told.splitlines()) == 1


def test_a_report_names_partitions_brokers_and_its_verdict(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from cotidal.spark.audit.job import Report, Total

    total = Total("orders", 0, 3, 1_200, 4_096, 1_200)
    tell(Report((total,), (), 0))
    told = capsys.readouterr().out
    assert "orders-0" in told
    assert "agreed: 1,200 records" in told
    finding = Finding(Kind.DAMAGED, "orders", 0, 2, 60, 1, "the log is damaged at offset 60")
    tell(Report((total,), (finding,), 0))
    told = capsys.readouterr().out
    assert "orders-0, broker 2: the log is damaged at offset 60" in told
    assert "agreed" not in told


def test_what_a_source_says_reaches_the_command_line_without_its_stack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pyspark.errors import PySparkException

    from cotidal.spark import session

    class Session:
        stopped = False

        def stop(self) -> None:
            self.stopped = True

    started = Session()
    monkeypatch.setattr(session, "start", lambda name, master: started)
    text = (
        "[PYTHON_DATA_SOURCE_ERROR] Traceback (most recent call last):\n  File x, line 1\n"
        "cotidal.spark.failures.DataLost: offsets 0 to 3 of orders-0 are lost\n\nJVM stack"
    )
    with (
        pytest.raises(Failed, match=r"^offsets 0 to 3 of orders-0 are lost$"),
        spark_session("test", "local[1]"),
    ):
        raise PySparkException(text)
    assert started.stopped
    with pytest.raises(PySparkException, match="other"), spark_session("test", "local[1]"):
        raise PySparkException("other")
