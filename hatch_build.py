"""The compiled build: ``COTIDAL_COMPILE=1 pip install .`` compiles the rooms of ROOMS with mypyc.

The source is the same: it runs as plain Python, and every compiled module keeps its ``.py`` beside
it for tracebacks. Without the variable, and in an editable install, nothing here happens and the
wheel is pure. Needs a C compiler; takes some minutes.

With gcc it is compiled twice: first to watch what runs (``tools/exercise.py`` has three brokers
replicate for some seconds), then with what was seen, so that what is run lies together and what is
not is out of its way. ``COTIDAL_COMPILE=once`` leaves that out: half the time, a tenth less speed.

Compiled is what decides and what every request passes through. Modules that hold little but
NamedTuples (messages, events, effects) stay as they are: compiled code reads their fields by
position either way. So does what tests derive from (``sim/trace.py``): an interpreted class cannot
inherit from a compiled one.

Two things that Python allows and a compiled module cannot do: a NamedTuple whose field names a
class further down in the module (it crashes on loading), and ``x in (*a, *b)``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE: Final = "cotidal"
ROOMS: Final = (
    "errors.py",
    "settings.py",
    "messages/batch.py",
    "wire/*.py",
    "wire/codec/__init__.py",
    "wire/codec/records/metadata.py",
    "wire/codec/rpc/begin_quorum_epoch.py",
    "wire/codec/rpc/broker_heartbeat.py",
    "wire/codec/rpc/fetch.py",
    "wire/codec/rpc/metadata.py",
    "wire/codec/rpc/produce.py",
    "wire/codec/rpc/vote.py",
    "core/machine.py",
    "core/coordinator.py",
    "core/cluster/*.py",
    "core/cluster/decide/*.py",
    "core/groups/*.py",
    "core/groups/consumer/*.py",
    "core/partition/*.py",
    "core/quorum/*.py",
    "api/*.py",
    "node/*.py",
    "log/*.py",
    "broker/appending.py",
    "broker/connection.py",
    "broker/counters.py",
    "broker/disk.py",
    "broker/driver.py",
    "broker/flushing.py",
    "broker/full_disk.py",
    "broker/lane.py",
    "broker/outlet.py",
    "broker/peers.py",
    "broker/reading.py",
    "broker/server.py",
    "broker/stalls.py",
    "sim/agenda.py",
    "sim/checkpoints.py",
    "sim/clock.py",
    "sim/disk.py",
    "sim/lane.py",
    "sim/metadata_log.py",
    "sim/network.py",
    "sim/peers.py",
    "sim/process.py",
    "sim/server.py",
    "sim/sowing.py",
    "sim/world.py",
    "sim/checkers/*.py",
    "sim/faults/*.py",
    "sim/workloads/*.py",
)
PLAIN: Final = (
    "wire/compression.py",
    "core/quorum/dialogue.py",
    "core/groups/asks.py",
    "core/*/effects.py",
    "core/*/events.py",
    "node/effects.py",
    "node/events.py",
    "node/happenings.py",
)
"""Of these: values only, or work that is done elsewhere."""

WATCHING: Final = ("-fprofile-generate", "-fprofile-update=prefer-atomic")
"""Brokers have threads."""
SEEN: Final = (
    "-fprofile-use",
    "-fprofile-partial-training",  # what was not run is compiled as ever, not made small
    "-Wno-missing-profile",
    "-Wno-coverage-mismatch",
)

NEEDS: Final = ["mypy>=1.19", "pybind11>=2.10", "setuptools>=65"]
"""Of pybind11 only what has several C files compiled at once: setuptools does one after another."""


class CompileHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        if not _is_wanted():
            return []
        return [*NEEDS, *(self.metadata.core.dependencies if _is_exercised() else ())]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":  # the stories that the page plays; beside the source otherwise
            scripts = Path(self.root) / "tests" / "scripts"
            build_data["force_include"][str(scripts)] = f"{PACKAGE}/console/scripts"
        if not _is_wanted() or version == "editable":
            return
        self._work = Path(tempfile.mkdtemp(prefix="cotidal-compiled-"))
        shutil.copytree(Path(self.root) / "src" / PACKAGE, self._work / PACKAGE)
        exercise = Path(self.root) / "tools" / "exercise.py" if _is_exercised() else None
        compile_rooms(self._work, exercise=exercise)
        for made in (*self._work.glob("*.so"), *(self._work / PACKAGE).rglob("*.so")):
            build_data["force_include"][str(made)] = str(made.relative_to(self._work))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "_work"):
            shutil.rmtree(self._work)


def compile_rooms(tree: Path, *, optimise: str = "2", exercise: Path | None = None) -> None:
    """Extension modules beside their sources in ``tree``, which holds a copy of the package.
    ``exercise``: a program that uses them as they will be used."""
    from mypyc.build import mypycify
    from mypyc.ir.rtypes import object_rprimitive
    from mypyc.primitives.registry import builtin_names, load_address_op

    # A NamedTuple's field of type object is looked up among the module's names without these.
    for name, place in (("object", "PyBaseObject_Type"), ("memoryview", "PyMemoryView_Type")):
        if f"builtins.{name}" not in builtin_names:
            load_address_op(f"builtins.{name}", object_rprimitive, place)
    config = tree / "mypy.ini"
    config.write_text("[mypy]\nignore_missing_imports = True\n")  # types of libraries: not needed
    with _within(tree):
        extensions = mypycify(
            [f"--config-file={config}", *map(str, modules(Path(PACKAGE)))],
            opt_level=optimise,
            debug_level="0",
            multi_file=True,
        )
        if exercise is None:
            _build(extensions)
            return
        _build(extensions, WATCHING)
        place = os.environ | {"PYTHONPATH": str(tree)}
        subprocess.run([sys.executable, str(exercise)], env=place, check=True, timeout=600)
        for made in (*tree.rglob("*.o"), *tree.rglob("*.so")):
            made.unlink()
        _build(extensions, SEEN)


def _build(extensions: Sequence[Any], flags: Sequence[str] = ()) -> None:
    from pybind11.setup_helpers import ParallelCompile
    from setuptools import Distribution

    usual = [(each.extra_compile_args, each.extra_link_args) for each in extensions]
    for each, (compiling, linking) in zip(extensions, usual, strict=True):
        each.extra_compile_args = [*(compiling or ()), *flags]
        each.extra_link_args = [*(linking or ()), *flags]
    building = Distribution({"name": PACKAGE, "ext_modules": extensions})
    command: Any = building.get_command_obj("build_ext")
    command.inplace = True
    command.parallel = os.cpu_count()
    command.ensure_finalized()
    with ParallelCompile():
        command.run()
    for each, (compiling, linking) in zip(extensions, usual, strict=True):
        each.extra_compile_args, each.extra_link_args = compiling, linking


def modules(package: Path) -> list[Path]:
    """The sources that are compiled."""
    plain = {path for pattern in PLAIN for path in package.glob(pattern)}
    found = {path for pattern in ROOMS for path in package.glob(pattern)}
    return sorted(path for path in found - plain if path.stat().st_size)


def _is_wanted() -> bool:
    return os.environ.get("COTIDAL_COMPILE", "") not in ("", "0")


def _is_exercised() -> bool:
    """Other compilers have other words for it."""
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or ""
    return os.environ.get("COTIDAL_COMPILE") != "once" and "gcc" in compiler.split("/")[-1]


@contextmanager
def _within(directory: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)


if __name__ == "__main__":
    compile_rooms(
        Path(sys.argv[1]),
        optimise=os.environ.get("COTIDAL_OPTIMISE", "2"),
        exercise=Path(sys.argv[2]) if len(sys.argv) > 2 else None,
    )
