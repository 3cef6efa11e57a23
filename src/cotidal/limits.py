"""Every bound of the system, with its reason. Nothing grows without a name in this file.

Bounds that a user may move are settings (settings.py) whose defaults stand here.
"""

from __future__ import annotations

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * 1024

# node

CONNECTION_PIPELINE_MAX: Final = 512
"""Requests of one connection that may wait for an answer. Clients keep 5 (Java) to 1,000,000
(librdkafka's max.in.flight) in flight; past this bound we stop reading from the socket."""

FETCH_SESSIONS_MAX: Final = 1000
"""Kafka's max.incremental.fetch.session.cache.slots."""

FETCH_SESSION_IDLE_MS: Final = 120_000
"""A session not used for this long may be evicted by a new one (KIP-227)."""

FETCH_WAIT_MAX_MS: Final = 300_000
"""A parked fetch or produce is answered after this long whatever it asked for."""

PARTITIONS_PER_REQUEST_MAX: Final = 200_000
"""Partitions one request may name. Kafka has clusters of this size; more is an attack."""

# broker

FRAME_BYTES_MAX: Final = 100 * MIB
"""Kafka's socket.request.max.bytes."""

CONNECTIONS_MAX: Final = 5_000
"""Open client connections of one node: each costs about 10 KB here and a file descriptor."""

OUTPUT_HIGH_WATER_BYTES: Final = 4 * MIB
"""Unsent reply bytes of a connection past which its requests are no longer read."""

CONNECTION_IDLE_MS: Final = 600_000
"""Kafka's connections.max.idle.ms."""
