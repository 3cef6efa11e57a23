"""Which directories are logs that nobody asks for, and what becomes of them."""

from __future__ import annotations

from cotidal.log.checkpoint import PARTITION_METADATA, encode_partition_metadata
from cotidal.log.leftovers import DOOMED, FUTURE, STRAY, leftover_name, put_aside, strays
from cotidal.log.memory import MemoryFiles
from cotidal.values import TopicPartition, Uuid

TOPIC = Uuid(b"t" * 16)
AT = TopicPartition("orders", 3)


def files_with(*names: str) -> MemoryFiles:
    """A log in each of these directories of /data."""
    files = MemoryFiles()
    files.mkdir("/data")
    for name in names:
        files.mkdir(f"/data/{name}")
        files.write(f"/data/{name}/{PARTITION_METADATA}", encode_partition_metadata(TOPIC))
    return files


def test_a_log_is_a_stray_unless_it_is_of_a_partition_that_is_kept() -> None:
    files = files_with("orders-3", "orders-30", "with-dashes-0", "a.b-1")
    kept = {AT, TopicPartition("a.b", 1)}
    found = [TopicPartition("orders", 30), TopicPartition("with-dashes", 0)]
    assert strays(files, "/data", kept) == found


def test_what_only_looks_like_a_log_is_left_alone() -> None:
    leftovers = [leftover_name(AT, TOPIC, kind) for kind in (DOOMED, STRAY, FUTURE)]
    files = files_with("__cluster_metadata-0", "orders-03", "-1", "orders", *leftovers)
    files.mkdir("/data/photos-2024")
    files.write("/data/photos-2024/sea.jpg", b"")
    files.write("/data/notes-7", b"a file")
    assert strays(files, "/data", ()) == []


def test_a_log_that_was_begun_and_never_named_is_a_stray_too() -> None:
    files = files_with()
    files.mkdir("/data/orders-3")
    files.write("/data/orders-3/00000000000000000000.log", b"")
    assert strays(files, "/data", ()) == [AT]
    assert put_aside(files, "/data", AT) == leftover_name(AT, Uuid(bytes(16)), STRAY)


def test_a_stray_keeps_what_it_has_and_its_name_tells_whose_it_was() -> None:
    files = files_with("orders-3")
    files.write("/data/orders-3/00000000000000000000.log", b"records")
    stray = put_aside(files, "/data", AT)
    assert stray == f"orders-3.{TOPIC.hex()}-stray"
    assert files.listdir("/data") == [stray]
    assert files.read(f"/data/{stray}/00000000000000000000.log") == b"records"


def test_a_stray_does_not_take_the_place_of_an_earlier_one() -> None:
    files = files_with("orders-3", leftover_name(AT, TOPIC, STRAY))
    files.write(f"/data/{leftover_name(AT, TOPIC, STRAY)}/earlier", b"")
    stray = put_aside(files, "/data", AT)
    assert stray != leftover_name(AT, TOPIC, STRAY)
    assert stray.endswith(STRAY)
    assert files.listdir("/data") == sorted([stray, leftover_name(AT, TOPIC, STRAY)])
    assert "earlier" not in files.listdir(f"/data/{stray}")


def test_the_name_of_a_leftover_fits_into_a_directory_whatever_the_topic_is_called() -> None:
    name = leftover_name(TopicPartition("x" * 249, 1_000), TOPIC, DOOMED)
    assert len(name) == 255
    assert name.endswith(f"-1000.{TOPIC.hex()}-delete")
