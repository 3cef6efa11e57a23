"""What is to be synced so that a log is on the disk up to an offset.

Made by the log, run anywhere, handed back to the log. ``run`` may run in another thread while the
log is appended to, read from, cut or even removed: a file that is gone needs no sync.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from cotidal.log.filesystem import File, FileSystem
from cotidal.log.segment import Segment
from cotidal.values import Offset


class Flush(NamedTuple):
    filesystem: FileSystem
    end_offset: Offset
    segments: tuple[tuple[Segment, int], ...]
    """Each with its size when the flush began."""
    files: tuple[File, ...]
    directories: tuple[str, ...]
    names: int
    """How many times the log had made or removed files when the flush began."""
    generation: int
    """How many times the log had been cut."""

    def run(self) -> None:
        """Raises OSError when the disk refuses."""
        for file in self.files:
            file.sync()
        for directory in self.directories:
            with contextlib.suppress(FileNotFoundError):
                self.filesystem.sync_directory(directory)
