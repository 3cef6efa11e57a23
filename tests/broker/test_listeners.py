"""Binding: several addresses, one port; and a sentence when it cannot be."""

from __future__ import annotations

import socket

import pytest

from cotidal.broker.listeners import Listener, ListenerError, SocketBuffers, bind


def _close(sockets: tuple[socket.socket, ...]) -> None:
    for sock in sockets:
        sock.close()


@pytest.mark.parametrize("host", ["localhost", "", "127.0.0.1"])
def test_every_address_of_a_host_gets_the_same_port(host: str) -> None:
    bound, sockets = bind(Listener("PLAINTEXT", host, 0))
    assert bound.port > 0
    assert {sock.getsockname()[1] for sock in sockets} == {bound.port}
    with socket.create_connection(("127.0.0.1", bound.port), 5):
        pass
    _close(sockets)


def test_ipv6_is_listened_on_where_there_is_any() -> None:
    try:
        bound, sockets = bind(Listener("PLAINTEXT", "::1", 0))
    except ListenerError:
        pytest.skip("this machine has no IPv6")
    with socket.create_connection(("::1", bound.port), 5):
        pass
    _close(sockets)


def test_a_port_in_use_is_one_sentence() -> None:
    bound, sockets = bind(Listener("PLAINTEXT", "localhost", 0))
    with pytest.raises(ListenerError, match="the port is in use; stop its owner or choose another"):
        bind(bound)
    _close(sockets)


def test_a_host_without_address_is_one_sentence() -> None:
    with pytest.raises(ListenerError, match="has no address"):
        bind(Listener("PLAINTEXT", "no.such.host.invalid", 0))


def test_buffers_are_set_only_when_asked_for() -> None:
    _, (plain,) = bind(Listener("PLAINTEXT", "127.0.0.1", 0))
    _, (sized,) = bind(Listener("PLAINTEXT", "127.0.0.1", 0), SocketBuffers(receive_bytes=20_000))
    usual = plain.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    assert sized.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in (20_000, 40_000)
    assert usual not in (20_000, 40_000)
    _close((plain, sized))
