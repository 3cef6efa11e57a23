"""The real file system: bounded descriptors, whole writes, locks."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from cotidal.limits import RESERVE_BYTES_MAX, RESERVE_SHARE
from cotidal.log import files as files_module
from cotidal.log.files import OsFile, OsFiles, reserve_blocks
from tests.log.shelf import SMALL, lead, os_shelf, sized_batch


@pytest.fixture
def few() -> OsFiles:
    return OsFiles(max_open=3)


def descriptors(path: Path) -> int:
    """How many of this process lead into a directory."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{name}").startswith(str(path))
        except FileNotFoundError:  # the one that listed the directory
            pass
    return count


def test_open_files_are_bounded_and_all_work(few: OsFiles, tmp_path: Path) -> None:
    opened = [few.open(str(tmp_path / f"{number}"), create=True) for number in range(10)]
    for turn in range(3):
        for number, file in enumerate(opened):
            file.append([b"%d" % number])
            assert file.pread(10, 0) == b"%d" % number * (turn + 1)
            assert few.open_count <= 3
            assert descriptors(tmp_path) <= 3
    for file in opened:
        file.close()
    assert few.open_count == descriptors(tmp_path) == 0


def test_file_in_use_keeps_its_descriptor(few: OsFiles, tmp_path: Path) -> None:
    """Two threads hammer more files than may be open; no byte goes astray."""
    opened = [few.open(str(tmp_path / f"{number}"), create=True) for number in range(8)]

    def hammer(mine: list[OsFile], letter: bytes) -> None:
        for _ in range(300):
            for file in mine:
                file.append([letter * 10])
                assert file.pread(5, 0) == letter * 5

    threads = [
        threading.Thread(target=hammer, args=(opened[:4], b"a")),
        threading.Thread(target=hammer, args=(opened[4:], b"b")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, file in enumerate(opened):
        file.close()
        letter = b"a" if number < 4 else b"b"
        assert (tmp_path / f"{number}").read_bytes() == letter * 3000


def test_more_buffers_than_one_call_takes_are_written_in_order(tmp_path: Path) -> None:
    file = OsFiles().open(str(tmp_path / "f"), create=True)
    parts = [b"%d," % number for number in range(files_module.IOV_MAX * 2 + 5)]
    file.append(parts)
    assert file.pread(file.size + 10, 0) == b"".join(parts)
    assert file.size == len(b"".join(parts))
    file.close()


def test_write_that_the_kernel_cuts_short_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.writev

    def short(descriptor: int, buffers: list[bytes]) -> int:
        return real(descriptor, [memoryview(b"".join(buffers))[:7]])

    monkeypatch.setattr(os, "writev", short)
    file = OsFiles().open(str(tmp_path / "f"), create=True)
    file.append([b"abc", b"defgh", b"", b"ijklmnopqrstuvw"])
    assert file.pread(100, 0) == b"abcdefghijklmnopqrstuvw"
    assert file.size == 23
    file.close()


def test_sync_of_a_closed_file_is_nothing(tmp_path: Path) -> None:
    file = OsFiles().open(str(tmp_path / "f"), create=True)
    file.close()
    os.unlink(tmp_path / "f")
    file.sync()


def test_append_goes_on_while_another_thread_syncs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sync here lasts until the append is done: were they to exclude each other, for ever."""
    file = OsFiles().open(str(tmp_path / "f"), create=True)
    syncing, appended = threading.Event(), threading.Event()

    def slow(descriptor: int) -> None:
        syncing.set()
        assert appended.wait(10)

    monkeypatch.setattr(os, "fsync", slow)
    thread = threading.Thread(target=file.sync)
    thread.start()
    assert syncing.wait(10)
    file.append([b"meanwhile"])
    appended.set()
    thread.join()
    file.close()


def test_lock_keeps_others_out(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    first = OsFiles().lock(path)
    assert first is not None
    assert OsFiles().lock(path) is None
    first.release()
    second = OsFiles().lock(path)
    assert second is not None
    second.release()


def test_small_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    files = OsFiles()
    path = str(tmp_path / "f")
    for data in (b"one", b"two two", b""):
        files.write(path, data)
        assert files.read(path) == data
    assert files.listdir(str(tmp_path)) == ["f"]


def test_file_that_is_not_there_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        OsFiles().open(str(tmp_path / "f"))
    with pytest.raises(FileNotFoundError):
        OsFiles().size(str(tmp_path / "f"))


MB = 1 << 20


@pytest.fixture
def grown(tmp_path: Path) -> OsFile:
    """A file that has grown large by pieces."""
    with (tmp_path / "other").open("wb") as other:
        if not reserve_blocks(other.fileno(), 0, MB):
            pytest.skip("this file system reserves nothing")
    file = OsFiles().open(str(tmp_path / "log"), create=True)
    for number in range(20):
        file.append([bytes([number]) * (MB // 2)])
    return file


def unused(file: OsFile) -> int:
    """Bytes that it has on the disk beyond its end."""
    told = os.stat(file._path)
    assert told.st_size == file.size
    return told.st_blocks * 512 - told.st_size


def test_a_large_file_has_blocks_for_what_comes_next(grown: OsFile) -> None:
    assert MB // 8 < unused(grown) < grown.size // RESERVE_SHARE + MB // 8
    assert grown.pread(3, 19 * MB // 2) == b"\x13\x13\x13"
    assert grown.pread(3, grown.size) == b""


def test_what_is_reserved_is_given_back_when_the_file_is_finished(grown: OsFile) -> None:
    size = grown.size
    grown.finish()
    assert unused(grown) < MB // 8
    grown.append([b"and goes on"])
    assert grown.pread(100, size) == b"and goes on"
    assert unused(grown) > MB // 8


def test_what_is_reserved_is_given_back_when_the_file_is_closed(grown: OsFile) -> None:
    grown.close()
    assert unused(grown) < MB // 8


def test_what_a_killed_process_had_reserved_is_given_back(grown: OsFile) -> None:
    again = OsFiles().open(grown._path)
    again.finish()
    assert again.size == grown.size
    assert unused(again) < MB // 8


def test_a_large_file_that_is_cut_reserves_anew(grown: OsFile) -> None:
    grown.truncate(9 * MB)
    assert unused(grown) < MB // 8
    grown.append([b"x" * 100])
    assert unused(grown) > MB // 8
    grown.truncate(MB)
    grown.append([b"y" * 100])
    assert unused(grown) < MB // 8
    assert grown.pread(200, MB) == b"y" * 100


def test_a_small_file_reserves_nothing(tmp_path: Path) -> None:
    file = OsFiles().open(str(tmp_path / "log"), create=True)
    for _ in range(15):
        file.append([bytes(MB // 2)])
    assert unused(file) < MB // 8


def test_a_very_large_file_reserves_no_more_than_its_bound(grown: OsFile) -> None:
    while grown.size <= RESERVE_SHARE * (RESERVE_BYTES_MAX + 2 * MB):
        grown.append([bytes(8 * MB)])
    grown.finish()
    grown.append([b"x"])
    assert RESERVE_BYTES_MAX // 2 < unused(grown) < RESERVE_BYTES_MAX + MB // 8


@pytest.mark.plain
def test_where_nothing_can_be_reserved_files_grow_all_the_same(
    grown: OsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(files_module, "_FALLOCATE", lambda *about: asked.append(1) or -1)
    grown.finish()
    for _ in range(3):
        grown.append([b"x" * MB])
    assert (grown.size, len(asked)) == (13 * MB, 1)
    assert unused(grown) < MB // 8


def test_a_segment_that_is_full_keeps_no_blocks_to_itself(tmp_path: Path) -> None:
    shelf = os_shelf(tmp_path)
    log = shelf.open(SMALL._replace(segment_bytes=10 * MB))
    for _ in range(26):
        lead(log, [sized_batch(MB // 2)])
    closed = shelf.filesystem.open(f"{shelf.directory}/{shelf.logs()[0]}")
    assert isinstance(closed, OsFile)
    assert closed.size > 9 * MB
    assert unused(closed) < MB // 8
