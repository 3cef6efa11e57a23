"""The file system in memory: the same promises, and what it loses when it is told to."""

from __future__ import annotations

import errno
import random

import pytest

from cotidal.log.filesystem import FileSystem
from cotidal.log.memory import MemoryFiles
from tests.log.shelf import Shelf


@pytest.fixture
def files() -> MemoryFiles:
    made = MemoryFiles()
    made.mkdir("/d")
    made.sync_directory("/")
    return made


def lose_all(n: int) -> int:
    return min(1, n - 1)


def test_both_file_systems_keep_the_same_promises(shelf: Shelf) -> None:
    files: FileSystem = shelf.filesystem
    root = f"{shelf.root}/x"
    files.mkdir(f"{root}/y")
    files.mkdir(f"{root}/y")
    file = files.open(f"{root}/f", create=True)
    file.append([b"abc", memoryview(b"defg")[1:]])
    assert (file.size, files.size(f"{root}/f")) == (6, 6)
    assert file.pread(2, 1) == b"bc"
    assert file.pread(10, 4) == b"fg"
    assert file.pread(10, 6) == b""
    file.truncate(2)
    file.append([b"Z"])
    assert files.read(f"{root}/f") == b"abZ"
    file.close()
    files.write(f"{root}/g", b"old")
    files.rename(f"{root}/f", f"{root}/g")
    assert files.read(f"{root}/g") == b"abZ"
    assert files.listdir(root) == ["g", "y"]
    assert files.exists(f"{root}/y")
    assert not files.exists(f"{root}/f")
    assert not files.exists(f"{root}/no/f")
    with pytest.raises(OSError, match="not empty"):
        files.rmdir(root)
    files.rename(f"{root}/y", f"{root}/z")
    files.rmdir(f"{root}/z")
    files.unlink(f"{root}/g")
    files.rmdir(root)
    assert not files.exists(root)
    for refused in (files.open, files.size, files.listdir, files.unlink, files.read):
        with pytest.raises(FileNotFoundError):
            refused(f"{root}/f")
    lock = files.lock(f"{shelf.root}/.lock")
    assert lock is not None
    assert files.lock(f"{shelf.root}/.lock") is None
    lock.release()
    assert files.lock(f"{shelf.root}/.lock") is not None


def test_death_of_the_process_keeps_everything_but_open_files(files: MemoryFiles) -> None:
    file = files.open("/d/f", create=True)
    file.append([b"abc"])
    assert files.lock("/d/.lock") is not None
    files.crash()
    assert files.read("/d/f") == b"abc"
    assert files.lock("/d/.lock") is not None
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.append([b"x"])


def test_synced_bytes_survive_and_of_the_others_any_prefix_perhaps_with_a_hole() -> None:
    seen = set()
    holes = 0
    for seed in range(200):
        files = MemoryFiles()
        file = files.open("/f", create=True)
        files.sync_directory("/")
        file.append([b"sync"])
        file.sync()
        file.append([b"ed"])
        file.append([b", not"])
        files.crash(random.Random(seed).randrange)
        data = files.read("/f")
        whole = b"synced, not"
        assert data.startswith(b"sync")
        assert all(byte in (0, own) for byte, own in zip(data, whole, strict=False))
        hole = data[4:].strip(b"synced, not")
        assert hole == bytes(len(hole)), "one hole at most"
        holes += bool(hole)
        seen.add(len(data))
    assert seen == set(range(4, 12))
    assert 0 < holes < 100


def test_what_a_disk_lies_about_may_be_lost_until_it_syncs_truly() -> None:
    def left(*, true_at_last: bool) -> set[tuple[str, ...]]:
        seen = set()
        for seed in range(100):
            files = MemoryFiles()
            files.mkdir("/d")
            files.sync_directory("/")
            files.lies = lambda path: path.startswith("/d")
            file = files.open("/d/f", create=True)
            file.append([b"abc"])
            file.sync()
            files.sync_directory("/d")
            files.write("/d/g", b"def")
            files.write("/h", b"ghi")
            assert files.lies_told == 3
            if true_at_last:
                files.lies = None
                file.sync()
                files.sync_directory("/d")
                files.write("/d/g", b"def")
            files.crash(random.Random(seed).randrange)
            assert (files.read("/h"), files.lies_told) == (b"ghi", 0)
            seen.add(tuple(f"{name} {files.size(f'/d/{name}')}" for name in files.listdir("/d")))
        return seen

    assert left(true_at_last=True) == {("f 3", "g 3")}
    assert {(), ("f 0",), ("f 3", "g 0")} <= left(true_at_last=False)


