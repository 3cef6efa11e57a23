"""The network: order within a connection, and everything else that may go wrong."""

from __future__ import annotations

from cotidal.core.machine import Entropy
from cotidal.sim.agenda import SECOND, Agenda
from cotidal.sim.network import Connection, HostId, Network

HERE, THERE = HostId(1), HostId(2)
PORT = 9092


class End:
    """Either end of a connection; writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.connection: Connection | None = None

    def on_accepted(self, connection: Connection) -> None:
        self.connection = connection
        self.told.append("accepted")

    def on_connected(self, connection: Connection) -> None:
        self.told.append("connected")

    def on_not_connected(self, connection: Connection, refused: bool) -> None:
        self.told.append("refused" if refused else "no answer")

    def on_bytes(self, connection: Connection, data: bytes) -> None:
        self.told.append(data)

    def on_lost(self, connection: Connection) -> None:
        self.told.append("lost")


class Pair:
    def __init__(self, *, listens: bool = True) -> None:
        self.agenda = Agenda()
        self.network = Network(self.agenda, 7)
        self.network.add_host(HERE, "here")
        self.network.add_host(THERE, "there")
        self.caller, self.callee = End(), End()
        if listens:
            self.network.listen(THERE, PORT, self.callee)
        self.connection = self.network.connect(HERE, ("there", PORT), self.caller)

    def wait(self, micros: int = SECOND) -> None:
        self.agenda.run_until(self.agenda.now + micros)


def test_bytes_arrive_in_the_order_in_which_they_were_sent() -> None:
    pair = Pair()
    pair.wait()
    sent = [bytes([number]) for number in range(50)]
    for data in sent:
        pair.network.send_from_caller(pair.connection, data)
    pair.wait()
    assert pair.callee.told == ["accepted", *sent]


def test_a_port_on_which_nobody_listens_refuses() -> None:
    pair = Pair(listens=False)
    pair.wait()
    assert pair.caller.told == ["refused"]


def test_a_host_without_power_does_not_answer() -> None:
    pair = Pair()
    pair.network.power_lost(THERE, Entropy(7))
    pair.wait(10 * SECOND)
    assert pair.caller.told == ["no answer"]


def test_a_killed_process_is_noticed_at_once_and_a_power_cut_is_not() -> None:
    killed, dark = Pair(), Pair()
    killed.wait()
    dark.wait()
    killed.network.process_died(THERE)
    dark.network.power_lost(THERE, Entropy(7))
    killed.wait(10_000)
    dark.wait(10_000)
    assert killed.caller.told == ["connected", "lost"]
    assert dark.caller.told == ["connected"]
    dark.wait(60 * SECOND)
    assert dark.caller.told == ["connected", "lost"]


def test_a_blocked_link_delays_and_does_not_reorder() -> None:
    pair = Pair()
    pair.wait()
    pair.network.send_from_caller(pair.connection, b"on its way")
    pair.network.block(HERE, THERE, Entropy(7))
    pair.network.send_from_caller(pair.connection, b"behind the cut")
    pair.wait(100_000)
    assert pair.callee.told == ["accepted"]
    pair.network.unblock(HERE, THERE)
    pair.wait()
    assert pair.callee.told == ["accepted", b"on its way", b"behind the cut"]


def test_a_link_may_be_blocked_in_one_direction_only() -> None:
    pair = Pair()
    pair.wait()
    pair.network.block(THERE, HERE, Entropy(7))
    pair.network.send_from_caller(pair.connection, b"heard")
    pair.network.send_from_callee(pair.connection, b"not heard")
    pair.wait(100_000)
    assert pair.callee.told == ["accepted", b"heard"]
    assert pair.caller.told == ["connected"]


def test_both_ends_of_a_broken_connection_learn_of_it() -> None:
    pair = Pair()
    pair.wait()
    pair.network.break_connection(pair.connection, Entropy(7))
    pair.wait(5 * SECOND)
    assert pair.caller.told == ["connected", "lost"]
    assert pair.callee.told == ["accepted", "lost"]
    assert not pair.network.connections


def test_what_was_sent_before_a_close_still_arrives() -> None:
    pair = Pair()
    pair.wait()
    pair.network.send_from_callee(pair.connection, b"last words")
    pair.network.close_from_callee(pair.connection)
    pair.wait()
    assert pair.caller.told == ["connected", b"last words", "lost"]


def test_regions_are_apart_and_their_own_hosts_are_not() -> None:
    network = Network(Agenda(), 1)
    network.region_us = 80_000
    for host, region in ((1, 1), (2, 2), (1_001, 1)):
        network.add_host(HostId(host), f"host-{host}")
        network.settle(HostId(host), region)
    there, back = network.link(HostId(1), HostId(2)), network.link(HostId(2), HostId(1))
    assert 20_000 <= there.usual_us <= 80_000 + network.delay_us
    assert there.usual_us == back.usual_us
    assert network.link(HostId(1), HostId(1_001)).usual_us == network.delay_us
