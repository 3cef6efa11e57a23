"""The generated files are those of the schema; the schema's form says what is wrong with it."""

from __future__ import annotations

import keyword
from pathlib import Path

import pytest

from generate_messages import generate, main, stale_files
from message_schema import camel_case, read_modules, snake_case

ROOT = Path(__file__).resolve().parents[2]


def test_committed_files_are_what_the_schema_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stale_files(generate(ROOT / "schema"), ROOT / "src" / "cotidal") == []
    monkeypatch.setattr("sys.argv", ["generate_messages.py", "--check"])
    assert main() == 0


def test_a_stale_a_missing_and_a_left_over_file_are_told(tmp_path: Path) -> None:
    files = {"messages/rpc/a.py": "a\n", "messages/rpc/b.py": "b\n"}
    room = tmp_path / "messages" / "rpc"
    room.mkdir(parents=True)
    (room / "a.py").write_text("other\n")
    (room / "left.py").write_text("")
    assert stale_files(files, tmp_path) == [
        "messages/rpc/a.py", "messages/rpc/b.py", "messages/rpc/left.py",
    ]  # fmt: skip


def test_no_field_hides_a_method_of_tuple_or_is_a_keyword() -> None:
    for module in read_modules(ROOT / "schema"):
        for message in module.messages:
            for struct in [*message.structs, message.body]:
                for field in struct.fields:
                    assert not hasattr(tuple, field.name), (message.name, field.name)
                    assert not keyword.iskeyword(field.name)


def test_class_names_are_unique_in_their_module() -> None:
    for module in read_modules(ROOT / "schema"):
        names = [s.class_name for m in module.messages for s in [*m.structs, m.body]]
        assert len(names) == len(set(names)), module.name


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("request A key=1 versions=0 flexible=none colour=red", "line 1: what is colour"),
        ("request A key=1 versions=0 flexible=none\n  a: int32 sometimes", "line 2: what is 'some"),
        ("request A key=1 versions=0 flexible=none\n  a: Missing", "no struct Missing"),
        ("request A key=1 versions=0 flexible=none\n   a: int32", "line 2: odd indentation"),
    ],
)
def test_a_mistake_in_the_schema_is_told_with_its_line(
    tmp_path: Path, text: str, complaint: str
) -> None:
    (tmp_path / "rpc").mkdir()
    (tmp_path / "rpc" / "a.schema").write_text(text)
    with pytest.raises(ValueError, match=complaint):
        read_modules(tmp_path)


def test_names_go_from_camel_to_snake_and_back() -> None:
    for camel, snake in [("TopicId", "topic_id"), ("Enable2Pc", "enable2_pc"), ("Isr", "isr")]:
        assert snake_case(camel) == snake
        assert camel_case(snake) == camel
    assert snake_case("KRaftVersionRecord") == "k_raft_version_record"
