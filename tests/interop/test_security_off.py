"""What is asked about security, and answered as by a Kafka that has none configured.

Run with COTIDAL_INTEROP_SERVER=kafka, the same questions go to Apache Kafka.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.server import Server
from cotidal.api.registry import APIS
from cotidal.client.cluster import Cluster
from cotidal.errors import ErrorCode
from cotidal.messages.rpc import (
    alter_client_quotas,
    alter_user_scram_credentials,
    create_acls,
    create_delegation_token,
    delete_acls,
    describe_acls,
    describe_client_quotas,
    describe_configs,
    describe_delegation_token,
    describe_user_scram_credentials,
    expire_delegation_token,
    incremental_alter_configs,
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
)
from cotidal.messages.rpc.apis import ApiKey

pytestmark = pytest.mark.interop

ALICE = alter_user_scram_credentials.ScramCredentialUpsertion(
    "interop-alice", 1, 4096, b"salt", b"password"
)
QUOTA_OF = alter_client_quotas.AlterClientQuotasRequestEntityData


def limit(kind: str, name: str | None, key: str, value: float) -> Any:
    op = alter_client_quotas.OpData(key, value, False)
    entry = alter_client_quotas.AlterClientQuotasRequestEntryData((QUOTA_OF(kind, name),), (op,))
    return alter_client_quotas.AlterClientQuotasRequest((entry,), validate_only=True)


def setting(kind: int, name: str, key: str, value: str) -> Any:
    change = incremental_alter_configs.AlterableConfig(key, 0, value)
    resource = incremental_alter_configs.AlterConfigsResource(kind, name, (change,))
    return incremental_alter_configs.IncrementalAlterConfigsRequest((resource,), True)


def described(kind: int, name: str) -> Any:
    resource = describe_configs.DescribeConfigsResource(kind, name, None)
    return describe_configs.DescribeConfigsRequest((resource,))


def component(kind: str, match_type: int, match: str | None) -> Any:
    asked = describe_client_quotas.ComponentData(kind, match_type, match)
    return describe_client_quotas.DescribeClientQuotasRequest((asked,))


QUESTIONS: list[tuple[ApiKey, Any, list[ErrorCode]]] = [
    (
        ApiKey.SASL_HANDSHAKE,
        sasl_handshake.SaslHandshakeRequest("PLAIN"),
        [ErrorCode.ILLEGAL_SASL_STATE],
    ),
    (
        ApiKey.SASL_AUTHENTICATE,
        sasl_authenticate.SaslAuthenticateRequest(b"x"),
        [ErrorCode.ILLEGAL_SASL_STATE],
    ),
    (
        ApiKey.DESCRIBE_ACLS,
        describe_acls.DescribeAclsRequest(1, None, 1, None, None, 1, 1),
        [ErrorCode.SECURITY_DISABLED],
    ),
    (
        ApiKey.CREATE_ACLS,
        create_acls.CreateAclsRequest((create_acls.AclCreation(2, "t", 3, "User:a", "*", 3, 3),)),
        [ErrorCode.SECURITY_DISABLED],
    ),
    (
        ApiKey.DELETE_ACLS,
        delete_acls.DeleteAclsRequest(
            (delete_acls.DeleteAclsFilter(2, "t", 3, None, None, 1, 1),) * 2
        ),
        [ErrorCode.SECURITY_DISABLED] * 2,
    ),
    (
        ApiKey.CREATE_DELEGATION_TOKEN,
        create_delegation_token.CreateDelegationTokenRequest("User", "a"),
        [ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED],
    ),
    (
        ApiKey.RENEW_DELEGATION_TOKEN,
        renew_delegation_token.RenewDelegationTokenRequest(b"x"),
        [ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED],
    ),
    (
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        expire_delegation_token.ExpireDelegationTokenRequest(b"x"),
        [ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED],
    ),
    (
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        describe_delegation_token.DescribeDelegationTokenRequest(None),
        [ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED],
    ),
    (
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        describe_user_scram_credentials.DescribeUserScramCredentialsRequest(
            (describe_user_scram_credentials.UserName("nobody"),)
        ),
        [ErrorCode.NONE, ErrorCode.RESOURCE_NOT_FOUND],
    ),
    (
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            (alter_user_scram_credentials.ScramCredentialDeletion("nobody", 1),)
        ),
        [ErrorCode.RESOURCE_NOT_FOUND],
    ),
    (
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            (), (ALICE._replace(iterations=5),)
        ),
        [ErrorCode.UNACCEPTABLE_CREDENTIAL],
    ),
    (
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        alter_user_scram_credentials.AlterUserScramCredentialsRequest((), (ALICE,)),
        [ErrorCode.NONE],
    ),
    *(
        (ApiKey.ALTER_CLIENT_QUOTAS, request, [error])
        for request, error in (
            (limit("user", None, "producer_byte_rate", 5), ErrorCode.NONE),
            (limit("user", "", "producer_byte_rate", 5), ErrorCode.INVALID_REQUEST),
            (limit("host", "h", "producer_byte_rate", 5), ErrorCode.INVALID_REQUEST),
            (limit("user", "a", "producer_byte_rate", 1.5), ErrorCode.INVALID_REQUEST),
            (limit("user", "a", "speed", 1), ErrorCode.INVALID_REQUEST),
            (limit("user", "a", "connection_creation_rate", 1), ErrorCode.INVALID_REQUEST),
        )
    ),
    *(
        (ApiKey.DESCRIBE_CLIENT_QUOTAS, request, [error])
        for request, error in (
            (component("user", 1, None), ErrorCode.NONE),
            (component("user", 0, None), ErrorCode.INVALID_REQUEST),
            (component("user", 9, None), ErrorCode.INVALID_REQUEST),
            (component("host", 2, None), ErrorCode.UNSUPPORTED_VERSION),
        )
    ),
    (ApiKey.DESCRIBE_CONFIGS, described(32, "group"), [ErrorCode.NONE]),
    (ApiKey.DESCRIBE_CONFIGS, described(16, "metrics"), [ErrorCode.NONE]),
    (ApiKey.DESCRIBE_CONFIGS, described(32, ""), [ErrorCode.INVALID_REQUEST]),
    (ApiKey.DESCRIBE_CONFIGS, described(99, "x"), [ErrorCode.INVALID_REQUEST]),
    (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        setting(32, "group", "consumer.session.timeout.ms", "50000"),
        [ErrorCode.NONE],
    ),
    (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        setting(32, "group", "no.such.setting", "1"),
        [ErrorCode.INVALID_CONFIG],
    ),
    (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        setting(99, "x", "no.such.setting", "1"),
        [ErrorCode.INVALID_REQUEST],
    ),
]


def errors_of(answer: Any) -> list[ErrorCode]:
    """Of the whole, then of each part, as far as the answer has room for them."""
    found = [ErrorCode(answer.error_code)] if "error_code" in answer._fields else []
    for value in answer:
        if isinstance(value, tuple):
            found += [ErrorCode(each.error_code) for each in value if hasattr(each, "error_code")]
    return found


@pytest.mark.parametrize(
    ("key", "request_", "errors"),
    QUESTIONS,
    ids=[f"{number}-{APIS[key].name}" for number, (key, _, _) in enumerate(QUESTIONS)],
)
def test_the_error_is_the_one_that_kafka_answers_with(
    server: Server, key: ApiKey, request_: Any, errors: list[ErrorCode]
) -> None:
    response = type(request_).__name__.replace("Request", "Response")
    module = __import__(type(request_).__module__, fromlist=[response])
    with Cluster(server.bootstrap) as cluster:
        answer: Any = cluster.tell(key, request_, getattr(module, response))
    assert errors_of(answer) == errors, answer
