"""Log directories, as whoever asks a node is told of them."""

from __future__ import annotations

from asking import node_with
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.describe_log_dirs import DescribeLogDirsRequest
from cotidal.node import effects as fx
from cotidal.node.events import LogsMeasured, MeasuredDirectory
from cotidal.values import TopicPartition

DESCRIBE_LOG_DIRS = 35


def test_a_directory_that_failed_is_named_with_its_error_and_nothing_of_what_it_held() -> None:
    node = node_with()
    node.hold.add(fx.MeasureLogs)
    node.send((DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(None)))
    (asked,) = node.held
    held = ((TopicPartition("orders", 0), 70),)
    node.tell(
        LogsMeasured(
            asked.token,
            (
                MeasuredDirectory("good", None, held, 1_000, 500),
                MeasuredDirectory("bad", "input/output error", held, 1_000, 500),
            ),
        )
    )
    good, bad = node.replies[-1].message.results
    assert (good.error_code, good.log_dir, len(good.topics)) == (0, "good", 1)
    assert (bad.error_code, bad.log_dir) == (ErrorCode.KAFKA_STORAGE_ERROR, "bad")
    assert bad.topics == ()
