"""What a thousand partitions cost: that the program measures what it says."""

from __future__ import annotations

from bench.partitions import replayed


def test_metadata_log_of_many_batches_is_replayed_whole() -> None:
    row = replayed(2_500)  # asserts that every partition is in the image
    assert row.value > 0
    assert "2,500" in row.what
