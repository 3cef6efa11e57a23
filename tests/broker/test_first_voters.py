"""Who votes at first: read from a command line, written to the disk, found by the node."""

from __future__ import annotations

import pytest

from cotidal.broker.config import make_config
from cotidal.broker.first_voters import directory_of, parse_voters, standalone
from cotidal.broker.storage import format_storage
from cotidal.log.contract import LogConfig
from cotidal.log.memory import MemoryFiles
from cotidal.log.metadata_store import MetadataStore
from cotidal.messages.records.quorum import KRaftVersionRecord, VotersRecord
from cotidal.values import ZERO_UUID, NodeId, Uuid, WallMillis, uuid_text

ONE, TWO = Uuid(b"1" * 16), Uuid(b"2" * 16)
TEXT = f"2@[::1]:9094:{uuid_text(TWO)}, 1@c1:9093:{uuid_text(ONE)}"


def test_voters_are_read_in_the_order_of_their_ids():
    first, second = parse_voters(TEXT, "CONTROLLER")
    assert (first.voter_id, first.voter_directory_id) == (1, ONE)
    assert first.endpoints == (("CONTROLLER", "c1", 9093),)
    assert (second.voter_id, second.endpoints[0].host) == (2, "::1")
    assert first.kraft_version_feature == (0, 1)
    assert directory_of((first, second), NodeId(2)) == TWO


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1@c1:9093", "not of the form"),
        (f"x@c1:9093:{uuid_text(ONE)}", "not of the form"),
        (f"1@c1:0:{uuid_text(ONE)}", "not of the form"),
        ("1@c1:9093:short", "not a uuid"),
        (f"{TEXT},2@c2:9093:{uuid_text(ONE)}", "node 2 stands there twice"),
    ],
)
def test_a_mistake_is_told(text, words):
    with pytest.raises(ValueError, match=words):
        parse_voters(text, "CONTROLLER")


def test_a_node_that_is_not_among_them_is_told():
    with pytest.raises(ValueError, match="node 3 is not among the first voters"):
        directory_of(parse_voters(TEXT, "CONTROLLER"), NodeId(3))


def config(listeners="PLAINTEXT://:9092,CONTROLLER://:9093", **more):
    values = {
        "node.id": "1",
        "process.roles": "broker,controller",
        "listeners": listeners,
        "controller.quorum.bootstrap.servers": "c1:9093,[::1]:9094",
    }
    return make_config(values | {name.replace("_", "."): value for name, value in more.items()})


def test_the_only_voter_is_found_where_it_listens():
    (voter,) = standalone(config())
    assert (voter.voter_id, voter.voter_directory_id) == (1, ZERO_UUID)
    assert voter.endpoints == (("CONTROLLER", "localhost", 9093),)


def test_a_voter_without_a_port_of_its_own_or_without_the_role_is_told():
    with pytest.raises(ValueError, match="needs a port of its own"):
        standalone(config("PLAINTEXT://:9092,CONTROLLER://:0"))
    with pytest.raises(ValueError, match=r"only a node with process\.roles=controller"):
        standalone(config("PLAINTEXT://:9092", process_roles="broker"))


def test_formatting_leaves_the_checkpoint_that_says_who_votes():
    files = MemoryFiles()
    meta = format_storage(files, "/data", node_id=NodeId(1), voters=standalone(config()))
    files.crash(lambda n: 0)
    store = MetadataStore(files, "/data", LogConfig(), clean=False, now_wall=WallMillis(1))
    (found,) = store.load_snapshots().snapshots
    assert found.key == (0, 0)
    records = found.batches[0].records
    assert KRaftVersionRecord(0, 1) in records
    (said,) = [record for record in records if isinstance(record, VotersRecord)]
    assert said.voters[0].voter_directory_id == meta.directory_id


def test_a_directory_id_that_others_know_already_is_kept():
    files = MemoryFiles()
    meta = format_storage(files, "/data", node_id=NodeId(1), directory_id=ONE)
    assert meta.directory_id == ONE
