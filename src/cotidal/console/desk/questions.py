"""Every question, by the name under which a page asks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cotidal.console.desk import (
    cluster,
    groups,
    health_rows,
    leaders,
    moves,
    producing,
    records,
    settings,
    topics,
    transactions,
)
from cotidal.console.desk.question import Question

QUESTIONS: Final[Mapping[str, Question]] = {
    "overview": Question(cluster.overview),
    "quorum": Question(cluster.quorum),
    "health-rows": Question(health_rows.health_rows),
    "topics": Question(topics.topics),
    "topic": Question(topics.topic),
    "records": Question(records.records),
    "record": Question(records.record),
    "compare": Question(records.compared),
    "groups": Question(groups.groups),
    "group": Question(groups.group),
    "transactions": Question(transactions.transactions),
    "transaction": Question(transactions.transaction),
    "configs": Question(settings.configs),
    "moving": Question(moves.moving),
    "plan-elect": Question(leaders.plan_elect),
    "plan-create-topic": Question(topics.plan_create),
    "plan-add-partitions": Question(topics.plan_grow),
    "plan-delete-topic": Question(topics.plan_delete),
    "plan-set-config": Question(settings.plan_set),
    "plan-reassign": Question(moves.plan_reassign),
    "plan-cancel-reassign": Question(moves.plan_cancel),
    "plan-throttle": Question(moves.plan_throttle),
    "plan-unthrottle": Question(moves.plan_unthrottle),
    "plan-abort-hanging": Question(transactions.plan_abort),
    "elect": Question(leaders.elect, changes=True),
    "create-topic": Question(topics.create, changes=True),
    "add-partitions": Question(topics.grow, changes=True),
    "delete-topic": Question(topics.delete, changes=True),
    "set-config": Question(settings.set_config, changes=True),
    "reassign": Question(moves.begin_reassign, changes=True),
    "cancel-reassign": Question(moves.cancel, changes=True),
    "throttle": Question(moves.throttle, changes=True),
    "unthrottle": Question(moves.unthrottle, changes=True),
    "abort-hanging": Question(transactions.abort_hanging, changes=True),
    "produce": Question(producing.produce, changes=True),
}
