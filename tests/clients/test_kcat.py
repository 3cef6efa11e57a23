"""kcat, the tool in everybody's hands, where it is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from real_cluster import RealCluster
from real_node import RealNode
from tests.clients.confluent import Confluent

KCAT = shutil.which("kcat") or shutil.which("kafkacat")

pytestmark = pytest.mark.skipif(KCAT is None, reason="kcat is not on the PATH")


def kcat(node: RealNode | RealCluster, *arguments: str, given: str = "") -> str:
    assert KCAT is not None
    ended = subprocess.run(
        [KCAT, "-b", node.bootstrap, *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_it_lists_the_cluster(node: RealNode, topic: str, confluent: Confluent) -> None:
    confluent.create_topic(topic, partitions=2)
    listed = json.loads(kcat(node, "-L", "-J"))
    assert [each["name"] for each in listed["brokers"]] == [node.bootstrap]
    partitions = {each["topic"]: len(each["partitions"]) for each in listed["topics"]}
    assert partitions[topic] == 2


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_it_reads_what_it_wrote(
    node: RealNode, topic: str, confluent: Confluent, codec: str
) -> None:
    confluent.create_topic(topic)
    kcat(node, "-P", "-t", topic, "-K:", "-z", codec, "-H", "h=1", given="a:1\nb:2\nc:3\n")
    read = kcat(node, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%o %k %s %h\\n")
    assert read.splitlines() == ["0 a 1 h=1", "1 b 2 h=1", "2 c 3 h=1"]


def test_it_asks_for_an_offset_by_time(node: RealNode, topic: str, confluent: Confluent) -> None:
    confluent.create_topic(topic)
    kcat(node, "-P", "-t", topic, given="a\nb\n")
    assert kcat(node, "-Q", "-t", f"{topic}:0:1000").split() == [topic, "[0]", "offset", "0"]


def test_it_writes_and_reads_on_three_brokers_though_one_is_killed(tmp_path: Path) -> None:
    with RealCluster(tmp_path) as cluster:
        cluster.create("letters", 3)
        given = "".join(f"key-{number}:{number}\n" for number in range(200))
        kcat(cluster, "-P", "-t", "letters", "-K:", "-X", "acks=all", given=given)
        listed = json.loads(kcat(cluster, "-L", "-J", "-t", "letters"))
        (topic,) = listed["topics"]
        assert [len(each["replicas"]) for each in topic["partitions"]] == [3, 3, 3]
        cluster.kill(topic["partitions"][0]["leader"])
        kcat(cluster, "-P", "-t", "letters", "-K:", "-X", "acks=all", given="last:200\n")
        read = kcat(cluster, "-C", "-t", "letters", "-o", "beginning", "-e", "-q", "-f", "%s\\n")
        assert sorted(map(int, read.split())) == list(range(201))
