"""What differs between two pictures. Pure.

A patch is what RFC 7396 calls a merge patch: an object takes what it names from the patch, None
takes a member away, and everything that is no object is replaced whole. No picture has None in it.

    merged(before, difference(before, after)) == after
"""

from __future__ import annotations

from cotidal.console.world import Json


def difference(before: Json, after: Json) -> Json:
    """Empty if there is none."""
    patch: Json = {name: None for name in before if name not in after}
    for name, value in after.items():
        known = before.get(name)
        if known == value:
            continue
        if isinstance(known, dict) and isinstance(value, dict):
            patch[name] = difference(known, value)
        else:
            patch[name] = value
    return patch


def merged(before: Json, patch: Json) -> Json:
    """What the page does with a patch."""
    after = dict(before)
    for name, value in patch.items():
        known = after.get(name)
        if value is None:
            after.pop(name, None)
        elif isinstance(value, dict):
            after[name] = merged(known if isinstance(known, dict) else {}, value)
        else:
            after[name] = value
    return after
