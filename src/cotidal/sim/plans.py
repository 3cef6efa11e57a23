"""The plans that there are: a table, and what several of its rows share."""

from __future__ import annotations

from typing import Final

from cotidal.sim.plan import LOSS, Plan

_NETWORK: Final = {
    "break": 3,
    "isolate": 2,
    "sever": 3,
    "deafen": 2,
    "flaky": 2,
    "slow-link": 2,
}
_PROCESS: Final = {"kill": 4, "stop": 1, "pause": 3}
_DUTIES: Final = {
    "reassign": 4,
    "cancel": 2,
    "prefer": 4,
    "min-isr": 1,
    "delete-records": 2,
    "unregister": 2,
    "look": 2,
    "err": 6,
}
_ROUNDS: Final = {
    "leader.imbalance.check.interval.seconds": "3",
    "unclean.leader.election.interval.ms": "2000",
    "log.retention.check.interval.ms": "1500",
}
"""What a cluster does by the clock, often enough for a run to see it."""
_GROUPS: Final = {
    "offsets.topic.num.partitions": "2",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.initial.rebalance.delay.ms": "100",
    "offsets.commit.timeout.ms": "1500",
}
_TRANSACTIONS: Final = _GROUPS | {
    "transaction.state.log.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "700",
}
_SMALL: Final = {"slow-disk": 1, "clock-jump": 1}
_SHORT_SEGMENTS: Final = {"internal.segment.bytes": "8000"}
"""A log of several files: a run writes too little for even the least segment.bytes."""

_COMPACTED: Final = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "8000",
    "min.cleanable.dirty.ratio": "0.1",
    "file.delete.delay.ms": "1000",
}
_TWO_IDEMPOTENT: Final = (-1, -1, -1, 1)
"""One alone would never notice that it shares its producer id."""


EXACTLY_ONCE: Final = "+eos"
"""After the name of a plan: the same with processors."""


def with_processors(plan: Plan, count: int = 4) -> Plan:
    """The same, and what is written is processed exactly once.

    ValueError for a plan that gives up what that needs: every record is there, until it is read.
    """
    if plan.may_lose or plan.keys:
        raise ValueError(f"records may go in plan '{plan.name}': nobody can process them all")
    return plan._replace(
        name=f"{plan.name}{EXACTLY_ONCE}",
        processors=count,
        duties={duty: each for duty, each in plan.duties.items() if duty != "delete-records"},
        settings={**_TRANSACTIONS, **plan.settings},
    )


def plan_named(name: str) -> Plan | None:
    """One of PLANS; ``harsh+eos`` is ``harsh`` with processors."""
    base = PLANS.get(name.removesuffix(EXACTLY_ONCE))
    if base is None or base.name == name:
        return base
    return with_processors(base)


