"""Nothing is told before it is durable, and nothing waits for more than it needs."""

from __future__ import annotations

from cotidal.core.quorum.effects import AppendOwn, Committed, Effect, Persist, WriteState
from cotidal.core.quorum.events import PersistToken
from cotidal.core.quorum.outbox import Outbox
from cotidal.messages.records.quorum import QuorumStateData
from cotidal.values import LeaderEpoch, Offset


def state(epoch: int) -> WriteState:
    return WriteState(QuorumStateData(leader_epoch=epoch))


def append(offset: int) -> AppendOwn:
    return AppendOwn(Offset(offset), LeaderEpoch(1), None)


def word(number: int) -> Effect:
    return Committed(Offset(number))


def told(effects: tuple[Effect, ...]) -> list[int]:
    return [effect.high_watermark for effect in effects if isinstance(effect, Committed)]


def persists(effects: tuple[Effect, ...]) -> list[Persist]:
    return [effect for effect in effects if isinstance(effect, Persist)]


def drain(outbox: Outbox, end: int = 0) -> tuple[Effect, ...]:
    effects = outbox.drain(Offset(end))
    outbox.check()
    return effects


def test_what_follows_a_write_waits_for_it() -> None:
    outbox = Outbox()
    outbox.tell(word(1))
    outbox.write(state(1))
    outbox.tell(word(2))
    effects = drain(outbox)
    assert told(effects) == [1]
    outbox.on_persisted(persists(effects)[0].token)
    assert told(drain(outbox)) == [2]


def test_writes_asked_for_meanwhile_share_the_next_persist() -> None:
    outbox = Outbox()
    outbox.write(append(0))
    first = persists(drain(outbox, 1))[0]
    outbox.write(append(1))
    outbox.tell(word(1))
    outbox.write(append(2))
    outbox.tell(word(2))
    assert drain(outbox, 3) == ()
    outbox.on_persisted(first.token)
    effects = drain(outbox, 3)
    assert told(effects) == []
    second = persists(effects)[0]
    assert len(second.writes) == 2
    assert outbox.durable_end == 1
    outbox.on_persisted(second.token)
    assert told(drain(outbox, 3)) == [1, 2]
    assert outbox.durable_end == 3


def test_a_fetch_answer_waits_for_the_epoch_but_not_for_new_records() -> None:
    outbox = Outbox()
    outbox.write(state(1))
    first = persists(drain(outbox))[0]
    outbox.tell_after_state(word(1))
    outbox.write(append(0))
    outbox.tell_after_state(word(2))
    outbox.tell(word(3))
    assert told(drain(outbox, 1)) == []
    outbox.on_persisted(first.token)
    assert told(drain(outbox, 1)) == [1, 2]


def test_a_state_that_nobody_was_told_of_is_replaced() -> None:
    outbox = Outbox()
    outbox.write(state(1))
    outbox.write(state(2))
    assert persists(drain(outbox))[0].writes == (state(2),)


def test_a_cut_log_is_durable_only_below_the_cut() -> None:
    outbox = Outbox()
    outbox.write(append(0))
    first = persists(drain(outbox, 9))[0]
    outbox.cut_from(Offset(4))
    outbox.on_persisted(first.token)
    assert outbox.durable_end == 4
    assert first.token == PersistToken(1)
