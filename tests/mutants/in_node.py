"""Bugs planted between the machines, and one in the log."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

PRODUCE: Final = "node/produce.py"
FETCH: Final = "node/fetch.py"
PUBLISHING: Final = "node/publishing.py"

NODE_MUTANTS: Final = (
    Mutant(
        "duplicate-acknowledged-early",
        "a duplicate waits where its original waits (spec: producer state, script 23)",
        PRODUCE,
        "            if verdict.next_offset <= reached:  #",
        "            if verdict.next_offset <= reached or not verdict.write:  #",
        ("lagging", "harsh", "wide"),
    ),
    Mutant(
        "parked-produce-outlives-leadership",
        "whoever waits for a partition is failed when its leadership is lost",
        "node/acks.py",
        "(*hosted.until_written.take_all(), *hosted.until_committed.take_all())",
        "hosted.until_written.take_all()",
        ("lagging", "harsh", "wide"),
    ),
    Mutant(
        "acks-one-before-written",
        "acks=1 is answered when the record is written, not when it is admitted",
        PRODUCE,
        "reached = replica.high_watermark if acks == ACKS_ALL else replica.end_offset",
        "reached = replica.high_watermark if acks == ACKS_ALL else replica.next_offset",
        ("mild", "harsh"),
    ),
    Mutant(
        "diverging-fetch-counts",
        "a fetch that diverges does not tell how far its follower has got (KAFKA-13141)",
        FETCH,
        "            and isinstance(verdict, Granted)\n",
        "            and isinstance(verdict, Granted | Diverged)\n",
        ("lagging-one", "harsh", "wide"),
    ),
    Mutant(
        "forgotten-partition-still-served",
        "an incremental fetch serves the session's partitions without those that were forgotten"
        " (KIP-227)",
        FETCH,
        "            session.forget((topic, partition))\n",
        "            session.partitions.get((topic, partition))\n",
        ("mild",),
    ),
    Mutant(
        "rest-without-knowing-the-high-watermark",
        "a follower rests only when it was told that all it has is committed (node/resting.py)",
        "node/resting.py",
        "    if fetched.told_high_watermark != fetched.offset:\n        return False\n",
        "",
        ("mild", "harsh"),
    ),
    Mutant(
        "session-epoch-not-checked",
        "a fetch that is out of order in its session is refused (71, KIP-227)",
        "node/sessions.py",
        "        if session.epoch != epoch:",
        "        if epoch < 0:",
        ("mild",),
    ),
    Mutant(
        "unanswered-proposal-forgotten",
        "a proposal without an answer may have been applied: it stands until it is answered",
        "node/proposals.py",
        "    state.isr_under_way = False\n    _again(state, asked)",
        "    state.isr_under_way = False\n"
        "    for partition, put in asked.proposals.items():\n"
        "        refused = IsrAnswered(put, ErrorCode.OPERATION_NOT_ATTEMPTED)\n"
        "        _deliver(state, partition, refused)",
        ("lagging", "lagging-one", "wide"),
    ),
    Mutant(
        "fenced-brokers-thought-active",
        "a leader counts as eligible for its ISR who is unfenced and not shutting down (KIP-841)",
        PUBLISHING,
        "    return {broker.node_id: broker.epoch for broker in brokers if broker.active}",
        "    return {broker.node_id: broker.epoch for broker in brokers}",
        ("lagging", "mild", "wide"),
    ),
    Mutant(
        "deleted-log-not-removed",
        "a deleted topic's log goes with it, so that its namesake begins with nothing (KIP-516)",
        PUBLISHING,
        "    state.out.append(DeleteLog(replica.partition, replica.topic_id))",
        "    state.opening.pop(replica.partition, None)",
        ("controller-only", "harsh"),
    ),
    Mutant(
        "deleted-topic-still-served",
        "a topic that is deleted is hosted no more",
        PUBLISHING,
        "case RemoveTopicRecord():\n                _drop_topic(state, record.topic_id)",
        "case RemoveTopicRecord():\n                pass",
        ("controller-only", "harsh"),
    ),
    Mutant(
        "metadata-applied-before-commit",
        "a node applies committed metadata only (KIP-595)",
        "node/quorum.py",
        "        if _end_of(batch) > high_watermark:\n            break\n",
        "",
        ("controller-only", "harsh"),
    ),
    Mutant(
        "cut-metadata-still-applied",
        "what is cut from the metadata log is never applied",
        "node/quorum.py",
        "                while duty.tail and duty.tail[-1].base_offset >= offset:\n"
        "                    duty.tail.pop()\n",
        "",
        ("controller-only", "harsh"),
    ),
    Mutant(
        "decided-without-the-tail",
        "a new controller decides upon everything in its log, also what is not yet committed",
        "node/decisions.py",
        "    for _, record in together.counted(tail):\n",
        "    for _, record in together.counted(()):\n",
        ("controller-only", "harsh"),
    ),
    Mutant(
        "decision-told-before-commit",
        "a decision is answered when its records are committed (DURABLE_BEFORE_TOLD)",
        "node/decisions.py",
        "    while duty.in_flight and duty.in_flight[0].end_offset <= high_watermark:",
        "    while duty.in_flight:",
        ("controller-only", "harsh"),
    ),
    Mutant(
        "snapshot-past-commit",
        "a snapshot of the metadata log holds committed records only (KIP-630)",
        "node/snapshots.py",
        "    records = tuple(state.controller.committed.records())",
        "    decider = state.controller.controller\n"
        "    image = state.controller.committed if decider is None else decider.image\n"
        "    records = tuple(image.records())",
        ("snapshots",),
    ),
    Mutant(
        "snapshot-loaded-over-the-image",
        "a snapshot that is loaded takes the place of all that was applied before (KIP-630)",
        "node/snapshots.py",
        "    image = Image()\n",
        "    image = state.controller.committed\n",
        ("snapshots",),
    ),
    Mutant(
        "replies-out-of-order",
        "replies leave a connection in the order of its requests",
        "node/connections.py",
        "        while slots and slots[0].reply is not None:\n            done = slots.popleft()",
        "        while slots and any(each.reply is not None for each in slots):\n"
        "            done = next(each for each in slots if each.reply is not None)\n"
        "            slots.remove(done)",
        ("harsh", "mild"),
    ),
    Mutant(
        "torn-batch-believed",
        "after a crash a log is cut at the first batch whose crc is wrong",
        "log/recovery.py",
        "            *place, check_crc=True, end=file.size, epoch=epoch,",
        "            *place, check_crc=False, end=file.size, epoch=epoch,",
        ("lossy-disk", "lone-lossy", "beyond"),
    ),
    Mutant(
        "cleared-in-silence",
        "a leader knows the epoch of its partition, whatever has raised it (ISR_HEALS)",
        "node/publishing.py",
        "            case ClearElrRecord(topic_name=name):\n",
        "            case ClearElrRecord(topic_name=name) if name is None:\n",
        ("registry",),
    ),
    Mutant(
        "nobody-is-named",
        "metadata that tells of topics names a broker to ask again (SOMEBODY_IS_NAMED)",
        "api/reachability.py",
        "    return found or registered\n",
        "    return found\n",
        ("beyond", "brief"),
    ),
)
