"""The order in which new segments take the place of old ones."""

from __future__ import annotations

import pytest

from cotidal.log.memory import MemoryFiles
from cotidal.values import Offset
from tests.log.keyed import KEYED, compact, put, roll
from tests.log.shelf import Shelf
from tests.log.test_cleaning import FragileFiles, PowerCut, transaction


class WatchedFiles(MemoryFiles):
    """Remembers every renaming: old name, new name."""

    __slots__ = ("renamed",)

    def __init__(self) -> None:
        super().__init__()
        self.renamed: list[tuple[str, str]] = []

    def rename(self, old: str, new: str) -> None:
        super().rename(old, new)
        self.renamed.append((old.rpartition("/")[2], new.rpartition("/")[2]))


@pytest.mark.plain
def test_segments_are_swapped_from_the_first_to_the_last_and_batches_after_indexes() -> None:
    """A tombstone must not go before what it deleted, nor a segment appear without its index."""
    files = WatchedFiles()
    files.mkdir("/data")
    log = Shelf(files, "/data").open(KEYED._replace(segment_bytes=300))
    for number in range(30):
        put(log, (b"%d" % number, b"v" * 50))
        put(log, (b"%d" % number, b"w" * 50))
    roll(log)
    compact(log)
    for suffix in (".swap", ""):
        kinds = [f"{kind}{suffix}" for kind in (".timeindex", ".index", ".log")]
        moved = [new for _, new in files.renamed if new[20:] in kinds]
        stems = sorted({name[:20] for name in moved})
        assert len(stems) > 3
        assert moved == [stem + kind for stem in stems for kind in kinds]
    first_doomed = next(at for at, (_, new) in enumerate(files.renamed) if new.endswith(".deleted"))
    assert all(new.endswith(".swap") for _, new in files.renamed[:first_doomed])


@pytest.mark.plain
def test_aborted_transactions_are_known_after_a_crash_at_any_point() -> None:
    operation = 0
    finished = False
    while not finished:
        files = FragileFiles()
        files.mkdir("/data")
        files.sync_directory("/")
        shelf = Shelf(files, "/data")
        log = shelf.open(KEYED)
        put(log, (b"a", b"1"))
        transaction(log, 5, (b"a", b"no"), commits=False)
        put(log, (b"a", b"2"))
        roll(log)
        end = log.end_offset
        files.left = operation
        try:
            compact(log)
            finished = True
        except PowerCut:
            pass
        files.crash()
        files.left = 1 << 60
        log = shelf.open(KEYED, clean=False, recovery_point=end)
        (known,) = log.aborted_between(Offset(0), end)
        assert (known.producer_id, known.first_offset, known.last_offset) == (5, 1, 2)
        operation += 1
    assert operation > 20
