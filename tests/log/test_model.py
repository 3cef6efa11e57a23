"""Random lives of a log against a list of batches: appends, cuts, reads, closes, kills, power cuts.

What a power cut may take: batches after the recovery point, the newest ones first. Never anything
below the recovery point, a batch out of the middle, a byte inside one; nor does it bring back what
was cut.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from cotidal.log.contract import LogConfig
from cotidal.log.log import Log
from cotidal.log.memory import MemoryFiles
from cotidal.messages.producers import ProducerSnapshot
from cotidal.values import Offset, WallMillis
from cotidal.wire.batch import read_batches
from tests.log.shelf import NOW, Shelf, batch, everything, lead, memory_shelf

CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150, file_delete_delay_ms=50)


class Written(NamedTuple):
    base: int
    end: int
    data: bytes


class Life:
    """A log and what it must hold."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.shelf: Shelf = memory_shelf()
        self.log: Log = self.shelf.open(CONFIG)
        self.batches: list[Written] = []
        self.start = 0
        self.epoch = 1
        self.now = NOW
        self.wrote = 0

    @property
    def end(self) -> int:
        return self.batches[-1].end if self.batches else self.empty_at

    empty_at = 0

    def step(self) -> None:
        actions = (
            (30, self.append), (20, self.read), (4, self.flush), (4, self.truncate),
            (3, self.advance), (2, self.retain), (2, self.reopen), (2, self.kill),
            (3, self.power_cut), (2, self.snapshot), (2, self.lead_anew),
        )  # fmt: skip
        weights = [weight for weight, _ in actions]
        ((_, action),) = self.random.choices(actions, weights)
        action()
        assert self.log.end_offset == self.end, action.__name__
        assert self.log.start_offset == self.start, action.__name__

    def append(self) -> None:
        sent = []
        end = self.end
        for _ in range(self.random.randint(1, 4)):
            self.wrote += 1
            self.now = WallMillis(self.now + 1)
            value = b"%d" % self.wrote + bytes(self.random.choice((0, 10, 200)))
            sent.append(batch(self.random.randint(1, 3), value=value, timestamp=self.now))
        lead(self.log, sent, epoch=self.epoch, now=self.now)
        for each in sent:
            header = read_batches(each).headers[0]
            prefix = end.to_bytes(8, "big") + each[8:12] + self.epoch.to_bytes(4, "big")
            self.batches.append(
                Written(end, end + header.last_offset_delta + 1, prefix + each[16:])
            )
            end = self.batches[-1].end

    def read(self) -> None:
        if self.start == self.end:
            return
        offset = self.random.randint(self.start, self.end - 1)
        below = self.random.randint(offset, self.end)
        size = self.random.choice((1, 150, 400, 5000))
        data = self.log.read(Offset(offset), max_bytes=size, below=Offset(below))
        expected = [each for each in self.batches if each.end > offset and each.end <= below]
        assert b"".join(each.data for each in expected).startswith(data)
        if expected and expected[0].base <= offset:
            assert data
            assert len(data) <= max(size, len(expected[0].data))

    def flush(self) -> None:
        assert self.log.flush() == self.end

    def truncate(self) -> None:
        offset = self.random.randint(max(self.start, self.end - 8), self.end)
        opened = self.log.truncate_to(Offset(offset))
        kept = [each for each in self.batches if each.end <= offset]
        if not kept:
            self.empty_at = opened.end_offset
            assert opened.end_offset <= offset
        self.batches = kept
        self.start = min(self.start, self.end)
        self.epoch += 1

    def advance(self) -> None:
        self.start = self.random.randint(self.start, self.end)
        self.log.advance_start(Offset(self.start), self.now)
        self.forget()

    def retain(self) -> None:
        self.log.configure(CONFIG._replace(retention_bytes=self.random.choice((-1, 2000))))
        self.start = self.log.retain(self.now, below=Offset(self.end)).start_offset
        self.forget()

    def snapshot(self) -> None:
        self.log.save_producers(ProducerSnapshot(self.log.end_offset, ()))

    def lead_anew(self) -> None:
        self.epoch += 1
        if self.random.random() < 0.5:
            self.log.save_epochs(self.log.epochs)

    def reopen(self) -> None:
        self.log.close()
        self.open(clean=True, recovery_point=self.end)
        assert not self.log.opened.repaired

    def kill(self) -> None:
        point = self.log.recovery_point
        self.shelf.restart()
        self.open(clean=False, recovery_point=point)
        assert everything(self.log) == b"".join(
            each.data for each in self.batches if each.end > self.start
        )

    def power_cut(self) -> None:
        point = self.log.recovery_point
        files = self.shelf.filesystem
        assert isinstance(files, MemoryFiles)
        files.crash(self.random.randrange)
        self.open(clean=False, recovery_point=point)
        end = self.log.end_offset
        assert end >= min(point, self.end), "what was flushed is gone"
        found = everything(self.log)
        assert end <= self.end
        self.start = self.log.start_offset
        self.batches = [each for each in self.batches if each.end <= end and end > self.start]
        if not self.batches:
            self.empty_at = end
        assert self.end == end
        assert found == b"".join(each.data for each in self.batches if each.end > self.start)

    def open(self, *, clean: bool, recovery_point: int) -> None:
        self.log = self.shelf.open(
            CONFIG, clean=clean, recovery_point=recovery_point, log_start=self.start, now=self.now
        )

    def forget(self) -> None:
        if self.batches and self.batches[-1].end <= self.start:
            self.empty_at = self.end
            self.batches = []
        self.batches = [each for each in self.batches if each.end > self.start - 100]


@pytest.mark.parametrize("seed", [*range(40), 49, 80, 140, 164, 207])  # the last ones once failed
def test_log_holds_what_was_written_through_any_life(seed: int) -> None:
    life = Life(seed)
    for _ in range(250):
        life.step()
    if life.start < life.end:
        assert everything(life.log) == b"".join(
            each.data for each in life.batches if each.end > life.start
        )
    assert life.log.verify() == ()
