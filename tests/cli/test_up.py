from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cotidal.broker.local import (
    BROKERS_MAX,
    FIRST_CONTROLLER,
    Layout,
    client_ports,
    configure,
    lay_out,
    node_directory,
    numbers,
    ports_beside,
    prepare,
)
from cotidal.cli.up import how_many

Up = Callable[..., Any]


@pytest.fixture
def up(start_up: Any) -> Iterator[Up]:
    """``up("--data", ...)`` starts a cluster that is gone when the test is."""
    running: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **options: Any) -> tuple[subprocess.Popen[str], str]:
        process, line = start_up(*arguments, **options)
        running.append(process)
        return process, line

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=20)


def stop(process: subprocess.Popen[str], number: signal.Signals = signal.SIGINT) -> tuple[int, str]:
    process.send_signal(number)
    out, _ = process.communicate(timeout=20)
    return process.returncode, out


def address_in(line: str) -> str:
    return line.removeprefix("cotidal is up: ").split()[0]


def test_it_says_where_it_is_and_stops_cleanly_on_ctrl_c(up: Up, data_dir: Path, port: int) -> None:
    process, line = up("--data", str(data_dir), "--port", str(port))
    assert line == (f"cotidal is up: localhost:{port} (data in {data_dir}; Ctrl-C stops it)\n")
    assert stop(process) == (0, f"cotidal has stopped; its data stays in {data_dir}\n")
    assert (data_dir / ".kafka_cleanshutdown").exists()


def test_data_is_there_again_after_a_restart(
    up: Up, cotidal: Any, data_dir: Path, port: int
) -> None:
    arguments = ("--data", str(data_dir), "--port", str(port))
    address = f"localhost:{port}"
    process, _ = up(*arguments)
    assert cotidal("topic", "create", "kept", bootstrap=address).status == 0
    assert cotidal("produce", "kept", stdin="still here\n", bootstrap=address).status == 0
    assert stop(process, signal.SIGTERM)[0] == 0
    up(*arguments)
    outcome = cotidal("consume", "kept", "--until-end", bootstrap=address)
    assert outcome == (0, "still here\n", "")


def test_acknowledged_records_survive_a_kill(
    up: Up, cotidal: Any, data_dir: Path, port: int
) -> None:
    arguments = ("--data", str(data_dir), "--port", str(port))
    address = f"localhost:{port}"
    process, _ = up(*arguments)
    assert cotidal("topic", "create", "kept", bootstrap=address).status == 0
    assert cotidal("produce", "kept", stdin="still here\n", bootstrap=address).status == 0
    process.kill()
    process.wait(20)
    up(*arguments)
    outcome = cotidal("consume", "kept", "--until-end", bootstrap=address)
    assert outcome == (0, "still here\n", "")


def test_an_ephemeral_cluster_leaves_nothing_behind(
    up: Up, tmp_path: Path, port: int, cotidal: Any
) -> None:
    process, line = up("--ephemeral", "--port", str(port), TMPDIR=str(tmp_path))
    assert "no data is kept" in line
    assert cotidal("topic", "create", "t", bootstrap=f"localhost:{port}").status == 0
    assert [path.name.startswith("cotidal-") for path in tmp_path.iterdir()] == [True]
    assert stop(process) == (0, "cotidal has stopped\n")
    assert list(tmp_path.iterdir()) == []


def test_there_are_three_brokers_unless_the_data_say_otherwise(data_dir: Path) -> None:
    new, one, with_controllers = (str(data_dir / each) for each in ("new", "one", "many"))
    prepare(one, node_id=1)
    for number in numbers(Layout(2, 3)):
        prepare(node_directory(with_controllers, number), node_id=number)
    assert how_many(None, None, None) == (3, 0)
    assert how_many(None, None, new) == (3, 0)
    assert how_many(None, "3", new) == (3, 3)
    assert how_many(None, None, one) == (1, 0)
    assert how_many(None, None, with_controllers) == (2, 3)
    assert how_many(5, None, with_controllers) == (5, 0), "which is refused later, in a sentence"


