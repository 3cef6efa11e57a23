"""Settings of topics and brokers: their values, where each comes from, and changing one."""

from __future__ import annotations

from typing import Final

from cotidal.client.admin import (
    Config,
    Resource,
    change_configs,
    config_json,
    describe_configs,
    source_text,
)
from cotidal.console.desk.arguments import TOPIC_NAME_MAX
from cotidal.console.desk.plan import Plan, done
from cotidal.console.desk.question import Desk
from cotidal.console.world import Command, Json, Refused

VALUE_MAX: Final = 32_767
"""What the protocol's texts can hold."""
EVERY_BROKER: Final = "all"


def configs(desk: Desk, asked: Command) -> Json:
    """``kind`` (topic, broker) and ``name``: every setting, with its meaning where it is told."""
    resource, name = _resource(desk, asked)
    found = describe_configs(desk.cluster, resource, name, documentation=True)
    return {"configs": [config_json(each) for each in found]}


def plan_set(desk: Desk, asked: Command) -> Json:
    resource, name = _resource(desk, asked)
    setting, value = _wanted(asked)
    before = _known(desk, resource, name, setting)
    if before is not None and before.is_read_only:
        raise Refused(f"{setting} can only be changed in server.properties, with a restart")
    was = "unknown" if before is None else _shown(before.value)
    origin = "" if before is None else f" ({source_text(before.source)})"
    target = "its default" if value is None else _shown(value)
    subject = _subject(resource, name)
    sentences = [f"{setting} of {subject} is {was}{origin}; it will be {target}."]
    if before is not None and before.documentation:
        sentences.append(before.documentation)
    return Plan(f"Change a setting of {subject}", sentences, "Change it").json()


def set_config(desk: Desk, asked: Command) -> Json:
    """``setting``, ``value``; without one, back to the default."""
    resource, name = _resource(desk, asked)
    setting, value = _wanted(asked)
    if value is None:
        change_configs(desk.cluster, resource, name, unset=[setting])
    else:
        change_configs(desk.cluster, resource, name, set_to={setting: value})
    target = "has its default" if value is None else f"is {_shown(value)}"
    return done(f"{setting} of {_subject(resource, name)} {target}.")


def _resource(desk: Desk, asked: Command) -> tuple[Resource, str]:
    name = asked.text("name", longest=TOPIC_NAME_MAX)
    if asked.one_of("kind", ("topic", "broker")) == "topic":
        return Resource.TOPIC, name
    if name == EVERY_BROKER:
        return Resource.BROKER, ""
    known = [str(broker.node_id) for broker in desk.cluster.metadata(()).brokers]
    if name not in known:
        raise Refused(f"no broker '{name}' serves; those that do are {', '.join(known)}")
    return Resource.BROKER, name


def _wanted(asked: Command) -> tuple[str, str | None]:
    setting = asked.text("setting").strip()
    if not setting:
        raise Refused("which setting?")
    return setting, asked.text("value", longest=VALUE_MAX) if "value" in asked else None


def _known(desk: Desk, resource: Resource, name: str, setting: str) -> Config | None:
    found = describe_configs(desk.cluster, resource, name, names=[setting], documentation=True)
    return next((each for each in found if each.name == setting), None)


def _subject(resource: Resource, name: str) -> str:
    if resource is Resource.TOPIC:
        return f"topic '{name}'"
    return f"broker {name}" if name else "all brokers"


def _shown(value: str | None) -> str:
    return "not set" if value is None else f"'{value}'"
