"""DescribeConfigs (key 32), versions 1-4.

Synonyms and sources since 1 (KIP-226), types and documentation since 3 (KIP-569). Topics, this
broker, the defaults of all brokers (an empty name: only what is set there), groups (KIP-848). A
broker's loggers and client metrics are answered and have no settings.

Not there: another broker's settings; clients send the question to the broker that they ask about.
"""

from __future__ import annotations

from collections.abc import Iterator

from cotidal import settings
from cotidal.api.asked import Asked
from cotidal.api.view import View
from cotidal.core.cluster.decide.topics import refuse_name
from cotidal.core.cluster.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from cotidal.settings import Dynamic, Effective, Origin, Setting, Source


def answer(request: DescribeConfigsRequest, asked: Asked, view: View) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=tuple(_result(resource, request, view) for resource in request.resources)
    )


def _result(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, view: View
) -> DescribeConfigsResult:
    refusal = _refusal(resource, view)
    if refusal is not None:
        return DescribeConfigsResult(
            error_code=refusal.error,
            error_message=refusal.text,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
    wanted = resource.configuration_keys
    return DescribeConfigsResult(
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(
            _entry(setting, held, request, broker=resource.resource_type == BROKER_RESOURCE)
            for setting, held in _held(resource, view)
            if not wanted or setting.name in wanted
        ),
    )


def _refusal(resource: DescribeConfigsResource, view: View) -> Refusal | None:
    kind, name = resource.resource_type, resource.resource_name
    if kind == TOPIC_RESOURCE:
        if name in view.image.topics:
            return None
        return refuse_name(name) or Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic '{name}' does not exist"
        )
    if kind in (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE):
        if name == str(view.node_id) or (not name and kind == BROKER_RESOURCE):
            return None
        return Refusal(
            ErrorCode.INVALID_REQUEST,
            f"this is broker {view.node_id} and cannot speak for '{name[:100]}'; ask that broker",
        )
    if kind in (GROUP_RESOURCE, CLIENT_METRICS_RESOURCE):
        if name:
            return None
        return Refusal(ErrorCode.INVALID_REQUEST, "a group or subscription needs a name")
    return Refusal(
        ErrorCode.INVALID_REQUEST,
        f"resource type {kind} has no settings: topics (2), brokers (4) and groups (32) have",
    )


def _held(resource: DescribeConfigsResource, view: View) -> Iterator[tuple[Setting, Effective]]:
    kind, name = resource.resource_type, resource.resource_name
    image, static = view.image, view.settings
    own = image.config(kind, name)
    broker = image.config(BROKER_RESOURCE, str(view.node_id))
    cluster = image.cluster_config
    if kind == TOPIC_RESOURCE:
        for setting in settings.TOPIC.values():
            held = settings.effective(
                setting.name, topic=own, broker=broker, cluster=cluster, static=static
            )
            if held.text is not None:  # internal ones show only where they are set
                yield setting, held
    elif kind == GROUP_RESOURCE:
        for setting in settings.GROUP.values():
            yield (
                setting,
                settings.effective_group(
                    setting.name, group=own, broker=broker, cluster=cluster, static=static
                ),
            )
    elif kind == BROKER_RESOURCE and name:
        for setting in settings.BROKER.values():
            yield (
                setting,
                settings.effective(setting.name, broker=broker, cluster=cluster, static=static),
            )
    elif kind == BROKER_RESOURCE:
        for key, text in cluster.items():
            origin = Origin(key, text, Source.CLUSTER)
            yield settings.BROKER[key], Effective(text, Source.CLUSTER, (origin,), text)


def _entry(
    setting: Setting, held: Effective, request: DescribeConfigsRequest, *, broker: bool
) -> DescribeConfigsResourceResult:
    hidden = setting.sensitive
    synonyms: tuple[DescribeConfigsSynonym, ...] = ()
    if request.include_synonyms:
        synonyms = tuple(
            DescribeConfigsSynonym(name, None if hidden else text, source)
            for name, text, source in held.synonyms
        )
    return DescribeConfigsResourceResult(
        name=setting.name,
        value=None if hidden else held.text,
        read_only=broker and setting.dynamic is Dynamic.READ_ONLY,
        config_source=held.source,
        is_sensitive=hidden,
        synonyms=synonyms,
        config_type=setting.kind,
        documentation=_documentation(setting) if request.include_documentation else None,
    )


def _documentation(setting: Setting) -> str:
    if setting.ignored is None:
        return setting.doc
    return f"{setting.doc} Accepted without effect: {setting.ignored}."
