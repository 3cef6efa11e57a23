"""Bugs planted in groups: commits, deletions, subscriptions; and in what is pure about members."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

OFFSETS: Final = "core/groups/offsets.py"
MEMBERSHIP: Final = "core/groups/membership.py"
RECONCILIATION: Final = "core/groups/consumer/reconciliation.py"
PATTERN: Final = "core/groups/consumer/pattern.py"
PLANS: Final = ("visitors",)

GROUP_MUTANTS: Final = (
    Mutant(
        "deleted-offset-kept",
        "an offset that was deleted is told no more (COMMITS_KEPT)",
        OFFSETS,
        "    if not gone:\n        groups.acts.append(answer)\n        return\n",
        "    if gone or not gone:\n        groups.acts.append(answer)\n        return\n",
        PLANS,
    ),
    Mutant(
        "deleted-group-keeps-offsets",
        "with a group go its offsets (COMMITS_KEPT)",
        OFFSETS,
        "    records = [offset_record(ask.group_id, partition, None) for partition in held]\n",
        "    records = [offset_record(ask.group_id, each, None) for each in held if not each]\n",
        PLANS,
    ),
    Mutant(
        "commit-told-before-it-is-kept",
        "a commit is acknowledged when its record is committed, and not before (COMMITS_KEPT)",
        OFFSETS,
        "    groups.acts.append(Write(tuple(records), answer, ask.transaction)"
        " if records else answer)\n",
        "    if records:\n"
        "        groups.acts.append(Write(tuple(records), NoMore(), ask.transaction))\n"
        "    groups.acts.append(answer)\n",
        ("groups", "visitors"),
    ),
    Mutant(
        "last-letter-unread",
        "an expression matches the whole name of a topic (consumer/pattern.py)",
        PATTERN,
        "        for char in name:\n",
        "        for char in name[:-1]:\n",
        PLANS,
    ),
    Mutant(
        "every-full-heartbeat-believed",
        "what a member may still take is nobody else's (ONE_OWNER)",
        RECONCILIATION,
        "        return self.is_full and any(each not in self.owned for each in kept)\n",
        "        return False\n",
        ("late-members",),
    ),
    Mutant(
        "session-ended-with-the-decision",
        "whoever is silent is removed, also when that cannot be written at once (REBALANCES_END)",
        "core/groups/consumer/leaving.py",
        "        keep_alive(groups, group, member_id)  # until then, if it cannot be written now\n",
        "",
        ("visitors",),
    ),
    Mutant(
        "member-ids-from-the-process",
        "what a node decides depends on what it is told, and on its entropy (LIVES_REPEAT)",
        MEMBERSHIP,
        "    digits = groups.entropy.bytes16().hex()\n",
        '    digits = f"{id(groups):032x}"\n',
        ("recorded",),
    ),
)
