"""What a group subscribes to, and the target that follows from it. Pure.

The epoch rises when a subscription has changed, or the topics of one: come, gone, grown. Topics are
held against the hash of the last epoch whenever the cluster's metadata have changed. The hash is
ours; that of another implementation differs, which costs one epoch when a coordinator moves there.

Expressions are matched when they are new, and at most once in PATTERN_MATCH_GAP_MS after topics
have changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from cotidal.core.groups.consumer.assignors import ASSIGNORS, Subscriber
from cotidal.core.groups.consumer.draft import Draft
from cotidal.core.groups.consumer.group import ConsumerGroup
from cotidal.core.groups.consumer.pattern import Pattern
from cotidal.core.groups.consumer.records import (
    epoch_record,
    regex_record,
    target_epoch_record,
    target_record,
)
from cotidal.core.groups.state import Groups, Seen
from cotidal.core.groups.surroundings import KnownTopic
from cotidal.limits import PATTERN_MATCH_GAP_MS, PATTERNS_KEPT_MAX
from cotidal.messages.records.group import ConsumerGroupRegularExpressionValue
from cotidal.values import Millis


def bring_up_to_date(groups: Groups, draft: Draft, *, changed: bool) -> None:
    """Expressions, epoch and target; ``changed``: a subscription has, or there is a new member."""
    known = draft.group
    seen = groups.seen.get(known.id)
    version = groups.surroundings.version
    if changed or seen is None or seen.version != version:
        matched_at = _match(groups, draft, seen)
        now_hash = metadata_hash(groups, draft.group)
        if changed or now_hash != draft.group.metadata_hash:
            draft.add(epoch_record(known.id, draft.group.epoch + 1, now_hash))
        if matched_at is not None and not draft.records:
            # What is yet to be written may not be: then it is looked for again.
            groups.seen[known.id] = Seen(version, matched_at)
    if draft.group.epoch > draft.group.target_epoch:
        _assign(groups, draft)


def _match(groups: Groups, draft: Draft, seen: Seen | None) -> Millis | None:
    """Match what has to be; when all that is matched was, or None if some of it is put off."""
    group = draft.group
    wanted = {
        each.subscribed_topic_regex: None
        for each in group.members.values()
        if each.subscribed_topic_regex
    }
    for regex in tuple(group.regexes):
        if regex not in wanted:
            draft.add(regex_record(group.id, regex, None))
    now = groups.at.now
    if not wanted:
        return now
    if seen is None or seen.version == groups.surroundings.version:
        due = seen is None
    else:
        due = now - seen.matched_at >= PATTERN_MATCH_GAP_MS
    names: tuple[str, ...] | None = None
    for regex in wanted:
        found = draft.group.regexes.get(regex)
        if found is not None and not due:
            continue
        if names is None:
            names = tuple(groups.surroundings.topic_names())
        pattern = pattern_of(groups, regex)
        matched = tuple(sorted(name for name in names if pattern.matches(name)))
        if found is None or found.topics != matched:
            version, wall = groups.surroundings.version, groups.at.wall
            value = ConsumerGroupRegularExpressionValue(matched, version, wall)
            draft.add(regex_record(group.id, regex, value))
    if seen is not None and not due:
        return seen.matched_at if seen.version == groups.surroundings.version else None
    return now


def pattern_of(groups: Groups, regex: str) -> Pattern:
    """Raises BadPattern."""
    found = groups.patterns.get(regex)
    if found is None:
        found = Pattern(regex)
        if len(groups.patterns) >= PATTERNS_KEPT_MAX:
            groups.patterns.clear()
        groups.patterns[regex] = found
    return found


def metadata_hash(groups: Groups, group: ConsumerGroup) -> int:
    """Of the topics that anybody subscribes to and that are there."""
    topics = _known(groups, sorted(group.subscribed_topics()))
    if not topics:
        return 0
    digest = blake2b(digest_size=8)
    for topic in topics:
        name = topic.name.encode()
        digest.update(len(name).to_bytes(4, "big") + name + topic.topic_id)
        digest.update(topic.partitions.to_bytes(4, "big"))
    return int.from_bytes(digest.digest(), "big", signed=True)


def _known(groups: Groups, names: Iterable[str]) -> list[KnownTopic]:
    found = (groups.surroundings.topic(name) for name in names)
    return [topic for topic in found if topic is not None]


def _assign(groups: Groups, draft: Draft) -> None:
    group = draft.group
    counts = {
        topic.topic_id: topic.partitions for topic in _known(groups, group.subscribed_topics())
    }
    subscribers = {
        id_: Subscriber(
            tuple(topic.topic_id for topic in _known(groups, group.topics_of(member))),
            group.targets.get(id_, ()),
            member.instance_id,
        )
        for id_, member in group.members.items()
    }
    targets = ASSIGNORS[assignor_of(groups, group)](subscribers, counts)
    for id_, target in targets.items():
        if group.targets.get(id_) != target:
            draft.add(target_record(group.id, id_, target))
    draft.add(target_epoch_record(group.id, group.epoch, groups.at.wall))


def assignor_of(groups: Groups, group: ConsumerGroup) -> str:
    """The one that most members ask for, of those who ask."""
    votes: dict[str, int] = {}
    for member in group.members.values():
        if member.server_assignor in groups.rules.consumers.assignors:
            votes[member.server_assignor] = votes.get(member.server_assignor, 0) + 1
    default = groups.rules.consumers.assignors[0]
    return max(votes, key=lambda name: votes[name], default=default)
