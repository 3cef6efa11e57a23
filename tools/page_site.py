"""The page as a static site: the simulator runs in the reader's browser, with no server of ours.

    python tools/page_site.py build/page        `make site`

Three things stand beside each other: the page's files, the product's own source as a zip, and
Pyodide (CPython for WebAssembly) as npm has it. Nothing is fetched from elsewhere by the page.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = ROOT / "src"
PAGE: Final = SOURCE / "cotidal" / "console" / "page"
SCRIPTS: Final = ROOT / "tests" / "scripts"

PYODIDE: Final = "314.0.7"
"""CPython 3.14; another version needs another look at tests/console/test_site.py."""
PYODIDE_FILES: Final = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)
WORKER: Final = '<meta name="cotidal-worker" content="worker.js">'
NOT_NEEDED: Final = ("broker", "client", "cli", "spark")
"""Rooms that no simulated world enters."""
NOT_PURE: Final = ("console/server.py", "console/host.py")


def build(target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(PAGE, target)
    index = target / "index.html"
    text = index.read_text(encoding="utf-8")
    index.write_text(text.replace("</title>", f"</title>\n  {WORKER}", 1), encoding="utf-8")
    write_source(target / "cotidal.zip")
    take_pyodide(target / "pyodide")


def write_source(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in sorted(source_files()):
            archive.write(file, name)


def source_files() -> Iterator[tuple[str, Path]]:
    package = SOURCE / "cotidal"
    for file in package.rglob("*.py"):
        inside = file.relative_to(package)
        if inside.parts[0] not in NOT_NEEDED and str(inside.as_posix()) not in NOT_PURE:
            yield f"cotidal/{inside.as_posix()}", file
    for file in SCRIPTS.rglob("*.script"):
        yield f"cotidal/console/scripts/{file.relative_to(SCRIPTS).as_posix()}", file


def take_pyodide(target: Path) -> None:
    """From npm, once; kept in build/ for the next time."""
    kept = ROOT / "build" / f"pyodide-{PYODIDE}.tgz"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        command = ["npm", "pack", "--silent", f"pyodide@{PYODIDE}"]
        subprocess.run(command, cwd=kept.parent, check=True, stdout=subprocess.DEVNULL)
    target.mkdir()
    with tarfile.open(kept) as package:
        for name in PYODIDE_FILES:
            member = package.extractfile(f"package/{name}")
            assert member is not None, name
            (target / name).write_bytes(member.read())


def main(arguments: list[str]) -> int:
    target = Path(arguments[0]) if arguments else ROOT / "build" / "page"
    try:
        build(target)
    except FileNotFoundError as missing:
        if missing.filename == "npm":
            print("npm is not installed: it is where Pyodide comes from", file=sys.stderr)
            return 1
        raise
    except subprocess.CalledProcessError:
        print(f"npm could not fetch pyodide {PYODIDE}", file=sys.stderr)
        return 1
    size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    print(f"{target}/index.html, {size / 1e6:.1f} MB; any file server will do:")
    print(f"  python -m http.server --directory {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
