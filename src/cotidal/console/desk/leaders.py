"""Electing leaders by hand: the preferred ones, or anyone where nobody leads."""

from __future__ import annotations

from cotidal.client.moving import Election, Outcome, elect_leaders
from cotidal.client.standing import Bound, ReplicaStanding, loss_text
from cotidal.console.desk.arguments import partition_of
from cotidal.console.desk.plan import Plan, done
from cotidal.console.desk.question import Desk
from cotidal.console.desk.topics import standing_of
from cotidal.console.world import Command, Json, Refused
from cotidal.errors import ErrorCode
from cotidal.limits import DESK_ROWS_MAX
from cotidal.values import TopicPartition
from cotidal.words import counted


def plan_elect(desk: Desk, asked: Command) -> Json:
    """Of ``topic`` and ``partition``, or of all; ``unclean``: anyone, where nobody leads."""
    if asked.flag("unclean", default=False):
        return _plan_unclean(desk, partition_of(asked))
    wanted = _wanted(asked)
    moves = [
        (TopicPartition(topic.name, each.partition), each)
        for topic in desk.cluster.metadata(None if wanted is None else [wanted.topic]).topics
        for each in topic.partitions
        if each.leader != each.replicas[0]
        and wanted in (None, TopicPartition(topic.name, each.partition))
    ]
    if not moves:
        subject = "every partition" if wanted is None else f"{wanted}"
        raise Refused(f"{subject} is led by its preferred leader already")
    rows = [
        [str(at), each.leader if each.has_leader else "nobody", each.replicas[0],
         "elected" if each.replicas[0] in each.isr else "stays: it is not in sync"]
        for at, each in moves[:DESK_ROWS_MAX]
    ]  # fmt: skip
    return Plan(
        "Elect preferred leaders",
        [f"{counted(len(moves), 'partition')} will be led by the first of the replicas, where that"
         " one is in sync. Nothing is lost."],
        "Elect",
        head=("Partition", "Led by", "Preferred", ""),
        rows=rows,
    ).json()  # fmt: skip


def _plan_unclean(desk: Desk, at: TopicPartition) -> Json:
    """What would be lost first, by whom is elected."""
    standing = standing_of(desk, at)
    if standing.partition.has_leader:
        raise Refused(f"{at} has a leader: there is nothing to elect")
    sentences = [
        "Nobody leads this partition. An unclean election lets any replica lead that is there,"
        " and what it lacks is lost for ever.",
    ]
    if standing.unheard:
        nodes = ", ".join(map(str, standing.unheard))
        sentences.append(f"What only broker {nodes} may hold nobody can tell: bring it back if so.")
    safe = standing.partition.isr or standing.eligible.elr
    if safe:
        nodes = " or ".join(map(str, safe))
        sentences.append(f"Nothing is lost if broker {nodes} comes back instead.")
    rows = [
        [replica.node_id, replica.role.value, _text(replica.known_end), _loss(replica),
         replica.why or ""]
        for replica in standing.replicas
    ]  # fmt: skip
    head = ("Broker", "Role", "Log end", "If elected, lost", "Why not in sync")
    return Plan(
        f"Unclean election for {at}", sentences, "Elect, and lose it", loses=True, head=head,
        rows=rows,
    ).json()  # fmt: skip


def elect(desk: Desk, asked: Command) -> Json:
    """``topic``, ``partition``, or all preferred ones; ``unclean``: whatever it costs."""
    if asked.flag("unclean", default=False):
        how, wanted = Election.UNCLEAN, partition_of(asked)
    else:
        how, named = Election.PREFERRED, _wanted(asked)
        if named is None:
            return _told(elect_leaders(desk.cluster, how, None))
        wanted = named
    return _told(elect_leaders(desk.cluster, how, [wanted]))


def _wanted(asked: Command) -> TopicPartition | None:
    return partition_of(asked) if "topic" in asked else None


def _told(outcomes: list[Outcome]) -> Json:
    fine = (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
    refused = [each for each in outcomes if each.error not in fine]
    elected = [str(each.at) for each in outcomes if not each.error]
    if refused and not elected:
        raise Refused(f"{refused[0].at}: {refused[0].reason}")
    if not elected:
        return done("Nothing needed an election.")
    rest = f"; {refused[0].at} was refused: {refused[0].reason}" if refused else ""
    return done(f"Elected a leader for {_listed(elected)}{rest}.")


def _listed(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more"


def _loss(replica: ReplicaStanding) -> str:
    if replica.loss is None:
        return "nobody can tell"
    if replica.loss.bound is Bound.AT_MOST and replica.held is None:
        return f"{loss_text(replica.loss)} (it does not answer, and cannot be elected)"
    return loss_text(replica.loss)


def _text(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"
