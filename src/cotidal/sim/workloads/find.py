"""Where the coordinator of a group or of a transactional id is, asked of anyone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.find_coordinator import FindCoordinatorRequest
from cotidal.sim.network import Address
from cotidal.sim.workloads.client import Client

FIND_VERSION: Final = 4
GROUP_KEY: Final = 0
TRANSACTIONAL_KEY: Final = 1


def find_coordinator(
    client: Client, key: str, then: Callable[[Address | None], None], *, kind: int = GROUP_KEY
) -> None:
    """``then`` is told None where nobody knows, now."""
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))

    def found(reply: Any) -> None:
        told = None if reply is None else reply.coordinators[0]
        then(None if told is None or told.error_code else (told.host, told.port))

    client.ask(client.anyone(), ApiKey.FIND_COORDINATOR, FIND_VERSION, request, found)
