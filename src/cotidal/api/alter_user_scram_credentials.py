"""AlterUserScramCredentials (key 51), version 0.

KIP-554. A user is changed wholly or refused; one that is named twice is refused. What is stored is
what SCRAM needs to recognize a password, not the password.

Not there: a listener that uses them.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.core.cluster.controller import Controller, Decided
from cotidal.core.cluster.decide.scram import NewCredential, decide_delete, decide_upsert
from cotidal.core.cluster.image import MetadataRecord
from cotidal.core.machine import Decision
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


def decide(
    request: AlterUserScramCredentialsRequest, asked: Asked, controller: Controller
) -> Decision[MetadataRecord, AlterUserScramCredentialsResponse]:
    by_user: dict[str, Decided] = {}

    def change(name: str, decided: Decided) -> None:
        twice = Refusal(ErrorCode.DUPLICATE_RESOURCE, f"user '{name[:100]}' is named twice")
        by_user[name] = twice if name in by_user else decided

    for gone in request.deletions:
        change(gone.name, decide_delete(controller, gone.name, gone.mechanism))
    for new in request.upsertions:
        change(new.name, decide_upsert(NewCredential(*new)))
    records: list[MetadataRecord] = []
    results = []
    for name, decided in by_user.items():
        if isinstance(decided, Refusal):
            results.append(AlterUserScramCredentialsResult(name, decided.error, decided.text))
        else:
            records.extend(decided)
            results.append(AlterUserScramCredentialsResult(name, ErrorCode.NONE, None))
    return Decision(tuple(records), AlterUserScramCredentialsResponse(results=tuple(results)))
