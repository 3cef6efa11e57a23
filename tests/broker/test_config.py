"""server.properties: what is accepted, and the sentence for what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotidal.broker.config import (
    ConfigError,
    Voter,
    bound_addresses,
    from_environment,
    load_config,
    make_config,
)
from cotidal.broker.listeners import Listener
from cotidal.values import NodeId

LEAST = {"node.id": "1", "log.dirs": "/data"}


def test_the_least_configuration_has_kafkas_defaults() -> None:
    config = make_config(LEAST)
    assert config.node_id == 1
    assert config.listeners == (Listener("PLAINTEXT", "", 9092),)
    assert config.advertised == (Listener("PLAINTEXT", "localhost", 9092),)
    assert config.log_dirs == ("/data",)
    assert config.metadata_dir == "/data"
    assert config.metrics is None
    assert config.number("socket.request.max.bytes") == 104857600
    assert config.warnings == ()


def test_a_combined_kraft_node_is_understood() -> None:
    config = make_config(
        {
            **LEAST,
            "process.roles": "broker,controller",
            "controller.listener.names": "CONTROLLER",
            "listeners": "PLAINTEXT://:9092, CONTROLLER://:9093",
            "advertised.listeners": "PLAINTEXT://one.example:19092",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "controller.quorum.voters": "1@localhost:9093",
            "num.network.threads": "3",
            "broker.rack": "a",
            "cotidal.metrics.port": "0",
        }
    )
    assert config.controller_listeners == ("CONTROLLER",)
    assert [str(each) for each in config.advertised] == ["PLAINTEXT://one.example:19092"]
    assert config.metadata_dir == "/data"
    assert config.rack == "a"
    assert config.metrics == Listener("METRICS", "localhost", 0)


@pytest.mark.parametrize("roles", ["broker", "controller", "broker,controller"])
def test_a_node_of_a_cluster_may_be_either_or_both(roles: str) -> None:
    node, listeners = ("9", "PLAINTEXT://:9092") if roles == "broker" else ("1", "CONTROLLER://:1")
    if roles == "broker,controller":
        listeners += ",PLAINTEXT://:9092"
    config = make_config(
        {
            **LEAST,
            "node.id": node,
            "process.roles": roles,
            "listeners": listeners,
            "controller.quorum.voters": "1@a.example:9093, 2@[::1]:9094",
        }
    )
    assert config.roles == tuple(roles.split(","))
    assert config.voters == (Voter(NodeId(1), "a.example", 9093), Voter(NodeId(2), "::1", 9094))


def test_a_port_of_zero_is_told_as_the_one_that_was_found() -> None:
    config = make_config({**LEAST, "listeners": "PLAINTEXT://localhost:0"})
    bound = (Listener("PLAINTEXT", "localhost", 40001),)
    assert bound_addresses(config.advertised, bound) == bound


def test_an_ipv6_listener_is_written_in_brackets() -> None:
    config = make_config({**LEAST, "listeners": "PLAINTEXT://[::1]:9092"})
    assert config.listeners == (Listener("PLAINTEXT", "::1", 9092),)
    assert str(config.listeners[0]) == "PLAINTEXT://[::1]:9092"


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"log.dirs": "/data"}, "node.id is missing"),
        ({"node.id": "one"}, "node.id is 'one', but must be a whole number"),
        ({"node.id": "-1"}, "node.id is '-1', but must be at least 0"),
        ({"replica.lag.max.messages": "4000"}, "removed; use replica.lag.time.max.ms"),
        ({"broker.id": "1"}, "use node.id"),
        ({"process.roles": "broker"}, "a cluster by itself and must be both"),
        ({"controller.quorum.voters": "1"}, "not of the form id@host:port"),
        ({"controller.quorum.voters": "1@a:9093,1@b:9093"}, "node 1 stands there twice"),
        ({"controller.quorum.voters": "2@a:9093"}, "does not name it; add 1@host:port"),
        ({"controller.quorum.voters": "1@a:9093"}, "has none for the controller"),
        (
            {"controller.quorum.voters": "1@a:9093", "process.roles": "broker"},
            "names node 1, whose process.roles is 'broker'",
        ),
        ({"max.connections.per.ip.overrides": "a"}, "not of the form address:count"),
        ({"log.dirs": "/a,/a"}, "names a directory twice"),
        ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"}, "the listener name PLAINTEXT"),
        ({"listeners": "PLAINTEXT://:1,CONTROLLER://:1"}, "a port of its own"),
        ({"listeners": "CONTROLLER://:1"}, "has none for clients"),
        ({"listeners": "localhost:9092"}, "not of the form NAME://host:port"),
        ({"listeners": "PLAINTEXT://localhost:99999"}, "not a port from 0 to 65535"),
        ({"listeners": "PLAINTEXT://::1:9092"}, r"in brackets: \[::1\]"),
        ({"listeners": "SSL://:9092"}, "SSL asks for SSL, but only PLAINTEXT is spoken"),
        ({"listeners": "INSIDE://:9092"}, "add INSIDE:PLAINTEXT to listener.security"),
        ({"listener.security.protocol.map": "A:B"}, "not of the form NAME:PLAINTEXT"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "no client can connect"),
        ({"advertised.listeners": "OTHER://a:1"}, "OTHER is not one of the listeners"),
    ],
)
def test_a_mistake_is_one_sentence(values: dict[str, str], sentence: str) -> None:
    base = {} if values == {"log.dirs": "/data"} else LEAST
    with pytest.raises(ConfigError, match=sentence) as refused:
        make_config({**base, **values})
    assert "\n" not in str(refused.value)


def test_bounds_of_single_addresses_and_socket_buffers_are_read() -> None:
    config = make_config(
        {
            **LEAST,
            "max.connections.per.ip.overrides": "127.0.0.1:5, [::1]:6",
            "socket.send.buffer.bytes": "-1",
            "socket.receive.buffer.bytes": "65536",
        }
    )
    assert config.address_overrides == {"127.0.0.1": 5, "::1": 6}
    assert config.socket_buffers == (None, 65536)


def test_an_unknown_name_is_a_warning_with_the_nearest_known_one() -> None:
    config = make_config({**LEAST, "log.retention.hour": "5"})
    (warning,) = config.warnings
    assert "did you mean log.retention.hours?" in warning
    assert "log.retention.hour" not in config.settings


def test_overrides_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("node.id=1\nlog.dirs=/file\nnum.partitions=2\nbroker.rack=file\n")
    config = load_config(
        str(path),
        overrides={"broker.rack": "override"},
        environment={"COTIDAL_BROKER_RACK": "env", "COTIDAL_LOG_DIRS": "/env", "HOME": "/"},
    )
    assert (config.rack, config.log_dirs, config.number("num.partitions")) == (
        "override",
        ("/env",),
        2,
    )


def test_variables_that_are_no_settings_are_left_alone() -> None:
    found = from_environment({"COTIDAL_BOOTSTRAP": "x:1", "COTIDAL_FOO": "1", "NODE_ID": "3"})
    assert found == {}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "there is no file"), (b"\xff\xfe", "is not UTF-8"), (b"a=\\u1", "line 1: ")],
)
def test_a_file_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    path = tmp_path / "server.properties"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=sentence):
        load_config(str(path))


def test_logs_may_be_in_several_directories_and_metadata_apart() -> None:
    config = make_config({**LEAST, "log.dirs": "/a, /b"})
    assert (config.log_dirs, config.metadata_dir) == (("/a", "/b"), "/a")
    config = make_config({**LEAST, "log.dirs": "/a,/b", "metadata.log.dir": "/m"})
    assert (config.log_dirs, config.metadata_dir) == (("/a", "/b"), "/m")


def test_controllers_to_ask_stand_in_for_fixed_voters() -> None:
    values = {
        "node.id": "4",
        "process.roles": "broker",
        "controller.quorum.bootstrap.servers": "c1:9093, [::1]:9094",
    }
    config = make_config(values)
    assert [(each.host, each.port) for each in config.bootstrap] == [("c1", 9093), ("::1", 9094)]
    assert config.voters == ()
    with pytest.raises(ConfigError, match="listeners has none for the controller"):
        make_config(values | {"process.roles": "controller"} | {"listeners": "PLAINTEXT://:9092"})
    for wrong in ("c1", "c1:0", "c1:port", ":9093"):
        with pytest.raises(ConfigError, match="is not of the form host:port"):
            make_config(values | {"controller.quorum.bootstrap.servers": wrong})
