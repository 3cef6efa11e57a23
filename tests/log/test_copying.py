"""A copy of a log's directory: in the end it has what the log has, and nothing else."""

from __future__ import annotations

from cotidal.log.copying import Copy
from tests.log.shelf import Shelf


def put(shelf: Shelf, name: str, data: bytes) -> None:
    shelf.filesystem.write(f"{shelf.root}/source/{name}", data)


def test_what_the_log_has_given_up_meanwhile_is_not_in_its_copy(shelf: Shelf) -> None:
    files = shelf.filesystem
    source, target = f"{shelf.root}/source", f"{shelf.root}/target"
    files.mkdir(source)
    for base in (0, 10, 20):
        put(shelf, f"{base:020}.log", b"%d" % base)
    copy = Copy(files, source, target)
    copy.begin()
    copy.pull(lambda size: None)
    files.unlink(f"{source}/{0:020}.log")  # retention
    put(shelf, "leader-epoch-checkpoint", b"0\n0\n")
    copy.end()
    assert files.listdir(target) == files.listdir(source)
    for name in files.listdir(source):
        assert files.read(f"{target}/{name}") == files.read(f"{source}/{name}")
