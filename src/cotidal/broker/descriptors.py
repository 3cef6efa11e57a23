"""Open files of a process: how many there may be, and how they are shared out."""

from __future__ import annotations

from typing import NamedTuple

from cotidal.broker.journal import Journal
from cotidal.limits import (
    CONNECTIONS_MAX,
    DESCRIPTORS_RESERVED,
    LOG_OPEN_FILES,
    OPEN_FILES_MAX,
)


class Descriptors(NamedTuple):
    """How the open files that this process may have are shared out.

    A node that has none left cannot even import a module: connections are refused before that.
    """

    files: int
    connections: int


def descriptors() -> Descriptors:
    try:
        import resource
    except ImportError:
        return Descriptors(LOG_OPEN_FILES, CONNECTIONS_MAX)
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return Descriptors(LOG_OPEN_FILES, CONNECTIONS_MAX)
    files = min(OPEN_FILES_MAX, limit // 2)
    return Descriptors(files, max(1, limit - files - DESCRIPTORS_RESERVED))


def raise_limit(journal: Journal) -> None:
    """As many files and connections as this user may have."""
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):
        journal.debug("the limit of open files could not be raised")
