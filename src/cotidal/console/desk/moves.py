"""Moving partitions to other brokers: a plan, its beginning, how far it has got, taking it back;
and what replicas that catch up may take of the network."""

from __future__ import annotations

from cotidal.client.assignment import Assignment, Impossible
from cotidal.client.moving import Outcome, ongoing, reassign
from cotidal.client.reassignment import Step, begin, look, moving_json, plan_steps
from cotidal.client.throttling import (
    broker_throttles,
    lift,
    limit_brokers,
    limit_topics,
    rate_from_text,
    topic_throttles,
)
from cotidal.console.desk.arguments import INT32_MAX, brokers_of, partitions_of, topics_of
from cotidal.console.desk.plan import Plan, done
from cotidal.console.desk.question import Desk
from cotidal.console.world import Command, Json, Refused
from cotidal.limits import DESK_ROWS_MAX
from cotidal.values import NodeId, TopicPartition
from cotidal.words import counted


def moving(desk: Desk, asked: Command) -> Json:
    """What is under way, and what is throttled."""
    metadata = desk.cluster.metadata()
    brokers = broker_throttles(desk.cluster, [broker.node_id for broker in metadata.brokers])
    topics = topic_throttles(desk.cluster, [topic.name for topic in metadata.topics])
    return {
        "moving": [moving_json(each) for each in look(desk.cluster)[:DESK_ROWS_MAX]],
        "brokers": [each._asdict() for each in brokers],
        "topics": [each._asdict() for each in topics],
    }


def plan_reassign(desk: Desk, asked: Command) -> Json:
    """``topics`` (none: all), ``brokers`` (none: all that serve), ``without``, ``replicas``."""
    replicas = asked.number("replicas", 0, least=0, most=INT32_MAX >> 16)
    allowed = brokers_of(asked, "brokers")
    throttle = _rate(asked)
    try:
        steps = plan_steps(
            desk.cluster,
            topics_of(asked),
            brokers=allowed or None,
            without=brokers_of(asked, "without"),
            replicas=replicas or None,
        )
    except Impossible as wrong:
        raise Refused(str(wrong)) from None
    if not steps:
        raise Refused("everything is where it should be: nothing would move")
    steps = steps[:DESK_ROWS_MAX]
    copied = sum(step.copied_bytes for step in steps)
    sentences = [
        f"{counted(len(steps), 'partition')} will change; {copied:,} bytes will be copied."
    ]
    if throttle is not None:
        sentences.append(f"Whoever catches up takes at most {throttle:,} bytes a second.")
    elif copied:
        sentences.append("Without a throttle, copying takes as much of the network as there is.")
    return Plan(
        "Move partitions",
        sentences,
        "Begin to move",
        head=("Partition", "Now", "Planned", "Copies, bytes"),
        rows=[_step_row(step) for step in steps],
        arguments={
            "targets": [[step.at.topic, step.at.partition, list(step.planned)] for step in steps]
        },
    ).json()


def begin_reassign(desk: Desk, asked: Command) -> Json:
    """``targets``: just what the plan told; ``throttle``: a rate."""
    return _told(begin(desk.cluster, _targets(asked), throttle=_rate(asked)), "moves")


def plan_cancel(desk: Desk, asked: Command) -> Json:
    chosen = _under_way(desk, asked)
    return Plan(
        "Stop moving",
        ["These partitions stay where they were; what new replicas have copied is dropped."],
        "Stop moving them",
        head=("Partition",),
        rows=[[str(at)] for at in chosen[:DESK_ROWS_MAX]],
        arguments={"partitions": [list(at) for at in chosen]},
    ).json()


def cancel(desk: Desk, asked: Command) -> Json:
    chosen = _under_way(desk, asked)
    return _told(reassign(desk.cluster, dict.fromkeys(chosen)), "stays where it was")


