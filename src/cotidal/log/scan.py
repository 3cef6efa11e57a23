"""Walking the batches of a segment and telling good ones from damaged ones. Pure.

A batch is good when its header is sane, it lies wholly before the given end, its offsets follow
those before it, its leader epoch does not go back, and its bytes match its crc. The crc does not
cover base offset, length and leader epoch, so those are held against their neighbours; a batch's
length is also held by the crc, which fails when it is taken over the wrong bytes.

Offsets may have gaps (compaction leaves them) and epochs jump, so one that is too high is only
seen against what follows, and by ``below``, the end offset of the segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from cotidal import limits
from cotidal.log.filesystem import File
from cotidal.messages.batch import HEADER_BYTES, BatchHeader
from cotidal.wire.batch import CRC_START, LENGTH_START, MAGIC, crc32c, unpack_header

unpack_front: Final = Struct(">qiibIhi").unpack_from
"""base offset, length, leader epoch, magic, crc, attributes, last offset delta"""

_NO_END: Final = 1 << 62
_new: Final = tuple.__new__


class Front(NamedTuple):
    """The first fields of a batch: enough to find offsets and to step to the next batch."""

    base_offset: int
    size_bytes: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta


class Damage(NamedTuple):
    """A place in a segment where the bytes are not a good batch."""

    position: int
    reason: str


class Found(NamedTuple):
    """A good batch and where it begins."""

    position: int
    header: BatchHeader


def front_at(data: bytes | memoryview, at: int) -> Front:
    base, length, epoch, magic, crc, attributes, delta = unpack_front(data, at)
    return _new(Front, (base, length + LENGTH_START, epoch, magic, crc, attributes, delta))


def front_fault(front: Front, *, next_offset: int, epoch: int, below: int = _NO_END) -> str | None:
    """What is wrong with a batch's first fields, given the batch before it; None when nothing."""
    base_offset, size_bytes, leader_epoch, magic, _, _, last_offset_delta = front
    if magic != MAGIC:
        return f"magic is {magic}, not {MAGIC}"
    if size_bytes < HEADER_BYTES:
        return f"a batch of {size_bytes} bytes is shorter than its header"
    if base_offset < next_offset:
        return f"base offset {base_offset} where {next_offset} or more was due"
    if last_offset_delta < 0:
        return f"last offset delta is {last_offset_delta}"
    if base_offset + last_offset_delta >= below:
        return f"last offset {front.last_offset} where less than {below} was due"
    if leader_epoch < epoch:
        return f"leader epoch {leader_epoch} after {epoch}"
    return None


def jump_fault(
    file: File, front: Front, position: int, end: int, *, next_offset: int, epoch: int
) -> str | None:
    """A batch whose offset or epoch is higher than was due may be right, after compaction or an
    election. If the batch that follows is good, would be good without it, and is lower, it is not.
    What a power cut has torn, or left as zeros, says nothing of what stands before it."""
    following = _good_front(file, position + front.size_bytes, end)
    if following is None or following.base_offset < next_offset or following.leader_epoch < epoch:
        return None
    if front.base_offset > next_offset and following.base_offset <= front.last_offset:
        return f"offsets to {front.last_offset} reach into the next batch's"
    if front.leader_epoch > epoch and following.leader_epoch < front.leader_epoch:
        return f"leader epoch {front.leader_epoch} before {following.leader_epoch}"
    return None


def _good_front(file: File, position: int, end: int) -> Front | None:
    """Of the batch that begins there, if it is whole and as its crc says."""
    if position + HEADER_BYTES > end:
        return None
    front = front_at(file.pread(HEADER_BYTES, position), 0)
    if front.magic != MAGIC or not HEADER_BYTES <= front.size_bytes <= end - position:
        return None
    return None if crc_fault(front, file.pread(front.size_bytes, position), 0) else front


def crc_fault(front: Front, data: bytes | memoryview, at: int) -> str | None:
    """``data`` holds the whole batch from ``at`` on."""
    actual = crc32c(memoryview(data)[at + CRC_START : at + front.size_bytes])
    return None if actual == front.crc else f"crc mismatch ({front.crc:#010x}, not {actual:#010x})"


def walk(
    file: File,
    *,
    position: int,
    end: int,
    next_offset: int,
    below: int = _NO_END,
    epoch: int = -1,
    check_crc: bool = True,
    synced_below: int = 0,
) -> Iterator[Found | Damage]:
    """Every good batch from ``position`` on, in order; at the first bad one its Damage, and no
    more. Reads in large pieces, and never more than one batch beyond a piece. Batches below
    ``synced_below`` are not judged by what follows them, which a power cut may have torn."""
    data = b""
    start = position  # file position of data[0]
    piece = limits.LOG_SCAN_BYTES if check_crc else limits.LOG_HEADER_SCAN_BYTES
    while position < end:
        at = position - start
        if at + HEADER_BYTES > len(data):
            start, at = position, 0
            data = file.pread(min(piece, end - position), position)
            if len(data) < HEADER_BYTES:
                yield Damage(position, f"{end - position} bytes are no whole batch header")
                return
        fields = unpack_header(data, at)
        base_offset, length, leader_epoch, magic, crc, attributes, delta = fields[:7]
        size_bytes = length + LENGTH_START
        place = (base_offset, size_bytes, leader_epoch)
        front = _new(Front, (*place, magic, crc, attributes, delta))
        fault = front_fault(front, next_offset=next_offset, epoch=epoch, below=below)
        jumps = base_offset > next_offset or leader_epoch > epoch
        if fault is None and jumps and base_offset + delta >= synced_below:
            fault = jump_fault(file, front, position, end, next_offset=next_offset, epoch=epoch)
        if fault is not None:
            yield Damage(position, fault)
            return
        if position + size_bytes > end:
            reason = f"a batch of {size_bytes} bytes where {end - position} are left"
            yield Damage(position, reason)
            return
        if check_crc:
            if at + size_bytes > len(data):
                start, at = position, 0
                data = file.pread(max(size_bytes, min(piece, end - position)), position)
            fault = crc_fault(front, data, at)
            if fault is not None:
                yield Damage(position, fault)
                return
        yield _new(Found, (position, _new(BatchHeader, (*place, *fields[5:]))))
        position += size_bytes
        next_offset = base_offset + delta + 1
        epoch = leader_epoch
