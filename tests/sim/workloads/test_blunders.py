"""Whoever errs is answered, and nothing comes of it."""

from __future__ import annotations

from cotidal.core.machine import Entropy
from cotidal.messages.rpc.apis import ApiKey
from cotidal.sim.agenda import SECOND
from cotidal.sim.workloads.blunders import blunder
from simulated import ORDERS, calm_run, leader_of


def test_every_blunder_is_answered_and_none_is_written() -> None:
    run = calm_run(1)
    for producer in run.producers:
        producer.stop()
    run.world.run_for(SECOND)
    leader = leader_of(run, ORDERS)
    log = leader.disk.log_of(ORDERS)
    assert log is not None
    end = log.end_offset
    entropy = Entropy(1)
    answers: list[tuple[object, object]] = []
    address = (f"node-{leader.node_id}", 9092)
    for _ in range(400):
        wrong = blunder(entropy.below, "orders", 3)
        silent = wrong.key == ApiKey.PRODUCE and wrong.request.acks == 0
        if silent:
            continue  # the connection is closed: there is no other answer
        run.operator.ask(
            address,
            wrong.key,
            wrong.version,
            wrong.request,
            lambda reply, wrong=wrong: answers.append((wrong, reply)),
        )
        run.world.run_for(SECOND // 10)
    run.world.run_for(5 * SECOND)
    assert [wrong for wrong, reply in answers if reply is None] == []
    assert len(answers) > 300
    assert log.end_offset == end
    assert len(run.world.running) == 3
