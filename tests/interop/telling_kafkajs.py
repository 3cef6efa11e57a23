"""kafkajs as the teller of a story: node/story.js tells it in lines, which are taken down here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any, Final

from tests.interop.stories import PATIENCE_SECONDS, Meaning, Story
from tests.interop.suites import Missing, cache, fetch

PROGRAMS: Final = Path(__file__).parent / "node"
PACKAGE: Final = PROGRAMS / "package.json"
VERSION: Final[str] = json.loads(PACKAGE.read_text())["dependencies"]["kafkajs"]


def modules() -> Path:
    """kafkajs, fetched the first time."""
    home = cache(f"kafkajs-{VERSION}")
    if not home.exists():
        _install(home)
    return home / "node_modules"


def environment() -> dict[str, str]:
    return {"NODE_PATH": str(modules()), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}


def _install(home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as work:
        project = Path(work) / "project"
        project.mkdir()
        shutil.copy(PACKAGE, project)
        install = ("npm", "install", "--no-audit", "--no-fund", "--silent")
        fetch(install, 300, where=project, what="kafkajs")
        project.rename(home)


def tell(bootstrap: str, topic: str, story: Story, *, transactional: bool) -> None:
    what = "transactions" if transactional else "steady"
    command = ("node", str(PROGRAMS / "story.js"), bootstrap, topic, what)
    all_written = threading.Event()
    try:
        program = subprocess.Popen(
            command,
            env=os.environ | environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    except FileNotFoundError:
        raise Missing("node is not installed") from None
    with program:
        listener = threading.Thread(target=_listen, args=(program, story, all_written), daemon=True)
        listener.start()
        try:
            for _ in story.paced(0.5):
                assert program.poll() is None, "the program has ended"
            _say(program)
            assert all_written.wait(PATIENCE_SECONDS), "the writer did not come to its end"
            story.end(bootstrap, topic, topic)
            _say(program)
            program.wait(60)
        finally:
            program.kill()
        listener.join(10)


def _say(program: subprocess.Popen[str]) -> None:
    assert program.stdin is not None
    program.stdin.write("\n")
    program.stdin.flush()


def _listen(program: subprocess.Popen[str], story: Story, all_written: threading.Event) -> None:
    assert program.stdout is not None
    for line in program.stdout:
        told: dict[str, Any] = json.loads(line)
        match told["event"]:
            case "written":
                story.written.update(told["values"])
            case "acknowledged":
                story.acknowledged.update(told["values"])
            case "aborted":
                story.aborted.update(told["values"])
            case "doubtful":
                story.doubtful.append(tuple(told["values"]))
            case "found":
                story.on_found(told["partition"], told["offset"], told["value"])
            case "committed":
                story.on_committed({told["partition"]: told["offset"]})
            case "error":
                story.on_error(told["who"], Meaning(told["meaning"]), told["text"])
            case "all written":
                all_written.set()
            case unknown:
                raise AssertionError(f"the program tells of {unknown}")
