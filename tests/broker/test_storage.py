"""A data directory belongs to one node of one cluster, and to one process at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotidal.broker.storage import (
    StorageError,
    format_storage,
    mark_clean,
    open_storage,
    read_meta,
)
from cotidal.log.files import OsFiles
from cotidal.values import BrokerEpoch, NodeId, uuid_from_text

ONE = NodeId(1)


def test_a_formatted_directory_is_known_again(tmp_path: Path) -> None:
    files = OsFiles()
    path = str(tmp_path / "new" / "data")
    made = format_storage(files, path, node_id=ONE)
    storage = open_storage(files, path, node_id=ONE)
    assert storage.meta == made
    assert not storage.clean
    uuid_from_text(made.cluster_id)
    storage.lock.release()


def test_formatting_twice_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    files = OsFiles()
    made = format_storage(files, str(tmp_path), node_id=ONE)
    with pytest.raises(StorageError, match="formatted already, for node 1 of cluster"):
        format_storage(files, str(tmp_path), node_id=NodeId(2))
    assert read_meta(files, str(tmp_path)) == made


@pytest.mark.parametrize("wrong", ["x", "AAAAAAAAAAAAAAAAAAAAAAAAAAAA"])
def test_a_cluster_id_that_is_none_is_refused(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(StorageError, match="is not a uuid"):
        format_storage(OsFiles(), str(tmp_path), node_id=ONE, cluster_id=wrong)


def test_a_directory_that_was_not_formatted_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="run `cotidal format`"):
        open_storage(OsFiles(), str(tmp_path), node_id=ONE)


def test_another_nodes_directory_is_refused(tmp_path: Path) -> None:
    files = OsFiles()
    format_storage(files, str(tmp_path), node_id=ONE)
    with pytest.raises(StorageError, match=r"belongs to node 1, but node\.id is 2"):
        open_storage(files, str(tmp_path), node_id=NodeId(2))


def test_a_second_process_is_kept_out_until_the_first_lets_go(tmp_path: Path) -> None:
    files = OsFiles()
    format_storage(files, str(tmp_path), node_id=ONE)
    first = open_storage(files, str(tmp_path), node_id=ONE)
    with pytest.raises(StorageError, match="in use by another process"):
        open_storage(OsFiles(), str(tmp_path), node_id=ONE)
    first.lock.release()
    open_storage(files, str(tmp_path), node_id=ONE).lock.release()


def test_the_mark_of_a_clean_stop_counts_once(tmp_path: Path) -> None:
    files = OsFiles()
    path = str(tmp_path)
    format_storage(files, path, node_id=ONE)
    mark_clean(files, path, BrokerEpoch(7))
    for clean in (True, False):
        storage = open_storage(files, path, node_id=ONE)
        assert storage.clean is clean
        storage.lock.release()


def test_a_damaged_meta_properties_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_bytes(b"\xff\x00")
    with pytest.raises(StorageError, match=r"meta\.properties"):
        open_storage(OsFiles(), str(tmp_path), node_id=ONE)