PLANS: Final[dict[str, Plan]] = {
    plan.name: plan
    for plan in (
        Plan("calm", "nothing happens to the cluster", {}, seconds=10),
        Plan(
            "mild",
            "one node at a time is killed, stopped or paused; connections break",
            _PROCESS | {"break": 3} | _SMALL,
        ),
        Plan(
            "harsh",
            "nodes die together and alone, the network parts in every way; no data is lost",
            _PROCESS | _NETWORK | _SMALL | {"kill-all": 1, "relapse": 1},
            gap_ms=800,
            down_max=2,
            duties=_DUTIES,
            settings=_ROUNDS,
        ),
        Plan(
            "telling",
            "nodes and their network fail while they tell of it in __cotidal_events",
            _PROCESS | _NETWORK | _SMALL,
            gap_ms=700,
            duties=_DUTIES,
            settings=_ROUNDS | {"cotidal.events.enable": "true"},
        ),
        Plan(
            "dense",
            "harsh in fewer steps: more faults, in less time, while less is written",
            _PROCESS | _NETWORK | _SMALL | {"kill-all": 1},
            seconds=14,
            gap_ms=500,
            down_max=2,
            produce_gap_ms=400,
            duties=_DUTIES,
            settings=_ROUNDS,
        ),
        Plan(
            "brief",
            "dense, and over soon: for many runs in a given time",
            _PROCESS | _NETWORK | _SMALL | {"kill-all": 1},
            seconds=8,
            gap_ms=350,
            down_max=2,
            produce_gap_ms=400,
            duties=_DUTIES,
            settings=_ROUNDS,
        ),
        Plan(
            "wide",
            "five nodes: two replicas of a partition may be down while the quorum lives",
            _PROCESS | _NETWORK | _SMALL,
            nodes=5,
            gap_ms=800,
            down_max=2,
            duties=_DUTIES | {"list-moves": 1},
            acks=_TWO_IDEMPOTENT,
            topic=_SHORT_SEGMENTS,
            settings=_ROUNDS,
        ),
        Plan(
            "lagging",
            "leaders put followers out of the ISR sooner than the controller fences them",
            _PROCESS | _NETWORK | {"slow-link": 6, "slow-disk": 4},
            gap_ms=700,
            settings={"replica.lag.time.max.ms": "400"},
            acks=_TWO_IDEMPOTENT,
        ),
        Plan(
            "lagging-one",
            "the same with min.insync.replicas=1: a leader left alone commits by itself",
            _PROCESS | _NETWORK | {"slow-link": 6, "slow-disk": 4},
            gap_ms=700,
            min_isr=1,
            settings={"replica.lag.time.max.ms": "400"},
            acks=_TWO_IDEMPOTENT,
        ),
        Plan(
            "compaction",
            "every replica compacts its log by itself while nodes die, lag and diverge",
            _PROCESS | _NETWORK | _SMALL | {"kill-all": 1, "power-whole": 2},
            gap_ms=900,
            down_max=2,
            keys=12,
            topic=_COMPACTED,
            settings={"log.cleaner.backoff.ms": "300"},
            acks=_TWO_IDEMPOTENT,
            produce_gap_ms=60,
        ),
        Plan(
            "tombstones",
            "tombstones go soon, and no node is away for longer than they stay",
            {"break": 3, "slow-disk": 1},
            keys=150,
            topic=_COMPACTED | {"delete.retention.ms": "1500"},
            settings={"log.cleaner.backoff.ms": "300"},
            produce_gap_ms=60,
        ),
        Plan(
            "rules",
            "min.insync.replicas goes up and down while followers lag and leaders die",
            _PROCESS | _NETWORK | {"slow-link": 6, "slow-disk": 4},
            gap_ms=700,
            settings={"replica.lag.time.max.ms": "400"},
            admin_gap_ms=0,
            duties={"min-isr": 6},
            duty_gap_ms=150,
        ),
        Plan(
            "throttled",
            "partitions move and catch up under throttles that come and go",
            _PROCESS | _NETWORK,
            nodes=4,
            gap_ms=1_000,
            admin_gap_ms=0,
            duties={"reassign": 4, "cancel": 1, "throttle": 8, "prefer": 1, "stand": 1},
            duty_gap_ms=250,
            settings={"replication.quota.window.num": "4"},  # forgotten within a run
        ),
        Plan(
            "clumsy",
            "an operator asks for one thing after another that must be refused",
            {"break": 2, "kill": 1},
            gap_ms=2_500,
            duties={"err": 3, "pose": 1},
            duty_gap_ms=40,
        ),
        Plan(
            "regions",
            "every node in a region of its own, up to 80 ms from the others",
            _PROCESS | _NETWORK | _SMALL | {"kill-all": 1},
            gap_ms=1_200,
            down_max=2,
            region_ms=80,
            duties=_DUTIES,
            settings=_ROUNDS,
        ),
        Plan(
            "rolling",
            "nodes are stopped again as soon as they are back, by whoever restarts all in turn",
            {"rolling": 1},
            seconds=16,
            gap_ms=3_000,
            acks=(-1, 1),
            partitions=6,
            consumers=1,
            admin_gap_ms=0,
        ),
        Plan(
            "lossy-disk",
            "a power cut loses what was not synced, on one node until every ISR is whole again",
            _NETWORK | _SMALL | {"pause": 2, "power-whole": 6},
        ),
        Plan(
            "one-cut",
            "a power cut at any time, on one node until every ISR has been whole again",
            _NETWORK | _SMALL | {"pause": 3, "power-mended": 6},
            gap_ms=700,
            down_max=2,
            topic=_SHORT_SEGMENTS,
        ),
        Plan(
            "lying",
            "disks say that partitions are synced and lie, and power cuts as in lossy-disk",
            _NETWORK | _SMALL | {"pause": 2, "lie": 6, "power-whole": 6},
            gap_ms=700,
            topic={"flush.messages": "1"},
        ),
        Plan(
            "ebb",
            "two replicas fall out of the ISR and a third loses power; then all come back",
            {"ebb": 1},
            nodes=5,  # a quorum is left when two replicas of three are gone
            seconds=24,
            gap_ms=8_000,
            down_max=3,
        ),
        Plan(
            "ebb-killed",
            "two replicas fall out of the ISR and a third is killed; no data is lost",
            {"ebb-killed": 1},
            nodes=5,
            seconds=24,
            gap_ms=8_000,
            down_max=3,
        ),
        Plan(
            "controller-only",
            "topics come and go while controllers die, one after another and together",
            _PROCESS | _NETWORK | {"kill-all": 1},
            gap_ms=800,
            down_max=2,
            acks=(-1,),
            consumers=1,
            admin_gap_ms=120,
        ),
        Plan(
            "snapshots",
            "the metadata log is summed up every few records while controllers lag, die and return",
            _PROCESS | _NETWORK | _SMALL | {"kill-all": 1, "power": 3},
            gap_ms=1_200,
            acks=(-1,),
            consumers=1,
            admin_gap_ms=120,
            settings={"metadata.log.max.record.bytes.between.snapshots": "400"},
            exempt=LOSS,
        ),
        Plan(
            "reconfiguration",
            "controllers are added and removed, the leader too, while they die and are cut off",
            _PROCESS | _NETWORK | _SMALL | {"kill-all": 1},
            nodes=5,
            first_voters=3,
            voters_gap_ms=500,
            acks=(-1,),
            consumers=1,
            admin_gap_ms=200,
            settings={"metadata.log.max.record.bytes.between.snapshots": "1500"},
        ),
        Plan(
            "joining",
            "the same, and whoever is removed adds itself again",
            _PROCESS | _NETWORK | _SMALL | {"kill-all": 1},
            nodes=5,
            first_voters=3,
            voters_gap_ms=500,
            acks=(-1,),
            consumers=1,
            admin_gap_ms=200,
            settings={
                "metadata.log.max.record.bytes.between.snapshots": "1500",
                "controller.quorum.auto.join.enable": "true",
            },
        ),
        Plan(
            "raising",
            "voters that were fixed become a record, and come and go, while they die",
            _PROCESS | _NETWORK | _SMALL | {"kill-all": 1},
            nodes=5,
            voters_gap_ms=700,
            acks=(-1,),
            consumers=1,
            admin_gap_ms=200,
            settings={"metadata.log.max.record.bytes.between.snapshots": "1500"},
        ),
        Plan(
            "groups",
            "members of two groups come and go and commit, while their coordinators die and move",
            _PROCESS | _NETWORK | _SMALL | {"kill-all": 1},
            gap_ms=1_000,
            down_max=2,
            acks=(-1,),
            consumers=0,
            members=6,
            partitions=4,
            admin_gap_ms=0,
            duties={"prefer": 4, "reassign": 2},
            settings=_ROUNDS | _GROUPS,
        ),
        Plan(
            "eos",
            "processors read, write and commit in transactions, stall and return, and nodes die",
            _PROCESS | _NETWORK | _SMALL | {"kill-all": 1},
            gap_ms=1_200,
            down_max=2,
            acks=(-1,),
            consumers=1,
            processors=4,
            admin_gap_ms=0,
            duties={"prefer": 4, "reassign": 2},
            settings=_ROUNDS | _TRANSACTIONS,
        ),
        Plan(
            "consumers",
            "the same with the consumer protocol: partitions are given up one by one, then given",
            _PROCESS | _NETWORK | _SMALL | {"kill-all": 1},
            gap_ms=1_000,
            down_max=2,
            acks=(-1,),
            consumers=0,
            consumer_members=6,
            partitions=4,
            admin_gap_ms=0,
            duties={"prefer": 4, "reassign": 2},
            settings=_ROUNDS | _GROUPS,
        ),
        Plan(
            "late-members",
            "members that take what they were told of late, when they may have been told of less",
            _PROCESS | _NETWORK | _SMALL,
            gap_ms=2_000,
            acks=(-1,),
            consumers=0,
            consumer_members=6,
            lookup_ms=1_000,
            partitions=8,
            admin_gap_ms=0,
            duties={"prefer": 4, "reassign": 2},
            settings=_ROUNDS | _GROUPS,
        ),
        Plan(
            "both-protocols",
            "members of both protocols in the same groups, which change from one to the other",
            _PROCESS | _NETWORK | _SMALL | {"kill-all": 1},
            gap_ms=1_500,
            down_max=2,
            acks=(-1,),
            consumers=0,
            members=4,
            consumer_members=4,
            partitions=4,
            admin_gap_ms=0,
            duties={"prefer": 4, "reassign": 2},
            settings=_ROUNDS | _GROUPS,
        ),
        Plan(
            "visitors",
            "whoever likes joins, commits, deletes, begins and ends in groups and transactions",
            _PROCESS | _NETWORK | _SMALL,
            gap_ms=1_500,
            acks=(-1,),
            consumers=0,
            consumer_members=4,
            patterns=True,
            keepers=1,
            guests=4,
            strays=3,
            admin_gap_ms=900,
            duties={"prefer": 2, "reassign": 1},
            settings=_ROUNDS
            | _TRANSACTIONS
            | {
                "offsets.retention.check.interval.ms": "1000",
                "transactional.id.expiration.ms": "4000",
                "group.max.size": "3",
                "group.consumer.max.size": "4",
            },
        ),
        Plan(
            "recorded",
            "every life of a node is written down, and lived again when it is over",
            _PROCESS | _NETWORK | _SMALL | {"kill-all": 1},
            seconds=8,
            gap_ms=900,
            down_max=2,
            acks=(-1, 1),
            members=1,
            consumer_members=1,
            guests=1,
            strays=1,
            duties=_DUTIES,
            settings=_ROUNDS | _TRANSACTIONS | {"cotidal.events.enable": "true"},
            recorded=True,
        ),
        Plan(
            "registry",
            "quotas, credentials, settings and features change, while the metadata is summed up",
            _PROCESS | _NETWORK | _SMALL | {"kill-all": 1},
            gap_ms=1_200,
            down_max=2,
            acks=(-1, 1),
            duties={"register": 12, "min-isr": 1, "err": 1},
            duty_gap_ms=120,
            settings=_ROUNDS
            | {
                "metadata.log.max.record.bytes.between.snapshots": "1500",
                "quota.window.num": "3",
            },
        ),
        Plan(
            "beyond",
            "power cuts without regard to what is promised: acknowledged records may go",
            _PROCESS | _NETWORK | _SMALL | {"power": 4},
            gap_ms=700,
            down_max=3,
            duties=_DUTIES | {"unclean": 1, "elect-unclean": 2},
            settings=_ROUNDS,
            exempt=LOSS,
        ),
        Plan(
            "unclean-on",
            "an unclean election is allowed, and power cuts are frequent",
            _PROCESS | _NETWORK | {"power": 4},
            gap_ms=700,
            down_max=3,
            topic={"unclean.leader.election.enable": "true"},
            exempt=LOSS,
        ),
        Plan(
            "seesaw",
            "two replicas come and go in turns, and each is elected uncleanly: logs part and meet",
            {"seesaw": 1},
            gap_ms=9_000,
            replication=2,
            min_isr=1,
            partitions=3,
            topic={"unclean.leader.election.enable": "true"},
            acks=(-1, 1, 1),
            consumers=1,
            admin_gap_ms=0,
            exempt=LOSS,
        ),
        Plan(
            "wiped",
            "a node comes back with an empty disk, while every ISR is whole",
            _SMALL | {"wipe-whole": 6, "break": 4, "slow-link": 2},
        ),
        Plan(
            "bad-disks",
            "the files of single logs fail or cannot grow, until their disk is replaced",
            _SMALL | {"full": 4, "io-error": 4, "break": 2, "kill": 2, "pause": 1},
        ),
        Plan(
            "min-isr-one",
            "min.insync.replicas=1: the cluster writes on with one replica left",
            _PROCESS | _NETWORK | _SMALL,
            down_max=2,
            min_isr=1,
            gap_ms=700,
        ),
        Plan(
            "lone",
            "one node, killed, stopped and paused",
            _PROCESS | {"break": 3} | _SMALL,
            nodes=1,
            replication=1,
            min_isr=1,
        ),
        Plan(
            "lone-flushed",
            "one node that syncs before it answers, and power cuts",
            _PROCESS | {"break": 3, "power": 4} | _SMALL,
            nodes=1,
            replication=1,
            min_isr=1,
            topic={"flush.messages": "1"},
            acks=(-1, -1),
        ),
        Plan(
            "lone-lying",
            "one node that syncs before it answers, on a disk that lies: records may go",
            _PROCESS | {"break": 3, "power": 4, "lie": 4} | _SMALL,
            nodes=1,
            replication=1,
            min_isr=1,
            topic={"flush.messages": "1"},
            acks=(-1, -1),
            exempt=LOSS,
        ),
        Plan(
            "lone-lossy",
            "one node that does not sync, and power cuts: records go, nothing else does",
            _PROCESS | {"break": 3, "power": 4} | _SMALL,
            nodes=1,
            replication=1,
            min_isr=1,
            topic=_SHORT_SEGMENTS,
            exempt=LOSS,
        ),
    )
}
