"""DescribeUserScramCredentials (key 50), version 0.

KIP-554. Credentials are kept and told, without their secrets, as Kafka does whatever its listeners
ask for; none of ours asks for them.

Not there: a listener that uses them.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.api.view import View
from cotidal.core.cluster.decide.scram import credentials
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def answer(
    request: DescribeUserScramCredentialsRequest, asked: Asked, view: View
) -> DescribeUserScramCredentialsResponse:
    infos: dict[str, list[CredentialInfo]] = {}
    for each in credentials(view.image):
        infos.setdefault(each.name, []).append(CredentialInfo(each.mechanism, each.iterations))
    named = [user.name for user in request.users or ()] or list(infos)
    results = []
    for name in dict.fromkeys(named):
        error, why = ErrorCode.NONE, None
        if named.count(name) > 1:
            error, why = ErrorCode.DUPLICATE_RESOURCE, f"user '{name[:100]}' is named twice"
        elif name not in infos:
            error, why = ErrorCode.RESOURCE_NOT_FOUND, f"user '{name[:100]}' has no credential"
        told = () if error else tuple(infos[name])
        results.append(DescribeUserScramCredentialsResult(name, error, why, told))
    return DescribeUserScramCredentialsResponse(error_message=None, results=tuple(results))
