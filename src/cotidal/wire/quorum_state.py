"""The file `quorum-state`: a node's epoch, vote and leader, as Kafka writes it (JSON). Pure.

    {"leaderId":1,"leaderEpoch":7,"votedId":-1,"votedDirectoryId":"AAAA...","data_version":1}

Version 1 goes with kraft.version 1; version 0 has no directory id but a cluster id, an applied
offset and the voters, which Kafka writes and ignores.
"""

from __future__ import annotations

import json
from typing import Any

from cotidal.errors import MalformedFrame
from cotidal.messages.records.quorum import QuorumStateData, QuorumStateDataVoter
from cotidal.values import ZERO_UUID, uuid_from_text, uuid_text


def encode_quorum_state(state: QuorumStateData, version: int) -> bytes:
    document: dict[str, Any] = {
        "leaderId": state.leader_id,
        "leaderEpoch": state.leader_epoch,
        "votedId": state.voted_id,
    }
    if version == 0:
        if state.voted_directory_id != ZERO_UUID:
            raise ValueError("version 0 of quorum-state has no place for a directory id")
        voters = state.current_voters
        document["clusterId"] = state.cluster_id
        document["appliedOffset"] = state.applied_offset
        document["currentVoters"] = (
            None if voters is None else [{"voterId": voter.voter_id} for voter in voters]
        )
    elif version == 1:
        document["votedDirectoryId"] = uuid_text(state.voted_directory_id)
    else:
        raise ValueError(f"quorum-state has no version {version}")
    document["data_version"] = version
    return json.dumps(document, separators=(",", ":")).encode()


def decode_quorum_state(data: bytes) -> QuorumStateData:
    """Either version; MalformedFrame if the file is neither."""
    try:
        document = json.loads(data)
        version = document["data_version"]
        state = QuorumStateData(
            leader_id=_number(document, "leaderId"),
            leader_epoch=_number(document, "leaderEpoch"),
            voted_id=_number(document, "votedId"),
        )
        if version == 0:
            voters = document["currentVoters"]
            return state._replace(
                cluster_id=str(document["clusterId"]),
                applied_offset=_number(document, "appliedOffset"),
                current_voters=None
                if voters is None
                else tuple(QuorumStateDataVoter(_number(voter, "voterId")) for voter in voters),
            )
        if version == 1:
            directory = uuid_from_text(document["votedDirectoryId"])
            return state._replace(voted_directory_id=directory)
    except (ValueError, KeyError, TypeError, RecursionError) as wrong:
        raise MalformedFrame(f"quorum-state cannot be read: {wrong!r}") from None
    raise MalformedFrame(f"quorum-state has version {version!r}, which is not known")


def _number(document: dict[str, Any], name: str) -> int:
    value = document[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} is not a number")
    return value
