from __future__ import annotations

from cotidal.api import alter_user_scram_credentials, describe_user_scram_credentials
from cotidal.errors import ErrorCode
from cotidal.messages.rpc import alter_user_scram_credentials as altering
from cotidal.messages.rpc import describe_user_scram_credentials as describing


def alter(cluster, asked, *, delete=(), upsert=()):
    request = altering.AlterUserScramCredentialsRequest(
        tuple(altering.ScramCredentialDeletion(*each) for each in delete),
        tuple(altering.ScramCredentialUpsertion(*each, b"s", b"p") for each in upsert),
    )
    decision = alter_user_scram_credentials.decide(request, asked(0), cluster.controller)
    for record in decision.records:
        cluster.image.replay(record)
    return {each.user: ErrorCode(each.error_code) for each in decision.reply.results}


def described(cluster, asked, *names):
    users = tuple(describing.UserName(name) for name in names) or None
    request = describing.DescribeUserScramCredentialsRequest(users)
    reply = describe_user_scram_credentials.answer(request, asked(0), cluster.view)
    return {
        each.user: [tuple(info) for info in each.credential_infos] or ErrorCode(each.error_code)
        for each in reply.results
    }


def test_users_are_told_without_their_secrets(cluster, asked):
    alter(cluster, asked, upsert=[("alice", 1, 4096)])
    alter(cluster, asked, upsert=[("alice", 2, 8192), ("bob", 1, 5000)])
    everybody = {"alice": [(1, 4096), (2, 8192)], "bob": [(1, 5000)]}
    assert described(cluster, asked) == everybody
    assert described(cluster, asked, "bob", "carol") == {
        "bob": [(1, 5000)],
        "carol": ErrorCode.RESOURCE_NOT_FOUND,
    }
    twice = described(cluster, asked, "bob", "bob")
    assert twice == {"bob": ErrorCode.DUPLICATE_RESOURCE}


def test_one_user_is_refused_and_another_changed(cluster, asked):
    outcome = alter(
        cluster, asked, delete=[("nobody", 1)], upsert=[("alice", 1, 4096), ("bob", 1, 1)]
    )
    assert outcome == {
        "nobody": ErrorCode.RESOURCE_NOT_FOUND,
        "alice": ErrorCode.NONE,
        "bob": ErrorCode.UNACCEPTABLE_CREDENTIAL,
    }
    assert described(cluster, asked) == {"alice": [(1, 4096)]}


def test_a_user_that_is_named_twice_is_not_changed(cluster, asked):
    outcome = alter(cluster, asked, upsert=[("alice", 1, 4096), ("alice", 2, 4096)])
    assert outcome == {"alice": ErrorCode.DUPLICATE_RESOURCE}
    assert described(cluster, asked) == {}
