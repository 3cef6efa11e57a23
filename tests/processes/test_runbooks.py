"""The runbooks, followed to the letter: a test makes the mess and runs the page's own commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")
from cotidal.testing.ports import quiet_port
from real_cluster import Writing, read_all, until

PAGE = Path(__file__).resolve().parents[2] / "docs" / "runbooks.md"
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
VOTERS = (1, 2, 3)
PAGES_PORTS = {1: 9093, 2: 9094, 3: 9095}
IN_SYNC = "every partition has all its replicas in sync"
TOPIC = "orders"
DISK_BYTES = 48 * 1024 * 1024


def commands(title: str) -> list[str]:
    """The commands of one runbook, in order."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.S | re.M)
    assert found is not None, title
    (block,) = re.findall(r"^```sh\n(.*?)^```$", found[1], re.S | re.M)
    return str(block).splitlines()


class Site:
    """The nodes of the page, in a directory of their own: 1 to 3 decide, 4 is a broker only."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clients = {number: quiet_port() for number in (*VOTERS, 4)}
        self.controllers = {number: quiet_port() for number in VOTERS}
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.bootstrap = ",".join(f"localhost:{port}" for port in self.clients.values())
        (directory / "bin").mkdir()
        shim = directory / "bin" / "cotidal"
        shim.write_text(f'#!/bin/sh\nexec {sys.executable} -W error -m cotidal "$@"\n')
        shim.chmod(0o755)

    def write(self, number: int, more: Mapping[str, str] | None = None) -> None:
        """A server.properties; formatted."""
        listeners, roles = f"PLAINTEXT://localhost:{self.clients[number]}", "broker"
        if number in VOTERS:
            listeners += f",CONTROLLER://localhost:{self.controllers[number]}"
            roles = "broker,controller"
        voters = (f"{each}@localhost:{port}" for each, port in self.controllers.items())
        values = {
            "node.id": str(number),
            "process.roles": roles,
            "listeners": listeners,
            "controller.quorum.voters": ",".join(voters),
            "log.dirs": f"data-{number}",
            "broker.rack": f"rack-{number}",
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
            "log.segment.bytes": "1048576",
            "log.segment.delete.delay.ms": "100",
            "log.retention.check.interval.ms": "500",
            **(more or {}),
        }
        path = self.directory / f"n{number}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
        self.run(f"cotidal format --config {path.name} --cluster-id {CLUSTER}")

    def start(self, *numbers: int) -> None:
        for number in numbers:
            assert number not in self.running
            with (self.directory / f"journal-{number}").open("ab") as journal:
                self.running[number] = subprocess.Popen(
                    ["cotidal", "broker", "--config", f"n{number}.properties"],
                    cwd=self.directory,
                    env=self._environment(),
                    stdin=subprocess.DEVNULL,
                    stderr=journal,
                )

    def kill(self, *numbers: int) -> None:
        for number in numbers:
            self.running[number].kill()
        for number in numbers:
            self.running.pop(number).wait(20)

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", line],
            cwd=self.directory,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=60,
        )

    def follow(self, title: str) -> None:
        """Every command of the page. One that starts a node goes on running; the others must
        succeed, a check of the replicas when it has been repeated for a while."""
        for line in commands(title):
            for number, port in PAGES_PORTS.items():
                line = line.replace(f"localhost:{port}", f"localhost:{self.controllers[number]}")
            begun = re.fullmatch(r"cotidal broker --config n(\d)\.properties", line)
            if begun:
                self.start(int(begun[1]))
            else:
                wanted = IN_SYNC if line == "cotidal status --under-replicated" else ""
                self.until_says(line, wanted)

    def until_says(self, line: str, wanted: str) -> None:
        said = ""

        def says() -> bool:
            nonlocal said
            done = self.run(line)
            said = done.stdout + done.stderr
            return done.returncode == 0 and wanted in done.stdout

        try:
            until(says, seconds=60)
        except AssertionError:
            raise AssertionError(f"{line}\n{said}") from None

    def create(self, topic: str, replicas: int) -> None:
        self.until_says(f"cotidal topic create {topic} --partitions 1 --replicas {replicas}", "")
        self.until_says("cotidal status --under-replicated", IN_SYNC)

    def _environment(self) -> dict[str, str]:
        path = f"{self.directory / 'bin'}:{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "COTIDAL_BOOTSTRAP": self.bootstrap}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    for number in VOTERS:
        made.write(number)
    made.start(*VOTERS)
    yield made
    made.kill(*made.running)


def written(site: Site, topic: str = TOPIC) -> set[bytes]:
    """Records, acknowledged by all in-sync replicas."""
    writing = Writing(site.bootstrap, topic, 0)
    writing.until_acknowledged(200)
    writing.finish()
    assert writing.failures == []
    return set(writing.acknowledged)


def assert_holds(site: Site, wanted: set[bytes], topic: str = TOPIC) -> None:
    assert wanted <= set(read_all(site.bootstrap, topic, 0, wanted))


def test_every_runbook_is_followed_by_a_test() -> None:
    here = Path(__file__).read_text()
    for title in re.findall(r"^## (.*)$", PAGE.read_text(), re.M):
        assert f'site.follow("{title}")' in here


def test_the_whole_cluster_is_killed_at_once(site: Site) -> None:
    site.create(TOPIC, replicas=3)
    wanted = written(site)
    site.kill(*VOTERS)
    site.follow("The whole cluster was killed at once")
    assert_holds(site, wanted)


@pytest.mark.slow
def test_a_brokers_machine_is_gone(site: Site) -> None:
    site.write(4)
    site.start(4)
    site.create(TOPIC, replicas=4)
    wanted = written(site)
    site.kill(4)
    shutil.rmtree(site.directory / "data-4")
    site.follow("A broker's machine is gone")
    site.kill(1)
    assert_holds(site, wanted)


@pytest.mark.slow
def test_a_disk_is_replaced(site: Site) -> None:
    two = {"log.dirs": "disk-a,disk-b", "metadata.log.dir": "data-4"}
    site.write(4, two)
    site.start(4)
    topics = (TOPIC, "others", "more")
    for topic in topics:
        site.create(topic, replicas=4)
    wanted = {topic: written(site, topic) for topic in topics}
    lost = site.directory / "disk-b"
    assert list(lost.glob("*-0")), "some of them are on that disk"
    site.kill(4)
    shutil.rmtree(lost)
    lost.mkdir()
    site.follow("A disk was replaced")
    for topic in topics:
        assert_holds(site, wanted[topic], topic)
    assert list(lost.glob("*-0"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "cotidal-test", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system can only be mounted by root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.slow
def test_a_disk_is_full(small_disk: Path, site: Site) -> None:
    site.write(4, {"log.dirs": str(small_disk / "data-4"), "metadata.log.dir": "data-4"})
    site.start(4)
    for topic in ("rubbish", "filling", TOPIC):
        site.create(topic, replicas=4)
    fill = "head -c {} /dev/urandom | base64 -w 60000 | cotidal produce {}"
    wanted = written(site)
    site.until_says(fill.format("12M", "rubbish"), "")
    for _ in range(5):
        site.until_says(fill.format("8M", "filling"), "")
    site.until_says("cotidal status filling", "out of sync")
    site.kill(4)
    site.follow("A disk is full")
    assert_holds(site, wanted)
    written(site, "filling")
    site.until_says("cotidal status --under-replicated", IN_SYNC)
    assert "rubbish" not in site.run("cotidal topic list").stdout


@pytest.mark.slow
def test_the_majority_of_the_controllers_is_gone_for_good(site: Site) -> None:
    site.create(TOPIC, replicas=3)
    wanted = written(site)
    site.kill(*VOTERS)
    for number in (2, 3):
        shutil.rmtree(site.directory / f"data-{number}")
    site.follow("The majority of the controllers is gone for good")
    assert_holds(site, wanted)
    site.create("decided", replicas=3)
