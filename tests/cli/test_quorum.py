"""``cotidal quorum`` and what ``cotidal format`` says of voters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cotidal.values import uuid_text

CONTROLLER = """
node.id=1
process.roles=broker,controller
listeners=PLAINTEXT://localhost:0,CONTROLLER://localhost:19093
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=localhost:19093
log.dirs={data}
"""
ID = uuid_text(b"1" * 16)
CHECKPOINT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "c1.properties"
    path.write_text(CONTROLLER.format(data=tmp_path / "data"))
    return path


def test_describe_is_what_no_verb_is(cotidal: Any) -> None:
    by_verb = json.loads(cotidal("quorum", "describe", "--json").out)
    without = json.loads(cotidal("quorum", "--json").out)
    assert by_verb["voters"][0]["node"] == without["voters"][0]["node"] == 1
    assert "DIRECTORY" in cotidal("quorum").out


def test_fixed_voters_are_not_changed(cotidal: Any) -> None:
    outcome = cotidal("quorum", "remove-voter", "1")
    assert outcome.status == 1
    assert "the voters are static" in outcome.err
    outcome = cotidal("quorum", "remove-voter", "7")
    assert (outcome.status, "node 7 is not among them (1)" in outcome.err) == (1, True)


def test_a_voter_is_named_by_its_file_or_by_its_address(offline: Any) -> None:
    assert offline("quorum", "add-voter").status == 2
    assert offline("quorum", "add-voter", "2").status == 2
    assert offline("quorum", "add-voter", "2", "c2:9093", "--config", "x").status == 2


def test_formatting_a_first_controller_leaves_its_vote(offline: Any, config: Path) -> None:
    outcome = offline("format", "--config", str(config), "--standalone")
    assert outcome.status == 0
    assert (config.parent / "data" / CHECKPOINT).exists()


def test_the_first_controllers_agree_on_their_directories(offline: Any, config: Path) -> None:
    voters = f"1@localhost:19093:{ID},2@localhost:19094:{uuid_text(b'2' * 16)}"
    outcome = offline("format", "--config", str(config), "--initial-controllers", voters)
    assert outcome.status == 0
    assert f"directory.id={ID}" in (config.parent / "data/meta.properties").read_text()
    assert (config.parent / "data" / CHECKPOINT).exists()


def test_a_later_controller_is_formatted_without_a_vote(offline: Any, config: Path) -> None:
    assert offline("format", "--config", str(config), "--no-initial-controllers").status == 0
    assert not (config.parent / "data" / CHECKPOINT).exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--standalone", "--no-initial-controllers"), "choose one of"),
        (("--initial-controllers", f"2@localhost:19094:{ID}"), "node 1 is not among"),
        (("--initial-controllers", "1@localhost"), "not of the form"),
    ],
)
def test_a_mistake_leaves_nothing_behind(
    offline: Any, config: Path, more: tuple[str, ...], words: str
) -> None:
    outcome = offline("format", "--config", str(config), *more)
    assert (outcome.status, words in outcome.err) == (2, True)
    assert not (config.parent / "data").exists()


def test_who_votes_depends_on_a_file(offline: Any, tmp_path: Path) -> None:
    outcome = offline("format", "--data", str(tmp_path / "d"), "--standalone")
    assert (outcome.status, "give --config" in outcome.err) == (2, True)


def test_the_metadata_log_is_told_from_its_files(offline: Any, tmp_path: Path) -> None:
    from cotidal.log.contract import LogConfig
    from cotidal.log.files import OsFiles
    from cotidal.log.metadata_snapshots import SnapshotKey
    from cotidal.log.metadata_store import MetadataStore
    from cotidal.messages.records.metadata import ConfigRecord, TopicRecord
    from cotidal.values import LeaderEpoch, Offset, Uuid, WallMillis
    from cotidal.wire.metadata_batch import encode_metadata_batch
    from cotidal.wire.metadata_snapshot import encode_metadata_snapshot

    now, epoch = WallMillis(1_700_000_000_000), LeaderEpoch(3)
    store = MetadataStore(OsFiles(), str(tmp_path), LogConfig(), clean=False, now_wall=now)
    records = [TopicRecord("orders", Uuid(b"t" * 16)), ConfigRecord(2, "orders", "x", "1")]
    for offset, record in enumerate(records):
        batch = encode_metadata_batch(
            [record], base_offset=Offset(offset), leader_epoch=epoch, control=False, wall=now
        )
        store.append(batch, epoch, now)
        if offset == 0:
            summed = encode_metadata_snapshot(
                [record], control=(), epoch=epoch, log_wall=now, wall=now
            )
            store.snapshots.begin(SnapshotKey(Offset(1), epoch), summed)
            store.finish_snapshot(SnapshotKey(Offset(1), epoch), now)
    lines = offline("quorum", "log", str(tmp_path)).out.splitlines()
    assert [line.split()[0] for line in lines] == ["0@3", "1@3"]
    assert "orders" in lines[0]
    store.clean(Offset(1), now)
    store.close()
    (line,) = offline("quorum", "log", str(tmp_path), "--json").out.splitlines()
    assert json.loads(line)["offset"] == 1
    assert offline("quorum", "log", str(tmp_path), "--from", "2").out == ""
    (tmp_path / "__cluster_metadata-0" / "00000000000000000001-0000000003.checkpoint").unlink()
    outcome = offline("quorum", "log", str(tmp_path))
    assert (outcome.status, "no snapshot reaches that far" in outcome.err) == (1, True)
    assert offline("quorum", "log", str(tmp_path / "nowhere")).status == 1
