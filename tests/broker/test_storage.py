"""A data directory belongs to one node of one cluster, and to one process at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotidal.broker.storage import (
    StorageError,
    format_storage,
    mark_clean,
    open_all,
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


# Several directories


def disks(tmp_path: Path, *names: str) -> list[str]:
    """Formatted for node 1 of one cluster."""
    cluster_id: str | None = None
    paths = [str(tmp_path / name) for name in names]
    for path in paths:
        meta = format_storage(OsFiles(), path, node_id=ONE, cluster_id=cluster_id)
        cluster_id = meta.cluster_id
    return paths


def test_all_directories_of_a_node_are_held(tmp_path: Path) -> None:
    a, b, m = disks(tmp_path, "a", "b", "m")
    files = OsFiles()
    held = open_all(files, (a, b), m, node_id=ONE)
    assert [storage.path for storage in held.all] == [m, a, b]
    assert len({storage.meta.directory_id for storage in held.all}) == 3
    with pytest.raises(StorageError, match="in use by another process"):
        open_all(files, (a, b), a, node_id=ONE)
    held.release()
    held = open_all(files, (a, b), a, node_id=ONE)
    assert [storage.path for storage in held.all] == [a, b]
    held.release()


def test_a_directory_for_logs_that_is_not_there_is_missing_and_no_more(tmp_path: Path) -> None:
    a, b = disks(tmp_path, "a", "b")
    gone = str(tmp_path / "gone")
    held = open_all(OsFiles(), (a, gone, b), a, node_id=ONE)
    assert [storage.path for storage in held.logs] == [a, b]
    ((path, reason),) = held.missing
    assert path == gone
    assert "is not formatted" in reason
    held.release()


@pytest.mark.parametrize(
    ("log_dirs", "metadata"), [(("gone", "missing"), "a"), (("a",), "gone"), (("b",), "gone")]
)
def test_without_any_log_directory_or_the_metadata_log_nothing_starts(
    tmp_path: Path, log_dirs: tuple[str, ...], metadata: str
) -> None:
    disks(tmp_path, "a", "b")
    paths = tuple(str(tmp_path / name) for name in log_dirs)
    with pytest.raises(StorageError, match="is not formatted"):
        open_all(OsFiles(), paths, str(tmp_path / metadata), node_id=ONE)


def test_a_directory_of_another_cluster_keeps_the_node_from_starting(tmp_path: Path) -> None:
    (a,) = disks(tmp_path, "a")
    (other,) = disks(tmp_path, "other")
    with pytest.raises(StorageError, match="belongs to cluster"):
        open_all(OsFiles(), (a, other), a, node_id=ONE)
    open_all(OsFiles(), (a,), a, node_id=ONE).release()


def test_a_copy_of_a_directory_is_refused(tmp_path: Path) -> None:
    (a,) = disks(tmp_path, "a")
    copy = tmp_path / "copy"
    copy.mkdir()
    meta = (tmp_path / "a/meta.properties").read_bytes()
    (copy / "meta.properties").write_bytes(meta)
    with pytest.raises(StorageError, match="it is a copy"):
        open_all(OsFiles(), (a, str(copy)), a, node_id=ONE)


def test_a_metadata_log_that_is_elsewhere_is_not_begun_anew(tmp_path: Path) -> None:
    a, b = disks(tmp_path, "a", "b")
    (tmp_path / "a/__cluster_metadata-0").mkdir()
    open_all(OsFiles(), (a, b), a, node_id=ONE).release()
    with pytest.raises(StorageError, match=r"the metadata log is in .*a, not in .*b"):
        open_all(OsFiles(), (a, b), b, node_id=ONE)


def test_only_a_node_whose_directories_were_all_closed_in_order_was(tmp_path: Path) -> None:
    a, b = disks(tmp_path, "a", "b")
    files = OsFiles()
    for path in (a, b):
        mark_clean(files, path, BrokerEpoch(7))
    held = open_all(files, (a, b), a, node_id=ONE)
    assert held.broker_epoch == 7
    held.release()
    mark_clean(files, a, BrokerEpoch(9))
    held = open_all(files, (a, b), a, node_id=ONE)
    assert held.broker_epoch == -1
    assert [storage.clean for storage in held.logs] == [True, False]
    held.release()
