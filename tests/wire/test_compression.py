"""Compressions: there and back, other framings, bounds, damage."""

from __future__ import annotations

import contextlib
import gzip
from random import Random

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotidal.errors import MalformedFrame
from cotidal.wire.compression import LZ4_HEADER, XERIAL_HEADER, Compression, compress, decompress

REAL = [c for c in Compression if c is not Compression.NONE]
NAMES = [c.name for c in REAL]


@pytest.mark.parametrize("codec", REAL, ids=NAMES)
@settings(max_examples=30)
@given(st.binary(max_size=500))
def test_data_comes_back(codec: Compression, data: bytes) -> None:
    assert bytes(decompress(codec, compress(codec, data))) == data


@pytest.mark.parametrize("codec", REAL, ids=NAMES)
@pytest.mark.parametrize("size", [0, 32 * 1024, 64 * 1024, 64 * 1024 + 1, 300_000])
@pytest.mark.parametrize("random", [True, False], ids=["noise", "text"])
def test_data_of_many_blocks_comes_back(codec: Compression, size: int, random: bool) -> None:
    data = Random(size).randbytes(size) if random else (b"some words " * (size // 11 + 1))[:size]
    packed = compress(codec, memoryview(data))
    assert bytes(decompress(codec, memoryview(packed))) == data


def test_no_compression_is_no_copy() -> None:
    data = b"abc"
    assert compress(Compression.NONE, data) is data
    assert decompress(0, data) is data


@pytest.mark.parametrize("codec", REAL, ids=NAMES)
def test_a_bomb_is_refused_at_its_bound(codec: Compression) -> None:
    bomb = compress(codec, bytes(3_000_000))
    assert len(bytes(decompress(codec, bomb, bytes_max=3_000_000))) == 3_000_000
    with pytest.raises(MalformedFrame, match="larger than"):
        decompress(codec, bomb, bytes_max=2_999_999)


@pytest.mark.parametrize("codec", REAL, ids=NAMES)
def test_damaged_and_cut_data_is_refused_or_read_and_nothing_else(codec: Compression) -> None:
    good = bytes(compress(codec, b"some words and more words " * 30))
    for at in range(len(good)):
        for flip in (0x01, 0x80, 0xFF):
            bad = bytearray(good)
            bad[at] ^= flip
            with contextlib.suppress(MalformedFrame):
                decompress(codec, bytes(bad), bytes_max=1_000_000)
        with contextlib.suppress(MalformedFrame):
            decompress(codec, good[:at], bytes_max=1_000_000)
    for noise in (b"junk" * 20, b"\xff" * 50):
        with pytest.raises(MalformedFrame):
            decompress(codec, noise, bytes_max=1_000_000)


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.ZSTD], ids=["GZIP", "ZSTD"])
def test_data_cut_anywhere_is_refused(codec: Compression) -> None:
    good = bytes(compress(codec, b"some words and more words " * 30))
    for end in range(1, len(good)):
        with pytest.raises(MalformedFrame):
            decompress(codec, good[:end])


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(MalformedFrame, match="number 5"):
        decompress(5, b"")


def test_snappy_is_written_in_blocks_and_read_plain_as_well() -> None:
    data = b"words " * 20_000
    packed = compress(Compression.SNAPPY, data)
    assert bytes(packed[:16]) == XERIAL_HEADER
    plain = bytes(cramjam.snappy.compress_raw(data))
    assert decompress(Compression.SNAPPY, plain) == data


def test_lz4_is_written_in_independent_blocks_which_java_needs() -> None:
    packed = compress(Compression.LZ4, b"words " * 20_000)
    assert bytes(packed[: len(LZ4_HEADER)]) == LZ4_HEADER
    assert bytes(cramjam.lz4.decompress(packed)) == b"words " * 20_000


def test_lz4_frames_of_dependent_blocks_are_read() -> None:
    data = b"words " * 50_000
    assert decompress(Compression.LZ4, bytes(cramjam.lz4.compress(data))) == data


def test_gzip_of_several_members_is_read() -> None:
    assert (
        decompress(Compression.GZIP, gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"
    )
