"""A group as the records of a decision under way would make it. Pure.

A heartbeat may change a subscription, and with it the epoch, the target and what the member has:
each step looks at what the steps before it have made. The group itself changes when the records are
replayed, all of them or none.
"""

from __future__ import annotations

from typing import cast

from cotidal.core.coordinator import KeyedRecord, Tell, Waiter, Write
from cotidal.core.groups.consumer.group import ConsumerGroup, ConsumerKey
from cotidal.core.groups.state import Groups, NoMore
from cotidal.limits import CONSUMER_RECORDS_PER_WRITE


class Draft:
    __slots__ = ("_is_copy", "group", "records")

    def __init__(self, group: ConsumerGroup, *, before: tuple[KeyedRecord, ...] = ()) -> None:
        """``before``: records of something else that make way for the group."""
        self.group = group
        self.records: list[KeyedRecord] = list(before)
        self._is_copy = False

    def add(self, *records: KeyedRecord) -> None:
        """Records of this group."""
        if records and not self._is_copy:
            self.group = self.group.copy()
            self._is_copy = True
        for record in records:
            self.group.replay(cast(ConsumerKey, record.key), record.value)
        self.records.extend(records)

    def write(self, groups: Groups, waiter: Waiter | None = None, answer: object = None) -> None:
        """What was decided goes into the log; then, or at once if that is nothing, the answer.

        In one batch, unless the group is so large that one cannot hold its target. That may be cut
        anywhere: until the record of the target's epoch, which is the last, the target counts as
        missing and is made anew.
        """
        then = NoMore() if waiter is None else Tell(waiter, answer)
        records = self.records
        if not records:
            if isinstance(then, Tell):
                groups.acts.append(then)
            return
        for first in range(0, len(records), CONSUMER_RECORDS_PER_WRITE):
            last = first + CONSUMER_RECORDS_PER_WRITE
            part = tuple(records[first:last])
            groups.acts.append(Write(part, then if last >= len(records) else NoMore()))
