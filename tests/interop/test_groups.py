"""Kafka's own consumer and its tool for groups: the Java client as a member."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.interop

Tool = Callable[..., str]
PROTOCOLS = ("classic", "consumer")


@pytest.fixture
def filled(tool: Tool, topic: str) -> str:
    tool("kafka-topics", "--create", "--topic", topic, "--partitions", "2")
    lines = "".join(f"{number}:{number}\n" for number in range(20))
    tool(
        "kafka-console-producer",
        *("--topic", topic),
        *("--reader-property", "parse.key=true", "--reader-property", "key.separator=:"),
        typed=lines,
    )
    return topic


def consume(tool: Tool, topic: str, group: str, count: int, protocol: str = "classic") -> list[str]:
    return tool(
        "kafka-console-consumer",
        *("--topic", topic, "--group", group, "--from-beginning"),
        *("--command-property", f"group.protocol={protocol}"),
        *("--max-messages", str(count), "--timeout-ms", "30000"),
    ).splitlines()


def described(tool: Tool, group: str) -> dict[int, list[str]]:
    """By partition: current offset, end, lag."""
    said = tool("kafka-consumer-groups", "--describe", "--group", group)
    rows = [line.split() for line in said.splitlines() if line.startswith(group)]
    return {int(row[2]): row[3:6] for row in rows}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_java_consumer_joins_commits_and_goes_on(
    tool: Tool, filled: str, protocol: str
) -> None:
    group = f"java-{filled}"
    first = consume(tool, filled, group, 12, protocol)
    rest = consume(tool, filled, group, 8, protocol)
    assert sorted(map(int, [*first, *rest])) == list(range(20))
    told = described(tool, group)
    assert sorted(told) == [0, 1]
    assert all(current == end and lag == "0" for current, end, lag in told.values())
    kinds = tool("kafka-consumer-groups", "--list", "--type", protocol)
    assert group in kinds.split()
    state = tool("kafka-consumer-groups", "--describe", "--state", "--group", group)
    assert "Empty" in state


def test_kafkas_tool_lists_resets_and_deletes_groups(tool: Tool, filled: str) -> None:
    group = f"tool-{filled}"
    consume(tool, filled, group, 20)
    assert group in tool("kafka-consumer-groups", "--list").split()
    listed = tool("kafka-consumer-groups", "--list", "--state", "empty")
    assert any(line.split() == [group, "Empty"] for line in listed.splitlines())
    tool(
        "kafka-consumer-groups",
        *("--reset-offsets", "--to-earliest", "--execute", "--group", group, "--topic", filled),
    )
    assert {current for current, _, _ in described(tool, group).values()} == {"0"}
    deleted = tool(
        "kafka-consumer-groups",
        *("--delete-offsets", "--group", group, "--topic", f"{filled}:0"),
    )
    assert "Successful" in deleted
    assert sorted(described(tool, group)) == [1]
    tool("kafka-consumer-groups", "--delete", "--group", group)
    assert group not in tool("kafka-consumer-groups", "--list").split()
