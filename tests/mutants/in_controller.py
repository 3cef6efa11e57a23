"""Bugs planted in the controller: elections, ISR proposals, brokers that come and go."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

LEADERS: Final = "core/cluster/decide/leaders.py"
ISR: Final = "core/cluster/decide/isr.py"
BROKERS: Final = "core/cluster/decide/brokers.py"

CONTROLLER_MUTANTS: Final = (
    Mutant(
        "leader-epoch-not-raised",
        "every election raises the leader epoch (KIP-631)",
        "core/cluster/registered.py",
        "NodeId(record.leader), LeaderEpoch(leader_epoch + 1)",
        "NodeId(record.leader), leader_epoch",
        ("mild", "harsh"),
    ),
    Mutant(
        "election-outside-the-isr",
        "a clean election chooses from the ISR, or from the ELR where that is empty (KIP-966)",
        LEADERS,
        "        if candidate in clean and acceptable(candidate):",
        "        if candidate in replicas and acceptable(candidate):",
        ("lagging", "wide"),
    ),
    Mutant(
        "elr-kept-at-min-isr",
        "with min.insync.replicas in sync nobody else is eligible (KIP-966)",
        LEADERS,
        "    if not rules.elr_enabled or len(isr) >= min(rules.min_isr, len(replicas)):",
        "    if not rules.elr_enabled:",
        ("lagging", "wide"),
    ),
    Mutant(
        "elr-not-kept-below-min-isr",
        "below min.insync.replicas whoever leaves the ISR stays eligible (KIP-966)",
        LEADERS,
        "            if (replica in partition.elr or replica in partition.isr)",
        "            if replica in partition.elr",
        ("lagging", "wide"),
    ),
    Mutant(
        "unclean-election-though-disabled",
        "nobody outside ISR and ELR is elected unless unclean.leader.election.enable says so",
        LEADERS,
        "            return settled if rules.unclean_allowed else ()",
        "            return settled",
        ("wide", "lagging"),
    ),
    Mutant(
        "last-known-leader-before-the-elr",
        "the last known leader is elected only where ISR and ELR are empty (KIP-966)",
        LEADERS,
        "    if rules.elr_enabled and not clean and len(partition.last_known_elr) == 1:",
        "    if rules.elr_enabled and len(partition.last_known_elr) == 1:",
        ("wide", "lagging"),
    ),
    Mutant(
        "new-incarnation-keeps-isr",
        "a new incarnation leaves every ISR in the batch that registers it (KAFKA-18106)",
        BROKERS,
        "    return (broker_record(broker), *moved)",
        "    return (broker_record(broker),)",
        ("lossy-disk", "wide"),
    ),
    Mutant(
        "unclean-restart-keeps-elr",
        "a broker that was not shut down cleanly leaves every ELR: it may have lost the end of its"
        " logs (KIP-966)",
        BROKERS,
        "unclean=not clean)",
        "unclean=False)",
        ("wide", "lagging", "lossy-disk"),
    ),
    Mutant(
        "fenced-broker-keeps-leading",
        "a fenced broker is in no ISR and leads nothing, from the batch on that fences it",
        BROKERS,
        "    return (fenced, *without_broker(controller, node_id))",
        "    return (fenced,)",
        ("mild", "harsh"),
    ),
    Mutant(
        "unfenced-before-caught-up",
        "a broker takes part once it has applied its own registration (KIP-631)",
        BROKERS,
        "        if not leave and not beat.want_fence and caught_up:",
        "        if not leave and not beat.want_fence:",
        ("harsh", "controller-only"),
    ),
    Mutant(
        "fenced-broker-may-join",
        "a fenced broker is not taken into an ISR (107, KIP-841)",
        ISR,
        '        elif broker.fenced:\n            reason = "is fenced"\n',
        "",
        ("lagging", "wide"),
    ),
    Mutant(
        "earlier-incarnation-may-join",
        "a member is taken into the ISR only as the incarnation that the leader saw (107, KIP-903)",
        ISR,
        "        elif epoch not in (NO_BROKER_EPOCH, broker.epoch):",
        "        elif epoch < NO_BROKER_EPOCH:",
        ("lagging", "lossy-disk", "wide"),
    ),
    Mutant(
        "stale-partition-epoch-taken",
        "a proposal that rests on an earlier state of the partition is refused (95)",
        ISR,
        "    if asked.partition_epoch < partition.partition_epoch:",
        "    if asked.partition_epoch < 0:",
        ("lagging", "lagging-one", "wide"),
    ),
    Mutant(
        "deposed-leader-changes-isr",
        "a proposal of an earlier leader epoch, or of who does not lead, is refused (74, 42)",
        ISR,
        "    if asked.leader_epoch < partition.leader_epoch:\n"
        "        return Refusal(ErrorCode.FENCED_LEADER_EPOCH)\n"
        "    if sender != partition.leader:",
        "    if asked.leader_epoch < 0:",
        ("lagging-one", "lagging", "wide"),
    ),
    Mutant(
        "stale-broker-epoch-heard",
        "nothing is taken from a broker under an epoch that is not the registered one (77)",
        ISR,
        "    if broker is not None and broker.epoch == epoch:",
        "    if broker is not None:",
        ("lagging", "wide"),
    ),
    Mutant(
        "producer-ids-handed-out-twice",
        "no two blocks of producer ids share an id (KIP-730)",
        "core/cluster/decide/producer_ids.py",
        "next_producer_id=first + BLOCK_SIZE",
        "next_producer_id=first",
        ("lagging", "wide"),
    ),
    Mutant(
        "preferred-election-below-threshold",
        "preferred leaders get back what they lost only where more than"
        " leader.imbalance.per.broker.percentage is led elsewhere",
        "core/cluster/decide/elections.py",
        "if image.is_active(node_id) and len(partitions) * 100 > percentage * preferring[node_id]",
        "if image.is_active(node_id) and percentage >= 0",
        ("mild", "harsh"),
    ),
)
