"""Frames received into space that the receiver gives: the same frames, fewer copies."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotidal.errors import MalformedFrame
from cotidal.wire.frames import SMALL_FRAME_BYTES
from cotidal.wire.primitives import Buffer
from cotidal.wire.receiving import (
    AHEAD,
    LARGE_FRAME_BYTES,
    SCRATCH_BYTES,
    FrameReceiver,
    scratch,
)

ROOM = scratch()
ANY = 2**31 - 1


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def receive(receiver: FrameReceiver, data: bytes) -> list[Buffer]:
    """As a socket that has just these bytes: as many reads as it takes."""
    found: list[Buffer] = []
    left = memoryview(data)
    while left:
        space = receiver.space()
        count = min(len(space), len(left))
        space[:count] = left[:count]
        found += receiver.received(count)
        left = left[count:]
    return found


SIZES = (
    *(0, 1, 3, 50),
    *(SMALL_FRAME_BYTES, SMALL_FRAME_BYTES + 1),
    *(LARGE_FRAME_BYTES - 4, LARGE_FRAME_BYTES - 3),
    *(SCRATCH_BYTES - 4, SCRATCH_BYTES, 3 * SCRATCH_BYTES),
)


@given(st.lists(st.sampled_from(SIZES), max_size=6), st.data())
def test_frames_are_the_same_however_the_socket_brings_them(
    sizes: list[int], data: st.DataObject
) -> None:
    bodies = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
    stream = b"".join(map(framed, bodies))
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    receiver, other = FrameReceiver(ANY, ROOM), FrameReceiver(ANY, ROOM)
    found: list[Buffer] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += receive(receiver, stream[start:end])
        receive(other, b"\0\0\1\0" + b"\xff" * 7)  # who uses the same scratch area in between
    assert [bytes(frame) for frame in found] == bodies
    assert receiver.pending_bytes == 0


def test_what_was_received_before_is_not_touched_by_what_follows() -> None:
    receiver = FrameReceiver(ANY, ROOM)
    bodies = [b"a" * 10, b"b" * 9_000, b"c" * 100_000, b"d" * 1_000_000]
    found = [frame for body in bodies for frame in receive(receiver, framed(body))]
    receive(receiver, framed(b"x" * 2_000_000))
    assert [bytes(frame) for frame in found] == bodies


def test_the_rest_of_a_large_frame_is_received_where_it_stays() -> None:
    receiver = FrameReceiver(ANY, ROOM)
    begun = framed(bytes(1_000_000))[:200_000]
    assert receive(receiver, begun) == []
    space = receiver.space()
    assert len(space) == 1_000_004 - 200_000  # all of it, and nothing of the next frame
    space[:] = b"r" * len(space)
    (frame,) = receiver.received(len(space))
    assert isinstance(frame, memoryview)
    assert frame.obj is space.obj


@pytest.mark.parametrize("split", [0, 1, 2, 3, 4])
@pytest.mark.parametrize(
    ("length", "complaint"),
    [(b"\xff\xff\xff\xff", "negative"), (b"\0\0\0\x65", "more than the 100")],
)
def test_a_length_out_of_bounds_is_refused(length: bytes, complaint: str, split: int) -> None:
    receiver = FrameReceiver(100, ROOM)
    data = length + b"x"

    def feed() -> None:
        receive(receiver, data[:split])
        receive(receiver, data[split:])

    with pytest.raises(MalformedFrame, match=complaint):
        feed()


def test_a_claimed_length_allocates_no_more_than_a_few_times_what_has_come() -> None:
    receiver = FrameReceiver(ANY, ROOM)
    tracemalloc.start()
    try:
        receive(receiver, b"\x7f\xff\xff\xff")
        receive(receiver, b"abc")
        assert tracemalloc.get_traced_memory()[1] < 10_000
        receive(receiver, bytes(10_000))
        assert receiver.pending_bytes <= AHEAD * 10_007
        assert tracemalloc.get_traced_memory()[0] < AHEAD * 10_007 + 10_000
    finally:
        tracemalloc.stop()


def test_a_dribbling_peer_holds_no_more_than_a_few_times_what_it_sends() -> None:
    receiver = FrameReceiver(ANY, ROOM)
    receive(receiver, (10**6).to_bytes(4, "big"))
    for sent in range(5, 20_000):
        assert receive(receiver, b"x") == []
        assert receiver.pending_bytes <= AHEAD * sent
