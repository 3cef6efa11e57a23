"""Logs that are full because somebody said so."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from cotidal.broker.full_disk import FillableFiles


def test_the_files_of_a_full_log_cannot_grow_and_others_can(tmp_path: Path) -> None:
    files = FillableFiles(10)
    for log in ("full-0", "other-0"):
        files.mkdir(f"{tmp_path}/{log}")
    full = files.open(f"{tmp_path}/full-0/0.log", create=True)
    other = files.open(f"{tmp_path}/other-0/0.log", create=True)
    full.append([b"before"])
    files.fill(["full-0"])
    other.append([b"goes on"])
    with pytest.raises(OSError) as refused:
        full.append([b"more"])
    assert refused.value.errno == errno.ENOSPC
    with pytest.raises(OSError):
        files.write(f"{tmp_path}/full-0/checkpoint", b"x")
    assert full.pread(6, 0) == b"before"
    full.truncate(3)
    files.fill([])
    full.append([b"again"])
    assert full.pread(10, 0) == b"befagain"
    full.close()
    other.close()
