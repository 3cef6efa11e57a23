"""Writes the message classes and their codecs from `schema/`. See message_schema.py for its form.

python tools/generate_messages.py            write them
python tools/generate_messages.py --check    fail if what is there is not what would be written
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from message_classes import classes_source, generated_by, table_source
from message_code import Code
from message_readers import emit_readers
from message_schema import Message, Module, read_modules
from message_writers import emit_writers

ROOT = Path(__file__).resolve().parent.parent


def generate(schema: Path) -> dict[str, str]:
    """Every generated file: path below src/cotidal -> text."""
    modules = read_modules(schema)
    files = {"messages/rpc/apis.py": table_source(modules)}
    for module in modules:
        files[f"messages/{module.room}/{module.name}.py"] = classes_source(module)
        files[f"wire/codec/{module.room}/{module.name}.py"] = codec_source(module)
    return files


def codec_source(module: Module) -> str:
    code = Code()
    table = []
    for message in module.messages:
        readers = emit_readers(code, message)
        writers = emit_writers(code, message)
        table += _table_entry(message, readers, writers)
    body = "\n".join(code.lines) + "\n"
    tail = "\n".join(["", "", "CODECS: Final = (", *table, ")", ""])
    return _head(module, code) + body + tail


def _table_entry(message: Message, readers: list[str], writers: list[str]) -> list[str]:
    flexible = message.flexible.start if message.flexible else message.versions.stop
    key = -1 if message.key is None else message.key
    lines = [
        "    Codec(",
        f'        {message.name}, "{message.kind}", {key}, {message.versions.start}, {flexible},',
    ]
    for names in (readers, writers):
        if len(set(names)) == 1:
            lines.append(f"        ({names[0]},) * {len(names)},")
        else:
            lines += ["        (", *(f"            {name}," for name in names), "        ),"]
    return [*lines, "    ),"]


def _head(module: Module, code: Code) -> str:
    classes = sorted({s.class_name for m in module.messages for s in [*m.structs, m.body]})
    what = module.messages[0].name.removesuffix("Request") if module.room == "rpc" else module.name
    own = _import(f"cotidal.messages.{module.room}.{module.name}", classes)
    primitives = _import("cotidal.wire.primitives", sorted({"Buffer", *code.primitives}))
    lines = [
        generated_by(module) + f'"""{what}: bytes <-> values, straight-line. Pure."""',
        "",
        "from __future__ import annotations",
        "",
        *(["from struct import Struct"] if code.structs else []),
        "from typing import Final",
        "",
        own,
    ]
    body = "\n".join(code.lines)
    if "MESSAGE_ELEMENTS_MAX" in code.others:
        lines.insert(-1, "from cotidal.limits import MESSAGE_ELEMENTS_MAX")
    if "Batches |" in body:
        lines.insert(-1, "from cotidal.messages.batch import Batches")
    values = [name for name in ("ZERO_UUID", "Uuid") if re.search(rf"\b{name}\b", body)]
    if values:
        lines.append(f"from cotidal.values import {', '.join(values)}")
    if "read_batches" in code.others:
        lines.append("from cotidal.wire.batch import read_batches")
    lines += ["from cotidal.wire.codec.entry import Codec, Parts", primitives, ""]
    known = {"unpack_b", "unpack_h", "unpack_i", "pack_h", "pack_i"} & code.primitives
    for name, text in sorted(code.structs):
        if name not in known:
            method = "unpack_from" if name.startswith("unpack") else "pack"
            lines.append(f'{name}: Final = Struct(">{text}").{method}')
    for name in sorted(code.defaults):
        lines.append(f"DEFAULT_{name}: Final = {name}()")
    if "new" in code.others:
        lines.append("new: Final = tuple.__new__")
    return "\n".join(lines).rstrip() + "\n"


def _import(module: str, names: list[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= 100:
        return line
    return "\n".join([f"from {module} import (", *(f"    {name}," for name in names), ")"])


def stale_files(files: dict[str, str], home: Path) -> list[str]:
    """Which of the files are missing or different, and which are there but not of the schema."""
    wrong = [p for p, text in files.items() if _text(home / p) != text]
    for room in ("messages/rpc", "messages/records", "wire/codec/rpc", "wire/codec/records"):
        for path in sorted((home / room).glob("*.py")):
            name = f"{room}/{path.name}"
            if name not in files and path.name != "__init__.py":
                wrong.append(name)
    return wrong


def _text(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def main() -> int:
    files = generate(ROOT / "schema")
    home = ROOT / "src" / "cotidal"
    if "--check" in sys.argv[1:]:
        wrong = stale_files(files, home)
        for name in wrong:
            print(f"{name} is not what the schema says", file=sys.stderr)
        return 1 if wrong else 0
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if _text(path) != text:
            path.write_text(text)
    for name in stale_files(files, home):
        (home / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
