"""The metadata quorum as plain values: who leads it, and how far each member is behind. Pure."""

from __future__ import annotations

from cotidal.client.admin import Quorum, QuorumMember
from cotidal.values import ZERO_UUID, uuid_text


def quorum_json(quorum: Quorum) -> dict[str, object]:
    leader_end = end_of_leader(quorum)

    def members(of: tuple[QuorumMember, ...]) -> list[dict[str, object]]:
        return [
            {
                "node": member.node_id,
                "directory_id": directory_text(member),
                "end_offset": member.end_offset,
                "lag": max(0, leader_end - member.end_offset),
                "last_fetch_ms": member.last_fetch_ms,
                "last_caught_up_ms": member.last_caught_up_ms,
            }
            for member in of
        ]

    return {
        "leader": quorum.leader,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "voters": members(quorum.voters),
        "observers": members(quorum.observers),
    }


def end_of_leader(quorum: Quorum) -> int:
    return max((member.end_offset for member in quorum.voters if member.node_id == quorum.leader),
               default=quorum.high_watermark)  # fmt: skip


def directory_text(member: QuorumMember) -> str | None:
    return None if member.directory_id == ZERO_UUID else uuid_text(member.directory_id)
