"""The quorum-state file."""

from __future__ import annotations

import json

import pytest

from cotidal.errors import MalformedFrame
from cotidal.messages.records.quorum import QuorumStateData, QuorumStateDataVoter
from cotidal.values import Uuid
from cotidal.wire.quorum_state import decode_quorum_state, encode_quorum_state

NO_DIRECTORY = (
    '{"leaderId":1,"leaderEpoch":1,"votedId":1,'
    '"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
)
VOTED = QuorumStateData(leader_id=-1, leader_epoch=7, voted_id=3)


def test_version_1_is_kafkas_json() -> None:
    state = VOTED._replace(voted_directory_id=Uuid(bytes(range(16))))
    data = encode_quorum_state(state, 1)
    assert json.loads(data) == {
        "leaderId": -1,
        "leaderEpoch": 7,
        "votedId": 3,
        "votedDirectoryId": "AAECAwQFBgcICQoLDA0ODw",
        "data_version": 1,
    }
    assert decode_quorum_state(data) == state


def test_version_0_is_kafkas_json() -> None:
    state = VOTED._replace(current_voters=(QuorumStateDataVoter(1), QuorumStateDataVoter(3)))
    data = encode_quorum_state(state, 0)
    assert json.loads(data) == {
        "clusterId": "",
        "leaderId": -1,
        "leaderEpoch": 7,
        "votedId": 3,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": 1}, {"voterId": 3}],
        "data_version": 0,
    }
    assert decode_quorum_state(data) == state
    none = state._replace(current_voters=None)
    assert decode_quorum_state(encode_quorum_state(none, 0)) == none


def test_a_node_that_has_voted_for_no_one_is_read() -> None:
    state = QuorumStateData(leader_id=1, leader_epoch=1, voted_id=1)
    assert decode_quorum_state(NO_DIRECTORY.encode()) == state


def test_what_a_version_cannot_say_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="directory id"):
        encode_quorum_state(VOTED._replace(voted_directory_id=Uuid(b"x" * 16)), 0)
    with pytest.raises(ValueError, match="no version 2"):
        encode_quorum_state(VOTED, 2)


def test_a_file_cut_anywhere_is_refused() -> None:
    for version in (0, 1):
        data = encode_quorum_state(VOTED, version)
        for end in range(len(data)):
            with pytest.raises(MalformedFrame):
                decode_quorum_state(data[:end])


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "7",
        '{"data_version":1}',
        '{"leaderId":1,"leaderEpoch":1,"votedId":1,"data_version":2}',
        NO_DIRECTORY.replace("1,", '"1",', 1),
        NO_DIRECTORY.replace("1,", "true,", 1),
        '{"leaderId":1,"leaderEpoch":1,"votedId":1,"votedDirectoryId":"short","data_version":1}',
        '{"leaderId":1,"leaderEpoch":1,"votedId":1,"votedDirectoryId":5,"data_version":1}',
        "[" * 100_000,
    ],
)
def test_a_file_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(MalformedFrame):
        decode_quorum_state(text.encode())
