"""Random lives of a compacted log against the list of what was written to it.

Appends, compactions (also such as are overtaken by a cut), cuts above the high watermark, moves of
the start, clean closes, kills, power cuts. Whatever happens: what is left was written, at its
offset and in its epoch; of each key the newest record below the high watermark is there, and none
returns once its tombstone has gone; the epochs are known; and where a power cut took something, it
took nothing below the recovery point.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from cotidal.log import cleaning
from cotidal.log.compaction import CompactionRules
from cotidal.log.log import Log
from cotidal.log.memory import MemoryFiles
from cotidal.values import EpochEntry, LeaderEpoch, Offset, WallMillis
from cotidal.wire.batch import read_batches
from cotidal.wire.compression import Compression
from cotidal.wire.records import read_records
from tests.log.keyed import KEYED, keyed_batch
from tests.log.shelf import NOW, everything, lead, memory_shelf

CONFIG = KEYED._replace(
    file_delete_delay_ms=50,
    compaction=CompactionRules(min_dirty_ratio=0.0, delete_retention_ms=200),
)
KEYS = 6


class Written(NamedTuple):
    offset: int
    epoch: int
    key: bytes
    value: bytes | None


class Life:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.shelf = memory_shelf()
        self.log: Log = self.shelf.open(CONFIG)
        self.written: list[Written] = []
        self.batches: list[tuple[int, int]] = []
        """First offset and epoch of each batch."""
        self.high_watermark = 0
        self.start = 0
        self.epoch = 1
        self.now = NOW

    def step(self) -> None:
        actions = (
            (30, self.append), (10, self.compact), (4, self.overtaken), (6, self.flush),
            (3, self.cut), (2, self.advance), (2, self.reopen), (3, self.kill), (3, self.power_cut),
            (2, self.wait),
        )  # fmt: skip
        ((_, action),) = self.random.choices(actions, [weight for weight, _ in actions])
        action()
        self.look(action.__name__)

    # What is done to it

    def append(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            base = self.log.end_offset
            records: list[tuple[bytes | None, bytes | None]] = []
            for at in range(self.random.randint(1, 3)):
                self.now = WallMillis(self.now + 1)
                key = b"%d" % self.random.randrange(KEYS)
                value = None if self.random.random() < 0.2 else b"%d" % self.now
                records.append((key, value))
                self.written.append(Written(base + at, self.epoch, key, value))
            self.batches.append((base, self.epoch))
            codec = self.random.choice((Compression.NONE, Compression.GZIP))
            batch = keyed_batch(records, timestamp=self.now, compression=codec)
            lead(self.log, [batch], epoch=self.epoch, now=self.now)
        if self.random.random() < 0.7:
            self.high_watermark = self.boundary()

    def begun(self) -> tuple[cleaning.Cleaning, cleaning.Cleaned] | None:
        plan = self.log.begin_cleaning(self.now, below=Offset(self.high_watermark))
        if plan is None:
            return None
        keys_max = self.random.choice((2, 1000))
        done = cleaning.run(plan, keys_max=keys_max, now_wall=self.now, breathe=lambda _: None)
        return plan, done

    def compact(self) -> None:
        begun = self.begun()
        if begun is not None:
            assert self.log.end_cleaning(*begun, self.now) is not None

    def overtaken(self) -> None:
        begun = self.begun()
        self.random.choice((self.append, self.cut, self.flush, self.advance))()
        if begun is not None:
            self.log.end_cleaning(*begun, self.now)

    def flush(self) -> None:
        self.log.flush()

    def cut(self) -> None:
        """As a follower does that has diverged: never below what is committed."""
        self.log.truncate_to(Offset(self.boundary()))
        self.forget_from(self.log.end_offset)
        self.epoch += 1

    def advance(self) -> None:
        self.start = self.random.randint(self.start, self.high_watermark)
        self.log.advance_start(Offset(self.start), self.now)

    def wait(self) -> None:
        self.now = WallMillis(self.now + 300)
        self.log.sweep(self.now)

    def reopen(self) -> None:
        self.log.close()
        self.open(clean=True, recovery_point=self.log.end_offset)
        assert not self.log.opened.repaired

    def kill(self) -> None:
        point, end = self.log.recovery_point, self.log.end_offset
        self.shelf.restart()
        self.open(clean=False, recovery_point=point)
        assert self.log.end_offset == end

    def power_cut(self) -> None:
        point = self.log.recovery_point
        files = self.shelf.filesystem
        assert isinstance(files, MemoryFiles)
        files.crash(self.random.randrange)
        self.open(clean=False, recovery_point=point)
        assert self.log.end_offset >= point, "what was flushed is gone"
        self.forget_from(self.log.end_offset)
        self.high_watermark = min(self.high_watermark, self.log.end_offset)
        self.start = self.log.start_offset

    def open(self, *, clean: bool, recovery_point: int) -> None:
        # The checkpoint of a kill may be an old one, or none.
        cleaned = self.random.choice((0, self.log.cleaned_to))
        self.log = self.shelf.open(
            CONFIG,
            clean=clean,
            recovery_point=recovery_point,
            log_start=self.start,
            cleaned_to=cleaned,
            now=self.now,
        )

    def forget_from(self, end: int) -> None:
        self.written = [each for each in self.written if each.offset < end]
        self.batches = [each for each in self.batches if each[0] < end]

    def boundary(self) -> int:
        """Where some batch begins that is not committed, or the end."""
        bases = [base for base, _ in self.batches if base >= self.high_watermark]
        return self.random.choice([*bases, self.log.end_offset])

    # What must hold

    def look(self, after: str) -> None:
        log = self.log
        assert log.start_offset == self.start, after
        left = self.read() if self.start < log.end_offset else []
        assert left == sorted(left), after
        assert set(left) <= set(self.written), after
        committed = [
            each for each in self.written if self.start <= each.offset < self.high_watermark
        ]
        held = {each.offset: each for each in left}
        oldest: dict[bytes, int] = {}
        for each in left:
            oldest.setdefault(each.key, each.offset)
        for each in {record.key: record for record in committed}.values():
            if each.offset in held:
                continue
            assert each.value is None, f"{after}: {each} is lost"
            assert oldest.get(each.key, each.offset) >= each.offset, f"{after}: {each} has returned"
        # One that begins at the end has written nothing; the core drops it.
        known = tuple(each for each in log.epochs if each.start_offset < log.end_offset)
        assert known == self.epochs(), after
        assert log.verify() == (), after

    def read(self) -> list[Written]:
        data = everything(self.log)
        found: list[Written] = []
        position = 0
        for header in read_batches(data).headers:
            found += [
                Written(record.offset, header.leader_epoch, record.key or b"", record.value)
                for record in read_records(data, position)
                if record.offset >= self.start
            ]
            position += header.size_bytes
        return found

    def epochs(self) -> tuple[EpochEntry, ...]:
        """Each with the offset from which on it wrote, in a log that starts where this one does."""
        begins: dict[int, int] = {}
        for base, epoch in self.batches:
            begins.setdefault(epoch, base)
        entries = [EpochEntry(LeaderEpoch(epoch), Offset(base)) for epoch, base in begins.items()]
        while len(entries) > 1 and entries[1].start_offset <= self.start:
            entries.pop(0)
        if entries and entries[0].start_offset < self.start:
            entries[0] = EpochEntry(entries[0].epoch, Offset(self.start))
        return tuple(each for each in entries if each.start_offset < self.log.end_offset)


@pytest.mark.parametrize("seed", range(40))
def test_compacted_log_keeps_what_it_must_through_any_life(seed: int) -> None:
    life = Life(seed)
    for _ in range(200):
        life.step()