def test_a_port_that_was_asked_for_and_is_taken_is_refused(cotidal: Any, data_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = cotidal("up", "--data", str(data_dir), "--port", str(port), bootstrap="x")
    assert outcome.status == 1
    assert outcome.err == (
        f"cannot listen on localhost:{port}: the port is in use; choose another with --port\n"
    )


def test_without_a_port_the_next_free_one_is_taken_and_said(
    up: Up, data_dir: Path, cotidal: Any
) -> None:
    # Whether 9092 is free on this machine is not ours to say: two clusters must differ anyway.
    _, first = up("--data", str(data_dir / "a"))
    process, second = up("--data", str(data_dir / "b"))
    assert address_in(first) != address_in(second)
    assert cotidal("topic", "list", bootstrap=address_in(second)).status == 0
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert f"port 9092 is in use: {address_in(second).partition(':')[2]} is taken instead" in err


def test_a_directory_in_use_is_refused(up: Up, cotidal: Any, data_dir: Path, port: int) -> None:
    up("--data", str(data_dir), "--port", str(port))
    outcome = cotidal("up", "--data", str(data_dir), bootstrap="x")
    assert outcome == (
        1,
        "",
        f"{data_dir} is in use by another process; stop it, or name another with --data\n",
    )


def test_a_directory_of_other_files_is_refused(offline: Any, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    outcome = offline("up", "--data", str(tmp_path))
    assert outcome.status == 1
    assert "holds other files and no cotidal data" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_directory_of_another_node_is_refused(offline: Any, data_dir: Path) -> None:
    assert offline("format", "--data", str(data_dir), "--node-id", "4").status == 0
    outcome = offline("up", "--data", str(data_dir))
    assert outcome.status == 1
    assert "belongs to node 4" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--brokers", "3", "--override", "node.id=4"], "3 nodes has a node.id of its own"),
        (
            ["--console-port", "8088", "--no-console"],
            "--no-console has no port: leave --console-port out; see `cotidal up --help`",
        ),
        (["--ephemeral", "--data", "d"], "--ephemeral keeps no data: leave --data out"),
        (["--override", "num.partitions"], "'num.partitions' is not a setting"),
    ],
)
def test_what_is_not_there_is_said_with_status_2(
    arguments: list[str], sentence: str, offline: Any
) -> None:
    outcome = offline("up", *arguments)
    assert outcome.status == 2
    assert sentence in outcome.err


def test_a_directory_goes_on_with_as_many_brokers_as_it_has(offline: Any, data_dir: Path) -> None:
    for node in ("1", "2", "3"):
        path = str(data_dir / f"node-{node}")
        assert offline("format", "--data", path, "--node-id", node).status == 0
    for brokers in ("1", "2", "5"):
        outcome = offline("up", "--data", str(data_dir), "--brokers", brokers)
        assert outcome.status == 1
        assert "holds the data of 3 brokers; run it with --brokers 3" in outcome.err
    one = data_dir / "node-1"
    outcome = offline("up", "--data", str(one), "--brokers", "3")
    assert outcome.status == 1
    assert f"{one} holds the data of one broker" in outcome.err


def test_a_directory_of_other_files_is_not_filled_with_brokers(
    offline: Any, tmp_path: Path
) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    outcome = offline("up", "--data", str(tmp_path), "--brokers", "3")
    assert outcome.status == 1
    assert "holds other files and no cotidal data" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("brokers", range(2, 8))
def test_settings_of_a_cluster_suit_its_size(brokers: int, tmp_path: Path) -> None:
    ports = client_ports(brokers, None)
    configs = configure(Layout(brokers, 0), str(tmp_path), ports, {"num.partitions": "7"})
    factor, in_sync = (3, 2) if brokers >= 3 else (2, 1)
    for number, config in enumerate(configs, 1):
        assert config.node_id == number
        assert config.rack == f"rack-{number}"
        assert config.number("default.replication.factor") == factor
        assert config.number("min.insync.replicas") == in_sync
        assert config.number("num.partitions") == 7
        is_voter = any(voter.node_id == number for voter in config.voters)
        assert is_voter == ("controller" in config.roles)
    assert len({each.port for config in configs for each in config.listeners}) == sum(
        len(config.listeners) for config in configs
    )
    assert len(configs[0].voters) == {2: 2, 3: 3, 4: 3}.get(brokers, 5)


@pytest.mark.parametrize("brokers", [1, 3])
def test_each_broker_is_told_what_to_tell_its_clients(brokers: int, tmp_path: Path) -> None:
    """Clients that ask a broker for its advertised.listeners find them set."""
    configs = lay_out(brokers, str(tmp_path), overrides={"broker.rack": "one"})
    for config in configs:
        [listener] = [each for each in config.listeners if each.name == "PLAINTEXT"]
        assert config.settings["advertised.listeners"] == str(listener)
        assert config.advertised == (listener,)