def plan_throttle(desk: Desk, asked: Command) -> Json:
    rate, topics = _rate(asked), topics_of(asked)
    if rate is None:
        raise Refused("which rate? write it like 500KB, 10MB or 1048576")
    for name in topics:
        desk.cluster.topic(name)
    whose = f"of {', '.join(topics)}" if topics else "of topics that are throttled already"
    return Plan(
        "Throttle replication",
        [f"Replicas {whose} that are not in sync will take at most {rate:,} bytes a second into"
         " and out of each broker. Whoever is in sync is never held back."],
        "Throttle",
    ).json()  # fmt: skip


def throttle(desk: Desk, asked: Command) -> Json:
    rate = _rate(asked)
    if rate is None:
        raise Refused("which rate? write it like 500KB, 10MB or 1048576")
    limit_topics(desk.cluster, topics_of(asked))
    limit_brokers(desk.cluster, [b.node_id for b in desk.cluster.metadata(()).brokers], rate)
    return done(f"Throttled replicas take at most {rate:,} bytes a second.")


def plan_unthrottle(desk: Desk, asked: Command) -> Json:
    brokers, topics = _throttled(desk)
    if not brokers and not topics:
        raise Refused("nothing is throttled")
    what = [*(f"broker {node}" for node in brokers), *(f"topic '{name}'" for name in topics)]
    return Plan(
        "Lift every throttle",
        [f"Throttled no more: {', '.join(what)}."],
        "Lift",
    ).json()


def unthrottle(desk: Desk, asked: Command) -> Json:
    brokers, topics = _throttled(desk)
    lift(desk.cluster, brokers=brokers, topics=topics)
    return done("Nothing is throttled.")


def _throttled(desk: Desk) -> tuple[list[NodeId], list[str]]:
    metadata = desk.cluster.metadata()
    brokers = broker_throttles(desk.cluster, [broker.node_id for broker in metadata.brokers])
    topics = topic_throttles(desk.cluster, [topic.name for topic in metadata.topics])
    return [each.node_id for each in brokers], [each.topic for each in topics]


def _rate(asked: Command) -> int | None:
    text = asked.text("throttle", "").strip()
    try:
        return rate_from_text(text) if text else None
    except ValueError as wrong:
        raise Refused(str(wrong)) from None


def _step_row(step: Step) -> list[object]:
    now, planned = (", ".join(map(str, nodes)) for nodes in (step.now, step.planned))
    return [str(step.at), now, planned, f"{step.copied_bytes:,}"]


def _targets(asked: Command) -> dict[TopicPartition, Assignment]:
    found: dict[TopicPartition, Assignment] = {}
    for each in asked.list_of("targets"):
        match each:
            case [str() as topic, int() as partition, [*nodes]] if nodes and all(
                type(node) is int for node in nodes
            ):
                found[TopicPartition(topic, partition)] = tuple(map(NodeId, nodes))
            case _:
                raise Refused("'targets' is a list of a topic, a partition and its brokers each")
    if not found:
        raise Refused("nothing to move: make a plan first")
    return found


def _under_way(desk: Desk, asked: Command) -> list[TopicPartition]:
    """Of ``partitions``, or of all."""
    named = set(partitions_of(asked))
    chosen = [each.at for each in ongoing(desk.cluster) if not named or each.at in named]
    if not chosen:
        raise Refused("nothing of that is being moved")
    return chosen


def _told(outcomes: list[Outcome], verb: str) -> Json:
    refused = [each for each in outcomes if each.error]
    fine = [str(each.at) for each in outcomes if not each.error]
    if refused and not fine:
        raise Refused(refused[0].reason)
    rest = f"; {refused[0].at} was refused: {refused[0].reason}" if refused else ""
    listed = ", ".join(fine) if len(fine) <= 3 else f"{fine[0]} and {len(fine) - 1} more"
    return done(f"{listed} {verb if len(fine) <= 1 else _plural(verb)}{rest}.")


def _plural(verb: str) -> str:
    first, _, rest = verb.partition(" ")
    return f"{first.removesuffix('s')} {rest}".strip()
