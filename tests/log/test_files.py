"""The real file system: bounded descriptors, whole writes, locks."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from cotidal.log import files as files_module
from cotidal.log.files import OsFile, OsFiles


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
