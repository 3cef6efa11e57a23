"""Whoever takes himself for a node is refused, and nothing changes by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cotidal.sim.agenda import SECOND
from cotidal.sim.sowing import sow
from cotidal.sim.workloads.impostor import Cluster, claim
from cotidal.sim.world import CONTROLLER_PORT
from simulated import ORDERS, calm_run


def errors(message: Any) -> Iterator[int]:
    """Every error code in an answer, however deep."""
    if isinstance(message, tuple):
        for name, value in zip(getattr(message, "_fields", ()), message, strict=False):
            if name == "error_code":
                yield value
        for value in message:
            yield from errors(value)


def test_every_claim_is_refused_and_changes_nothing() -> None:
    run = calm_run()
    image = run.watch.ghost.image
    topics, brokers = repr(image.topics[ORDERS.topic].partitions), repr(image.brokers)
    cluster = Cluster(run.world.cluster_id, image, len(run.world.machines))
    draw = sow(1, "claims").below
    granted: list[object] = []
    kinds = set()
    for _ in range(150):
        claimed = claim(draw, cluster, ORDERS)
        assert claimed is not None
        kinds.add(claimed.key)

        def on_reply(reply: Any, of: object = claimed) -> None:
            if reply is not None and not any(errors(reply)):
                granted.append((of, reply))

        for node_id in run.world.machines:
            address = (f"node-{node_id}", CONTROLLER_PORT)
            run.operator.ask(address, claimed.key, claimed.version, claimed.request, on_reply)
    run.world.run_for(5 * SECOND)
    assert granted == []
    assert len(kinds) >= 12
    assert repr(image.topics[ORDERS.topic].partitions) == topics
    assert repr(image.brokers) == brokers
