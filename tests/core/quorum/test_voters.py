"""Voter keys, and voters that come and go with the log."""

from __future__ import annotations

from cotidal.core.quorum.voters import VoterHistory
from cotidal.messages.records.quorum import KRaftVersionRecord, LeaderChangeMessage
from cotidal.values import Offset
from quorum_bench import key
from quorum_world import voters


def test_another_directory_is_another_replica() -> None:
    assert voters(1, 2).has(key(2))
    assert not voters(1, 2).has(key(2, life=1))


def test_an_unknown_directory_stands_for_any() -> None:
    static = voters(1, 2, version=0)
    assert static.has(key(2, life=9))
    assert static.key_for(key(2, life=9)) == static.key_for(key(2, life=8))
    assert static.key_for(key(3)) == key(3)


def test_voters_stay_in_order_of_id() -> None:
    changed = voters(1, 5).with_voter(voters(3).voters[0])
    assert changed.ids == (1, 3, 5)
    assert changed.without(key(5)).ids == (1, 3)
    assert changed.without(key(5, life=1)).ids == (1, 3, 5)


def test_voters_are_in_force_from_their_record_on_and_go_with_it() -> None:
    history = VoterHistory(voters(1), kraft_version=1)
    assert not history.is_from_log
    assert history.append(Offset(4), voters(1, 2).record())
    assert history.append(Offset(9), voters(1, 2, 3).record())
    assert not history.append(Offset(10), LeaderChangeMessage())
    assert history.latest.voters.ids == (1, 2, 3)
    assert not history.cut_from(Offset(10))
    assert history.cut_from(Offset(9))
    assert history.latest.voters.ids == (1, 2)
    assert history.cut_from(Offset(0))
    assert history.latest.voters.ids == (1,)


def test_the_version_comes_and_goes_in_the_same_way() -> None:
    history = VoterHistory(voters(1), kraft_version=0)
    assert history.append(Offset(3), KRaftVersionRecord(kraft_version=1))
    assert history.latest.can_change
    assert history.changes_from(Offset(0)) == 0
    history.cut_from(Offset(3))
    assert not history.latest.can_change


def test_cleaning_keeps_what_was_in_force_at_the_new_start() -> None:
    history = VoterHistory(voters(1), kraft_version=1)
    for offset, count in ((4, 2), (9, 3), (15, 4)):
        history.append(Offset(offset), voters(*range(1, count + 1)).record())
    history.cut_below(Offset(10))
    assert [entry.offset for entry in history.entries] == [9, 15]
    assert history.changes_from(Offset(10)) == 1
