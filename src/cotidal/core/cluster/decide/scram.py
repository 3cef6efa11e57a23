"""SCRAM credentials of users: kept in the metadata log, as KIP-554 and KIP-900 do. Pure. RFC 5802.

Clients send the salted password; stored are the two keys that are made from it, which recognize a
password and cannot be used as one. Nothing here asks for them: no listener speaks SASL.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from typing import Final, NamedTuple

from cotidal.core.cluster.controller import Controller, Decided
from cotidal.core.cluster.image import Image
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.metadata import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

HASHES: Final = {1: "sha256", 2: "sha512"}
"""By the number of the mechanism: SCRAM-SHA-256, SCRAM-SHA-512."""
ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384


class NewCredential(NamedTuple):
    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


def credentials(image: Image) -> Iterator[UserScramCredentialRecord]:
    return (each for each in image.kept.values() if isinstance(each, UserScramCredentialRecord))


def decide_upsert(new: NewCredential) -> Decided:
    refusal = _refuse(new.name, new.mechanism)
    if refusal is not None:
        return refusal
    if not ITERATIONS_MIN <= new.iterations <= ITERATIONS_MAX:
        return Refusal(
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            f"iterations must be between {ITERATIONS_MIN} and {ITERATIONS_MAX}",
        )
    algorithm = HASHES[new.mechanism]
    client_key = hmac.digest(new.salted_password, b"Client Key", algorithm)
    return (
        UserScramCredentialRecord(
            name=new.name,
            mechanism=new.mechanism,
            salt=new.salt,
            stored_key=hashlib.new(algorithm, client_key).digest(),
            server_key=hmac.digest(new.salted_password, b"Server Key", algorithm),
            iterations=new.iterations,
        ),
    )


def decide_delete(controller: Controller, name: str, mechanism: int) -> Decided:
    refusal = _refuse(name, mechanism)
    if refusal is not None:
        return refusal
    if not any(
        (each.name, each.mechanism) == (name, mechanism) for each in credentials(controller.image)
    ):
        return Refusal(ErrorCode.RESOURCE_NOT_FOUND, f"user '{name[:100]}' has no such credential")
    return (RemoveUserScramCredentialRecord(name=name, mechanism=mechanism),)


def _refuse(name: str, mechanism: int) -> Refusal | None:
    if not name:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "the name of a user cannot be empty")
    if mechanism not in HASHES:
        return Refusal(
            ErrorCode.UNSUPPORTED_SASL_MECHANISM,
            f"there is no mechanism {mechanism}: SCRAM-SHA-256 (1) and SCRAM-SHA-512 (2) exist",
        )
    return None