def test_unsynced_truncation_may_come_undone_with_all_that_came_after() -> None:
    seen = set()
    for seed in range(200):
        files = MemoryFiles()
        file = files.open("/f", create=True)
        files.sync_directory("/")
        file.append([b"abcdef"])
        file.sync()
        file.truncate(2)
        file.append([b"XY"])
        files.crash(random.Random(seed).randrange)
        data = files.read("/f")
        if 0 not in data:  # the others have a hole
            seen.add(data)
    assert seen == {b"abcdef", b"ab", b"abX", b"abXY"}


def test_unsynced_names_may_be_lost_in_the_order_they_were_made() -> None:
    seen = set()
    for seed in range(200):
        files = MemoryFiles()
        files.mkdir("/d")
        files.sync_directory("/")
        files.open("/d/a", create=True)
        files.sync_directory("/d")
        files.open("/d/b", create=True)
        files.rename("/d/a", "/d/c")
        files.unlink("/d/b")
        files.crash(random.Random(seed).randrange)
        seen.add(tuple(files.listdir("/d")))
    assert seen == {("a",), ("a", "b"), ("b", "c"), ("c",)}


def test_sync_of_a_file_does_not_keep_its_name(files: MemoryFiles) -> None:
    file = files.open("/d/f", create=True)
    file.append([b"abc"])
    file.sync()
    files.crash(lose_all)
    assert not files.exists("/d/f")


def test_replaced_small_file_is_old_or_new() -> None:
    seen = set()
    for seed in range(100):
        files = MemoryFiles()
        files.write("/f", b"old")
        files.write("/f", b"new", sync=False)
        files.crash(random.Random(seed).randrange)
        seen.add(files.read("/f"))
    assert {b"old", b"new"} <= seen
    files = MemoryFiles()
    files.write("/f", b"old")
    files.write("/f", b"new")
    files.crash(lose_all)
    assert files.read("/f") == b"new"


def test_equal_draws_lose_equally() -> None:
    def life(seed: int) -> bytes:
        files = MemoryFiles()
        for name in "abc":
            files.open(f"/{name}", create=True).append([name.encode() * 50])
        files.crash(random.Random(seed).randrange)
        return b"|".join(files.read(f"/{name}") for name in files.listdir("/"))

    assert [life(seed) for seed in range(20)] == [life(seed) for seed in range(20)]


def test_full_disk_takes_what_fits(files: MemoryFiles) -> None:
    files.capacity = 5
    file = files.open("/d/f", create=True)
    with pytest.raises(OSError, match="No space left") as full:
        file.append([b"abc", b"defg"])
    assert full.value.errno == errno.ENOSPC
    assert files.read("/d/f") == b"abcde"
    file.truncate(1)
    assert files.used_bytes == 1
    with pytest.raises(OSError, match="No space left"):
        files.write("/d/g", b"12345")
    files.write("/d/g", b"1234")
    files.unlink("/d/g")
    assert files.used_bytes == 1


def test_errors_come_on_demand_and_go(files: MemoryFiles) -> None:
    file = files.open("/d/f.log", create=True)
    files.fail("append", ".log", times=2)
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output error"):
            file.append([b"x"])
    file.append([b"x"])
    assert files.read("/d/f.log") == b"x"


def test_slowness_is_reported(files: MemoryFiles) -> None:
    files.cost_us = {"append": 3, "sync": 1000}
    file = files.open("/d/f", create=True)
    file.append([b"x"])
    file.sync()
    file.append([b"x"])
    assert files.take_spent_us() == 1006
    assert files.take_spent_us() == 0


def test_rot_flips_one_bit(files: MemoryFiles) -> None:
    files.write("/d/f", b"abc")
    files.flip("/d/f", 1, 0)
    assert files.read("/d/f") == b"acc"
