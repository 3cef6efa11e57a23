"""New segments in the place of old ones, in steps of which a crash may come between any two.

    X.log.cleaned    being written; worth nothing until it is whole: the next open removes it
    X.log.swap       whole and synced; it takes the place of every old segment within its offsets
    *.deleted        old files, out of the way; unlinked after file.delete.delay.ms

  1  the indexes, then the batches: `.cleaned` -> `.swap`    X.log.swap is the point of no return
  2  the old segments, batches first: -> `.deleted`
  3  the indexes, then the batches: `.swap` -> no suffix

Each step is done for all new segments, ascending, and made durable before the next. Ascending,
because a tombstone may go only where the older records of its key, which lie before it, are gone.

A new segment ends with the last batch of the last segment that it replaces (cleaning.py), so its
own offsets tell, after a crash, which old ones are to go.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final

from cotidal.log.cleaning import CLEANED
from cotidal.log.filesystem import FileSystem
from cotidal.log.row import SegmentRow
from cotidal.log.scan import Damage, walk
from cotidal.log.segment import SUFFIXES, Segment, segment_name
from cotidal.values import Offset

SWAP: Final = ".swap"


def swap(
    filesystem: FileSystem,
    directory: str,
    row: SegmentRow,
    new: Sequence[tuple[Segment, tuple[Offset, ...]]],
) -> list[str]:
    """All three steps: each new segment takes the place of those with the given bases. Returns the
    old files, to be unlinked later."""
    paths = [segment.path for segment, _ in new]
    for path in paths:
        _rename_all(filesystem, path, CLEANED, SWAP)
    filesystem.sync_directory(directory)
    doomed = [
        path
        for segment, replaces in new
        for old in row.replace(replaces, segment)
        for path in old.doom()
    ]
    filesystem.sync_directory(directory)
    for path in paths:
        _rename_all(filesystem, path, SWAP, "")
    filesystem.sync_directory(directory)
    return doomed


def finish_swaps(filesystem: FileSystem, directory: str) -> int:
    """At the next open: what a crash interrupted after step 1. Returns how many there were."""
    names = filesystem.listdir(directory)
    bases = [int(name[:20]) for name in names if name.endswith(".log" + SWAP)]
    logs = [int(name[:20]) for name in names if name[20:] == ".log" and name[:20].isdigit()]
    for base in bases:
        path = f"{directory}/{segment_name(base)}"
        end = _end_of(filesystem, path, base)
        for old in logs:
            if base < old < end:  # the one of the same base is replaced by the renaming
                filesystem.unlink(f"{directory}/{segment_name(old)}.log")
        filesystem.sync_directory(directory)
        _rename_all(filesystem, path, SWAP, "")
        filesystem.sync_directory(directory)
    return len(bases)


def _rename_all(filesystem: FileSystem, path: str, old: str, new: str) -> None:
    for suffix in reversed(SUFFIXES):
        with contextlib.suppress(FileNotFoundError):  # no aborted transactions; or done before
            filesystem.rename(path + suffix + old, path + suffix + new)


def _end_of(filesystem: FileSystem, path: str, base: int) -> int:
    end = base
    file = filesystem.open(path + ".log" + SWAP)
    try:
        for found in walk(file, position=0, end=file.size, next_offset=base, check_crc=False):
            if isinstance(found, Damage):
                break
            end = found.header.next_offset
    finally:
        file.close()
    return end