def test_a_broker_whose_listeners_are_given_tells_no_others(tmp_path: Path) -> None:
    [config] = lay_out(1, str(tmp_path), overrides={"listeners": "PLAINTEXT://127.0.0.1:19099"})
    assert "advertised.listeners" not in config.settings
    assert [str(each) for each in config.advertised] == ["PLAINTEXT://127.0.0.1:19099"]


def test_controllers_never_listen_where_callers_get_their_ports() -> None:
    for port in (1024, 9092, 22_500, 30_000, 40_000, 65_000):
        for count in (1, 3, 5):
            found = ports_beside([port, port + 1, port + 2], count)
            assert len(found) == count
            assert all(1024 <= each < 32_768 for each in found)


@pytest.mark.parametrize("brokers", [1, 2, 3, 7])
@pytest.mark.parametrize("controllers", [1, 3, 5])
def test_controllers_of_their_own_are_nothing_else(
    brokers: int, controllers: int, tmp_path: Path
) -> None:
    layout, ports = Layout(brokers, controllers), client_ports(brokers, None)
    configs = configure(layout, str(tmp_path), ports, {"cotidal.metrics.port": "7000"})
    own = list(range(FIRST_CONTROLLER, FIRST_CONTROLLER + controllers))
    assert [config.node_id for config in configs] == [*range(1, brokers + 1), *own]
    for config in configs:
        assert [voter.node_id for voter in config.voters] == own
        is_own = config.node_id in own
        assert config.roles == (("controller",) if is_own else ("broker",))
        assert config.rack == (None if is_own else f"rack-{config.node_id}")
        assert [each.name for each in config.listeners] == (
            ["CONTROLLER"] if is_own else ["PLAINTEXT"]
        )
        assert config.number("min.insync.replicas") == (2 if brokers >= 3 else 1)
    assert len({config.metrics.port for config in configs if config.metrics}) == len(configs)
    assert len({config.log_dirs for config in configs}) == len(configs)


def test_there_is_room_for_as_many_brokers_as_may_be_asked_for(offline: Any) -> None:
    assert offline("up", "--brokers", str(BROKERS_MAX + 1)).status == 2
    assert FIRST_CONTROLLER > BROKERS_MAX


def test_a_cluster_with_controllers_of_its_own_is_picked_up_again(
    up: Up, cotidal: Any, offline: Any, data_dir: Path, port: int
) -> None:
    arguments = ("--brokers", "3", "--controllers", "3", "--data", str(data_dir))
    process, line = up(*arguments, "--port", str(port))
    addresses = address_in(line)
    assert addresses == ",".join(f"localhost:{each}" for each in range(port, port + 3))
    assert cotidal("topic", "create", "kept", bootstrap=addresses).status == 0
    quorum = cotidal("quorum", "--json", bootstrap=addresses).out
    assert [voter["node"] for voter in json.loads(quorum)["voters"]] == [101, 102, 103]
    assert stop(process)[0] == 0
    for other in (["--brokers", "3"], ["--brokers", "1"], ["--brokers", "3", "--controllers", "1"]):
        outcome = offline("up", "--data", str(data_dir), *other)
        assert outcome.status == 1
        assert outcome.err == (
            f"{data_dir} holds the data of 3 brokers and 3 controllers; run it with --brokers 3"
            " --controllers 3, or name another with --data\n"
        )
    up(*arguments, "--port", str(port))
    assert "kept" in cotidal("topic", "list", bootstrap=addresses).out


def test_an_even_number_of_controllers_is_refused(offline: Any) -> None:
    assert offline("up", "--controllers", "2").status == 2


def test_a_wrong_setting_is_one_sentence_with_status_2(offline: Any, data_dir: Path) -> None:
    outcome = offline("up", "--data", str(data_dir), "--override", "num.partitions=many")
    assert outcome.status == 2
    assert "num.partitions" in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_setting_of_ones_own_is_honoured(up: Up, cotidal: Any, data_dir: Path, port: int) -> None:
    up("--data", str(data_dir), "--port", str(port), "--override", "num.partitions=7")
    created = cotidal("topic", "create", "seven", bootstrap=f"localhost:{port}")
    assert created.out == "created topic 'seven': 7 partitions, 1 replica each\n"
