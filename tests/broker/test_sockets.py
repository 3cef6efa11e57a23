"""Every TCP connection without delay; within one machine without pacing."""

from __future__ import annotations

import socket
import sys

import pytest

from cotidal.broker.sockets import IN_MEMORY, is_loopback, prepare

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets one choose")


def congestion_of(sock: socket.socket) -> bytes:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")


def test_nothing_is_delayed_wherever_the_peer_is() -> None:
    with socket.socket() as sock:
        prepare(sock, "192.0.2.1")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@linux_only
def test_only_a_connection_within_the_machine_loses_the_systems_congestion_control() -> None:
    with socket.socket() as near, socket.socket() as far:
        before = congestion_of(far)
        prepare(near, "127.0.0.1")
        prepare(far, "192.0.2.1")
        assert congestion_of(near) == IN_MEMORY
        assert congestion_of(far) == before


def test_a_socket_without_tcp_is_left_as_it_is() -> None:
    left, right = socket.socketpair()
    with left, right:
        prepare(left, "?")


@pytest.mark.parametrize("address", ["127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.1"])
def test_the_addresses_of_the_machine_itself(address: str) -> None:
    assert is_loopback(address)


@pytest.mark.parametrize(
    "address", ["?", "", "192.0.2.127", "1270.0.0.1", "::127.0.0.1", "fe80::1"]
)
def test_other_addresses(address: str) -> None:
    assert not is_loopback(address)
