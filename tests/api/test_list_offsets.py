"""ListOffsets: what older clients are told."""

from __future__ import annotations

import pytest

from cotidal.api.list_offsets import partition_refused, refused_timestamp
from cotidal.errors import ErrorCode, Refusal


@pytest.mark.parametrize(
    ("version", "error"),
    [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)],
)
def test_an_offset_that_is_not_known_yet_is_told_in_a_code_that_the_client_knows(
    version: int, error: ErrorCode
) -> None:
    refusal = Refusal(ErrorCode.OFFSET_NOT_AVAILABLE)
    assert partition_refused(0, refusal, version).error_code == error


def test_a_special_timestamp_is_refused_before_its_version() -> None:
    assert refused_timestamp(-2, 1) is None
    for timestamp, since in ((-3, 7), (-4, 8), (-5, 9), (-6, 11)):
        assert refused_timestamp(timestamp, since) is None
        refusal = refused_timestamp(timestamp, since - 1)
        assert refusal is not None
        assert refusal.error is ErrorCode.UNSUPPORTED_VERSION
