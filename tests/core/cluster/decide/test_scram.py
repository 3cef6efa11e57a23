"""SCRAM credentials: what is stored of a password, and what is refused."""

from __future__ import annotations

import hashlib

import pytest

from cotidal.core.cluster.decide.scram import (
    NewCredential,
    credentials,
    decide_delete,
    decide_upsert,
)
from cotidal.errors import ErrorCode, Refusal

SALT = bytes.fromhex("5b6d99687b7b2cd3a9c1b7e1")
"""RFC 7677 has an example of SCRAM-SHA-256: user, pencil, 4096 iterations."""


def salted(password: bytes, salt: bytes) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", password, salt, 4096)


def test_keys_are_those_of_the_example_in_rfc_7677():
    """The server's key signs the example's exchange with the signature that is printed there."""
    import base64
    import hmac

    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    new = NewCredential("user", 1, 4096, salt, salted(b"pencil", salt))
    (record,) = decide_upsert(new)
    exchange = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    signature = hmac.digest(record.server_key, exchange, "sha256")
    assert base64.b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    masked = hmac.digest(record.stored_key, exchange, "sha256")
    client_key = bytes(a ^ b for a, b in zip(proof, masked, strict=True))
    assert hashlib.sha256(client_key).digest() == record.stored_key


def test_a_credential_is_stored_replaced_and_deleted(scene):
    world = scene()
    for iterations in (4096, 8192):
        world.apply(decide_upsert(NewCredential("alice", 2, iterations, SALT, b"p")))
    assert [(each.name, each.iterations) for each in credentials(world.image)] == [("alice", 8192)]
    world.apply(decide_delete(world.controller, "alice", 2))
    assert list(credentials(world.image)) == []


@pytest.mark.parametrize(
    ("new", "error"),
    [
        (NewCredential("", 1, 4096, SALT, b"p"), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (NewCredential("a", 0, 4096, SALT, b"p"), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (NewCredential("a", 1, 4095, SALT, b"p"), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (NewCredential("a", 1, 16385, SALT, b"p"), ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ],
)
def test_what_makes_no_credential_is_refused(new, error):
    refused = decide_upsert(new)
    assert isinstance(refused, Refusal)
    assert refused.error == error


def test_what_is_not_there_cannot_be_deleted(scene):
    world = scene()
    world.apply(decide_upsert(NewCredential("alice", 1, 4096, SALT, b"p")))
    refused = decide_delete(world.controller, "alice", 2)
    assert isinstance(refused, Refusal)
    assert refused.error == ErrorCode.RESOURCE_NOT_FOUND
