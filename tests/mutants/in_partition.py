"""Bugs planted in one replica of one partition: leader, ISR, follower, reading, producers."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

LEADER: Final = "core/partition/leader.py"
ISR: Final = "core/partition/isr.py"
FOLLOWER: Final = "core/partition/follower.py"
READING: Final = "core/partition/reading.py"
REPLICA: Final = "core/partition/replica.py"
PRODUCERS: Final = "core/partition/producer_state.py"

LEADER_MUTANTS: Final = (
    Mutant(
        "acks-before-high-watermark",
        "acks=all is answered when the high watermark has passed the record, not when it is written"
        " here (produce, acks=-1)",
        LEADER,
        "return (EndMoved(end_offset), *aborted, *advance_high_watermark(replica, now))",
        "return (EndMoved(end_offset), CompleteAcks(end_offset),"
        " *advance_high_watermark(replica, now))",
        ("harsh", "lossy-disk"),
    ),
    Mutant(
        "high-watermark-from-committed-isr",
        "a replica that was proposed counts before the controller has answered (KIP-497)",
        ISR,
        "        return leadership.isr\n    return proposed",
        "        return leadership.isr\n    return leadership.isr",
        ("lagging", "lagging-one", "wide"),
    ),
    Mutant(
        "high-watermark-below-min-isr",
        "below min.insync.replicas the high watermark stands still: an eligible replica outside the"
        " ISR may be elected (KIP-966)",
        LEADER,
        "if leadership is None or len(leadership.isr) < leadership.min_isr:\n        return ()\n"
        "    reached",
        "if leadership is None:\n        return ()\n    reached",
        ("lagging", "wide"),
    ),
    Mutant(
        "shrink-counted-early",
        "a member that was proposed to leave counts until the controller has answered (KIP-497)",
        ISR,
        "if proposed is None or len(proposed) < len(leadership.isr):",
        "if proposed is None:",
        ("lagging", "lagging-one"),
    ),
    Mutant(
        "join-behind-epoch-start",
        "who joins the ISR has reached what the leader found when it took over (KAFKA-7128)",
        ISR,
        "return reached >= replica.high_watermark and reached >= leadership.epoch_start",
        "return reached >= replica.high_watermark",
        ("lagging", "lagging-one", "wide"),
    ),
    Mutant(
        "join-behind-high-watermark",
        "who joins the ISR has reached the high watermark",
        ISR,
        "return reached >= replica.high_watermark and reached >= leadership.epoch_start",
        "return reached >= leadership.epoch_start",
        ("lagging", "lagging-one", "wide"),
    ),
    Mutant(
        "join-without-incarnation",
        "a proposal names the incarnation of each member that the leader saw fetching (KIP-903)",
        ISR,
        "    return leadership.followers[node_id].broker_epoch",
        "    return NO_BROKER_EPOCH",
        ("lagging", "lossy-disk", "wide"),
    ),
    Mutant(
        "unheard-followers-not-waited-for",
        "of a new leader's followers nothing is known until they fetch: the high watermark waits",
        LEADER,
        "            if must_wait_for(replica, leadership, node_id, progress, now)",
        "            if progress.end_offset >= 0\n"
        "            and must_wait_for(replica, leadership, node_id, progress, now)",
        ("mild", "harsh"),
    ),
    Mutant(
        "stopping-follower-waited-for",
        "a follower outside the ISR that may not join does not hold the high watermark back"
        " (KAFKA-15021)",
        ISR,
        "    return _is_eligible(leadership, node_id, progress) and progress.is_caught_up(",
        "    return progress.is_caught_up(",
        ("mild", "lagging", "wide"),
    ),
    Mutant(
        "late-isr-answer-taken",
        "an answer to an earlier proposal says nothing about this one",
        LEADER,
        "if leadership is None or leadership.proposal != answered.asked:",
        "if leadership is None or leadership.proposal is None:",
        ("lagging", "lagging-one"),
    ),
    Mutant(
        "min-isr-not-asked-before-append",
        "with fewer than min.insync.replicas in sync acks=all is refused before anything is"
        " written (19)",
        LEADER,
        "if acks == ACKS_ALL and len(leadership.isr) < leadership.min_isr:",
        "if acks == ACKS_ALL and not leadership.isr:",
        ("lagging", "wide"),
    ),
    Mutant(
        "epoch-not-entered-on-leading",
        "a leader enters its epoch in the cache when it takes over (KIP-101, KIP-279)",
        LEADER,
        "if replica.epochs.assign(told.epoch, start_offset=epoch_start):",
        "if told.epoch < 0:",
        ("harsh", "mild"),
    ),
    Mutant(
        "epoch-starts-at-high-watermark",
        "a leader's epoch begins at the end of its log, not at its high watermark",
        LEADER,
        "epoch_start = replica.next_offset  #",
        "epoch_start = replica.high_watermark  #",
        ("harsh", "mild"),
    ),
    Mutant(
        "offsets-given-twice",
        "a batch begins where the last admitted one ends, also while the disk is writing that"
        " (OFFSETS_CONTIGUOUS)",
        LEADER,
        "    base_offset = replica.next_offset\n    if header",
        "    base_offset = replica.end_offset\n    if header",
        ("mild",),
    ),
)

FOLLOWER_MUTANTS: Final = (
    Mutant(
        "cut-to-high-watermark-on-following",
        "a new follower keeps what is above its high watermark until the leader's epochs say"
        " otherwise (KIP-101)",
        FOLLOWER,
        "    replica.following = Following(leader=leader, epoch=epoch)\n    return lost",
        "    replica.following = Following(leader=leader, epoch=epoch)\n"
        "    if replica.is_steady and replica.high_watermark < replica.end_offset:\n"
        "        return (*lost, *_cut(replica, replica.high_watermark))\n"
        "    return lost",
        ("harsh", "mild"),
    ),
    Mutant(
        "cut-to-high-watermark-on-divergence",
        "a log that diverged is cut by epoch, never to the high watermark (KIP-101)",
        FOLLOWER,
        "    return _cut(replica, min(cut, replica.end_offset))",
        "    return _cut(replica, replica.high_watermark)",
        ("harsh", "mild"),
    ),
    Mutant(
        "cut-in-one-shot",
        "truncation is iterative: where the leader's epoch is not ours, ours is cut where it ended"
        " here (KIP-279)",
        FOLLOWER,
        "        cut = ours.end_offset\n    else:",
        "        cut = leader.end_offset\n    else:",
        ("lagging-one", "unclean-on", "wide"),
    ),
    Mutant(
        "late-answer-of-another-epoch-taken",
        "an answer to a question of another leader epoch is dropped (KAFKA-18723)",
        FOLLOWER,
        "        replica.is_steady\n        and asked.leader_epoch == following.epoch\n",
        "        replica.is_steady\n",
        ("harsh", "min-isr-one"),
    ),
    Mutant(
        "late-answer-of-another-offset-taken",
        "an answer to a question about another end of the log is dropped (KAFKA-18723)",
        FOLLOWER,
        "        and asked.offset == replica.end_offset\n",
        "",
        ("harsh", "mild"),
    ),
    Mutant(
        "batches-above-the-asked-epoch-taken",
        "batches of an epoch above the one that was asked in are dropped (KAFKA-18723)",
        FOLLOWER,
        "        if header.leader_epoch > asked_epoch:",
        "        if header.leader_epoch < 0:",
        ("harsh", "wide"),
    ),
    Mutant(
        "diverging-answer-moves-marks",
        "an answer that says the logs part moves neither high watermark nor log start"
        " (KAFKA-14704)",
        FOLLOWER,
        "        return _on_diverged(replica, following, answered.diverging, now)  # F3",
        "        following.leader_high_watermark = answered.high_watermark\n"
        "        marks = _follow_marks(replica, following)\n"
        "        return (*marks, *_on_diverged(replica, following, answered.diverging, now))",
        ("lagging", "lagging-one", "wide"),
    ),
    Mutant(
        "high-watermark-beyond-the-end",
        "a follower's high watermark is its leader's, moved into its own log",
        FOLLOWER,
        "    reached = clamped(\n        following.leader_high_watermark,"
        " start=replica.start_offset, end=replica.end_offset\n    )",
        "    reached = following.leader_high_watermark",
        ("mild",),
    ),
    Mutant(
        "log-start-not-followed",
        "a follower's log start follows its leader's",
        FOLLOWER,
        "    if start > replica.start_offset:",
        "    if start > replica.end_offset:",
        ("harsh",),
    ),
    Mutant(
        "empty-epoch-kept",
        "an epoch in which nothing was written goes when the log is cut or opened (KIP-279)",
        REPLICA,
        "    replica.epochs.cut_from(end_offset)\n",
        "",
        ("harsh", "mild"),
    ),
)

READING_MUTANTS: Final = (
    Mutant(
        "divergence-after-range",
        "an offset past the leader's end that comes with an epoch is a divergence, not (1)"
        " (KIP-101)",
        READING,
        "    if last_fetched_epoch != NO_EPOCH:\n        end =",
        "    if offset > replica.end_offset:\n        return _out_of_range(replica, offset)\n"
        "    if last_fetched_epoch != NO_EPOCH:\n        end =",
        ("lagging-one", "harsh", "wide"),
    ),
    Mutant(
        "divergence-not-looked-for",
        "a follower whose last epoch ended earlier at the leader is told to cut (KIP-595)",
        READING,
        "        if end.epoch < last_fetched_epoch or end.end_offset < offset:",
        "        if end.end_offset < 0:",
        ("lagging-one", "harsh"),
    ),
    Mutant(
        "old-leader-serves-newer-epoch",
        "a leader that is asked in an epoch ahead of its own says so and serves nothing (75,"
        " KIP-320)",
        READING,
        "    if current_epoch == known or NO_EPOCH in (known, current_epoch):",
        "    if current_epoch >= known or NO_EPOCH in (known, current_epoch):",
        ("harsh", "lagging-one", "wide"),
    ),
    Mutant(
        "stale-follower-served",
        "a follower that asks in an epoch behind the leader's is fenced (74, KIP-320)",
        READING,
        "    if current_epoch == known or NO_EPOCH in (known, current_epoch):",
        "    if current_epoch <= known or NO_EPOCH in (known, current_epoch):",
        ("harsh", "lagging-one", "wide"),
    ),
    Mutant(
        "consumers-read-to-the-end",
        "consumers read below the high watermark: what lies above may still be cut",
        READING,
        "    return Granted(replica.high_watermark)",
        "    return Granted(replica.end_offset)",
        ("mild",),
    ),
    Mutant(
        "latest-told-before-known",
        "a new leader tells no latest offset until its high watermark has reached what it found"
        " (KIP-207)",
        READING,
        "    if replica.high_watermark < leadership.epoch_start:",
        "    if replica.high_watermark < 0:",
        ("harsh", "mild"),
    ),
)

PRODUCER_MUTANTS: Final = (
    Mutant(
        "duplicate-written-twice",
        "a batch that is in the log already is answered with its offsets, not written again"
        " (KIP-98)",
        PRODUCERS,
        "                return seen",
        "                return None",
        ("mild", "harsh"),
    ),
    Mutant(
        "gap-in-sequence-taken",
        "a batch that does not follow its producer's last one is refused (45)",
        PRODUCERS,
        "                return seen\n        return _gap(batch, expected=expected)",
        "                return seen\n        return None",
        ("harsh", "mild"),
    ),
    Mutant(
        "producers-outlive-the-cut",
        "when the log is cut, what is known of producers goes back with it",
        REPLICA,
        "    replica.producers = Producers()\n    if producers",
        "    if producers",
        ("lagging-one", "harsh", "wide"),
    ),
    Mutant(
        "producers-not-restored",
        "when a log is opened or cut, producers are known again from its batches",
        REPLICA,
        "    replica.producers.replay(headers_after, markers)\n",
        "",
        ("harsh", "mild"),
    ),
    Mutant(
        "follower-forgets-producers",
        "a follower learns producers from what it fetches: it may have to lead",
        FOLLOWER,
        "    replica.producers.replay(taken.headers, taken.markers)\n",
        "",
        ("harsh", "mild"),
    ),
)

PARTITION_MUTANTS: Final = (
    *LEADER_MUTANTS,
    *FOLLOWER_MUTANTS,
    *READING_MUTANTS,
    *PRODUCER_MUTANTS,
)
