"""What the kio package cannot check, because it has no such message or version.

These are compared with Apache Kafka's own classes instead (tools/wire_vectors.py prints the bytes).
A message that kio learns must be removed from here: test_codec_kio.py fails otherwise.
"""

from __future__ import annotations

from typing import Final

OURS: Final = frozenset({"DescribeReplicasRequest", "DescribeReplicasResponse"})
"""Messages of our own, which Apache Kafka lacks too."""

MESSAGES: Final = frozenset({"QuorumStateData"}) | OURS
"""Whole messages that kio lacks, apart from the kinds below."""

KINDS: Final = frozenset({"metadata", "key", "value"})
"""kio has neither the records of the metadata log nor those of the coordinators."""

VERSIONS: Final[dict[str, frozenset[int]]] = {}
"""Versions that kio lacks of messages that it has."""
