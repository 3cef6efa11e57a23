"""Quotas of clients, as a cluster is told of them and tells them (KIP-546)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cotidal.client.cluster import Cluster
from cotidal.client.failures import raise_for
from cotidal.messages.rpc.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    OpData,
)
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)


class QuotaOf(NamedTuple):
    entity: Mapping[str, str | None]
    """By type: "user", "client-id". No name: whoever has no quota by name."""
    values: Mapping[str, float]

    @property
    def whose(self) -> str:
        return whose(self.entity)


def whose(entity: Mapping[str, str | None]) -> str:
    parts = [
        f"{kind} {'(default)' if name is None else name}" for kind, name in sorted(entity.items())
    ]
    return ", ".join(reversed(parts))  # the user before its clients


def change_quotas(
    cluster: Cluster, entity: Mapping[str, str | None], values: Mapping[str, float | None]
) -> None:
    """Each of these quotas is set, or removed where it is None."""
    parts = tuple(AlterClientQuotasRequestEntityData(*part) for part in entity.items())
    ops = tuple(OpData(key, value or 0.0, value is None) for key, value in values.items())
    request = AlterClientQuotasRequest((AlterClientQuotasRequestEntryData(parts, ops),))
    response = cluster.tell(ApiKey.ALTER_CLIENT_QUOTAS, request, AlterClientQuotasResponse)
    for entry in response.entries:
        raise_for(entry.error_code, f"the quota of {whose(entity)}", entry.error_message)


def quotas(cluster: Cluster) -> list[QuotaOf]:
    """Of everybody that has one."""
    request = DescribeClientQuotasRequest()
    response = cluster.ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, request, DescribeClientQuotasResponse)
    raise_for(response.error_code, "quotas", response.error_message)
    return [
        QuotaOf(
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in response.entries or ()
    ]
