"""Bugs planted in logs."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

CLEANING: Final = "log/cleaning.py"

LOG_MUTANTS: Final = (
    Mutant(
        "lost-epochs-believed",
        "after a crash the file of a log's epochs says what its batches do (EPOCHS_MATCH_LOG)",
        "log/recovery.py",
        "if is_told and not clean:",
        "if is_told and clean is None:",
        ("lone-lying", "lying"),
    ),
    Mutant(
        "compaction-keeps-the-oldest",
        "of each key the newest record stays (docs/storage.md)",
        CLEANING,
        "newest(key) > offset",
        "-1 < newest(key) < offset",
        ("tombstones", "compaction"),
    ),
    Mutant(
        "compaction-above-the-high-watermark",
        "what is not committed may be cut: it supersedes nothing",
        "log/log.py",
        "below=min(below, self._recovery_point)",
        "below=self._recovery_point",
        ("compaction",),
    ),
    Mutant(
        "compaction-forgets-where-epochs-begin",
        "the first batch of each leader epoch stays: replicas find where they part by it (KIP-101)",
        CLEANING,
        "if not (begins_epoch or is_last or is_producers_last):",
        "if not (is_last or is_producers_last):",
        ("compaction", "tombstones"),
    ),
    Mutant(
        "tombstone-goes-at-once",
        "a tombstone stays for delete.retention.ms: who reads slowly must see it (KIP-534)",
        CLEANING,
        "keeps_tombstones = horizon is None or self._now < horizon",
        "keeps_tombstones = False",
        ("compaction", "tombstones"),
    ),
)
