"""What is done to a running cluster from outside, by several at once."""

import os
from concurrent.futures import ThreadPoolExecutor

from cotidal.broker.control import Handle, Up
from cotidal.broker.faults import HELD


def test_links_cut_at_the_same_time_are_all_cut(tmp_path):
    home, pairs = str(tmp_path), [(0, other) for other in range(1, 201)]
    Up(os.getpid(), {}, chaos=True, serving=()).write(home)

    def cut(pair):
        Handle(home).disturb(lambda faults: faults.held([pair]))

    with ThreadPoolExecutor(8) as people:
        list(people.map(cut, pairs))
    assert Handle(home).faults.delays == dict.fromkeys(pairs, HELD)
