"""Ports for clusters side by side: nobody is given what another has, or had just now."""

from __future__ import annotations

import socket

from cotidal.testing.ports import PORTS, SHARES, Share


def test_workers_never_meet() -> None:
    given = [
        {first + each for first in [share.take(3) for _ in range(500)] for each in range(3)}
        for share in map(Share, range(SHARES))
    ]
    assert [len(ports) for ports in given] == [1500] * SHARES
    assert len(set.union(*given)) == 1500 * SHARES
    assert set.union(*given) <= set(PORTS)


def test_a_port_that_somebody_listens_on_is_passed_over() -> None:
    share = Share(0)
    first = share.take(2)
    with socket.create_server(("127.0.0.1", first + 3)):
        assert share.take(2) != first + 2
