"""FindCoordinator (key 10), versions 0-6.

KIP-699 several keys from 4 on; KIP-98 transactions (key type 1) from 1 on; KIP-932 shares (2) in 6.

Not there yet: coordinators. Whoever asks is told COORDINATOR_NOT_AVAILABLE and why; clients retry.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.view import View
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from cotidal.values import NO_NODE

SEVERAL_KEYS_SINCE: Final = 4
_KINDS: Final = {0: "consumer groups", 1: "transactions", 2: "share groups"}
_NO_PORT: Final = -1


def answer(request: FindCoordinatorRequest, asked: Asked, view: View) -> FindCoordinatorResponse:
    refusal = _refusal(request.key_type)
    if asked.api_version < SEVERAL_KEYS_SINCE:
        return FindCoordinatorResponse(
            error_code=refusal.error,
            error_message=refusal.text,
            node_id=NO_NODE,
            port=_NO_PORT,
        )
    return FindCoordinatorResponse(
        coordinators=tuple(
            Coordinator(
                key=key,
                node_id=NO_NODE,
                port=_NO_PORT,
                error_code=refusal.error,
                error_message=refusal.text,
            )
            for key in request.coordinator_keys
        )
    )


def _refusal(key_type: int) -> Refusal:
    kind = _KINDS.get(key_type)
    if kind is None:
        return Refusal(ErrorCode.INVALID_REQUEST, f"there is no coordinator of type {key_type}")
    return Refusal(
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        f"{kind} are not served yet; assign partitions by hand and keep offsets yourself",
    )
