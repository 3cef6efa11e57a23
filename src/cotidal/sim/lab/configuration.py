"""What is compared: settings of a cluster, its topics and its producers. Pure.

A configuration says nothing about faults. ``plan_of`` puts it under the faults of a plan; all
configurations are put under the same schedules, and nothing else differs between them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cotidal.sim.plan import LOSS, Plan

PRODUCE_GAP_MS: Final = 20
PARTITIONS: Final = 4
"""And one more (run.py)."""


class Configuration(NamedTuple):
    name: str
    acks: int = -1
    replicas: int = 3
    min_isr: int = 2
    unclean: bool = False
    elr: bool = True
    idempotent: bool = True
    """Counts with acks=all only."""
    flush_messages: int = 0
    """0: the operating system writes when it likes, as Kafka recommends."""
    region_ms: int = 0
    """Not 0: every node stands in a region of its own, at most so far from another."""
    lag_ms: int = 0
    """replica.lag.time.max.ms; 0: the default."""

    @property
    def keeps(self) -> bool:
        """Theory: no acknowledged record is lost to one power cut at a time.

        With min ISR 2 one cut leaves another replica that holds what was acknowledged, and eligible
        leader replicas (KIP-966) see to it that such a one is elected. With every record flushed
        there is nothing that a cut could take. Unclean election undoes both.
        """
        held_twice = self.min_isr >= 2 and self.elr
        return self.acks == -1 and not self.unclean and (held_twice or self.flush_messages == 1)


def plan_of(configuration: Configuration, faults: Plan) -> Plan:
    """The plan's faults, and a workload of one producer and five partitions, with these settings.

    Records may be lost without the run being called broken: they are what is measured. Every other
    promise is looked after as ever.
    """
    topic = {"unclean.leader.election.enable": str(configuration.unclean).lower()}
    if configuration.flush_messages:
        topic["flush.messages"] = str(configuration.flush_messages)
    settings = {}
    if configuration.lag_ms:
        settings["replica.lag.time.max.ms"] = str(configuration.lag_ms)
    return faults._replace(
        acks=(configuration.acks,),
        replication=configuration.replicas,
        min_isr=configuration.min_isr,
        elr=configuration.elr,
        idempotence="on" if configuration.idempotent else "off",
        region_ms=configuration.region_ms,
        topic={**faults.topic, **topic},
        settings={**faults.settings, **settings},
        gathered=True,
        partitions=PARTITIONS,
        produce_gap_ms=PRODUCE_GAP_MS,
        consumers=0,
        admin_gap_ms=0,
        duties={},
        exempt=faults.exempt | LOSS,
    )


COMPARED: Final = (
    Configuration("acks=0", acks=0),
    Configuration("acks=1", acks=1),
    Configuration("acks=all, min ISR 1", min_isr=1),
    Configuration("acks=all, min ISR 1, unclean", min_isr=1, unclean=True),
    Configuration("acks=all, min ISR 1, flushed", min_isr=1, flush_messages=1),
    Configuration("acks=all, min ISR 2"),
    Configuration("acks=all, min ISR 2, unclean", unclean=True),
    Configuration("acks=all, min ISR 2, no ELR", elr=False),
    Configuration("acks=all, min ISR 2, not idempotent", idempotent=False),
    Configuration("acks=all, min ISR 2, regions 50 ms apart", region_ms=50),
)
"""Side by side under the same faults, from the least to the most that is promised."""
