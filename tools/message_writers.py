"""Writes the functions that turn messages into bytes. Pure text.

Same two forms as the readers. A struct that may hold record data is written by a function that
returns the bytearray to go on with, because the data may have ended the one it was given.
"""

from __future__ import annotations

from message_classes import default_text, function_name
from message_code import (
    ALWAYS,
    FIXED,
    NOT_EVER,
    Code,
    Context,
    differs,
    is_fixed,
    local_name,
    negated,
    runs_of,
    splices,
    tagged_fields,
)
from message_schema import Field, Message, Struct, layouts

ARRAY_WRITERS = {
    "int8": "write_int8s",
    "int16": "write_int16s",
    "int32": "write_int32s",
    "int64": "write_int64s",
    "uuid": "write_uuids",
}


def emit_writers(code: Code, message: Message) -> list[str]:
    """Emit; return the name of the root writer for each version."""
    if not message.hot:
        for struct in [*message.structs, message.body]:
            versions = tuple(v for v in struct.versions if v in message.versions)
            context = Context(message, versions, hot=False)
            _emit_function(code, struct, context, f"write_{function_name(struct)}")
        return [f"write_{function_name(message.body)}"] * len(message.versions)
    names: dict[int, str] = {}
    for versions in layouts(message):
        name = f"write_{function_name(message.body)}_v{versions[0]}"
        _emit_function(code, message.body, Context(message, versions, hot=True), name)
        names.update(dict.fromkeys(versions, name))
    return [names[version] for version in message.versions]


def _emit_function(code: Code, struct: Struct, context: Context, name: str) -> None:
    code.begin_function()
    code.line()
    code.line()
    returns = struct is context.message.body or splices(struct)
    with code.block(f"def {name}("):
        parts = " parts: Parts," if returns else ""
        code.line(f"out: bytearray,{parts} value: {struct.class_name}, version: int")
    with code.block(f") -> {'bytearray' if returns else 'None'}:"):
        if context.flexible == "flexible":
            code.line(f"flexible = version >= {context.message.flexible.start}")
        suffix = code.scope()
        if struct.fields:
            code.line(f"{_targets(struct, suffix)} = value")
        _emit_struct(code, struct, context, suffix, "out")
        if returns:
            code.line("return out")


def _targets(struct: Struct, suffix: str) -> str:
    names = [local_name(f, suffix) for f in struct.fields]
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def _emit_struct(code: Code, struct: Struct, context: Context, suffix: str, out: str) -> None:
    """Emit the writes of one struct whose fields are in locals."""
    context = context._replace(not_null=False)
    begun = len(code.lines)
    for field in struct.fields:
        _emit_absence_check(code, field, local_name(field, suffix), context)
    runs = runs_of(struct, context)
    tagged = tagged_fields(struct, context)
    plain_end = context.flexible == ALWAYS and not tagged
    ended = False
    for run in runs:
        inner = context.narrowed(run.fields[0].versions)
        if run.test != ALWAYS:
            code.line(f"if {run.test}:")
            code.depth += 1
        if run.fixed:
            ended = plain_end and run is runs[-1] and run.test == ALWAYS
            formats = [FIXED[f.base][0] for f in run.fields] + (["x"] if ended else [])
            names = ", ".join(local_name(f, suffix) for f in run.fields)
            code.line(f"{out} += {code.struct('pack', formats)}({names})")
        else:
            field = run.fields[0]
            _emit_field(code, field, local_name(field, suffix), inner, out)
        if run.test != ALWAYS:
            code.depth -= 1
    if not ended:
        _emit_tags(code, tagged, context, suffix, out)
    if len(code.lines) == begun and struct is not context.message.body:
        code.line("pass")


def _emit_absence_check(code: Code, field: Field, local: str, context: Context) -> None:
    test = context.test(field.versions)
    if field.ignorable or test == ALWAYS:
        return
    unset = differs(code, field, local)
    condition = unset if test == NOT_EVER else f"{negated(test)} and {unset}"
    with code.block(f"if {condition}:"):
        where = f"{context.message.name}.{field.name}"
        code.line(f'raise {code.need("absent_field")}("{where}", version)')


def _emit_tags(code: Code, tagged: list[Field], context: Context, suffix: str, out: str) -> None:
    if context.flexible == NOT_EVER:
        return
    if context.flexible == "flexible":
        code.line("if flexible:")
        code.depth += 1
    if not tagged:
        code.line(f"{out}.append(0)")
    else:
        _emit_known_tags(code, tagged, context.narrowed(context.message.flexible), suffix, out)
    if context.flexible == "flexible":
        code.depth -= 1


def _emit_known_tags(
    code: Code, tagged: list[Field], context: Context, suffix: str, out: str
) -> None:
    tags, data, payload = f"tags{suffix}", f"tagged{suffix}", f"payload{suffix}"
    quick = context.hot and all(context.test(f.versions) == ALWAYS for f in tagged)
    if quick:
        some = " or ".join(differs(code, f, local_name(f, suffix)) for f in tagged)
        code.line(f"if not ({some}):")
        code.line(f"    {out}.append(0)")
        code.line("else:")
        code.depth += 1
    code.line(f"{tags} = 0")
    code.line(f"{data} = bytearray()")
    for field in tagged:
        local = local_name(field, suffix)
        test = context.test(field.versions)
        also = "" if test == ALWAYS else f"{test} and "
        with code.block(f"if {also}{differs(code, field, local)}:"):
            code.line(f"{tags} += 1")
            if is_fixed(field):
                letter, size = FIXED[field.base]
                pack = code.struct("pack", ["B", "B", letter])
                code.line(f"{data} += {pack}({field.tag}, {size}, {local})")
            else:
                inner = context.narrowed(field.versions)._replace(hot=False)
                if context.hot and field.struct is not None:
                    inner = inner._replace(hot=True)
                inner = inner._replace(not_null=default_text(field) == "None")
                code.line(f"{payload} = bytearray()")
                _emit_field(code, field, local, inner, payload)
                code.line(f"{code.need('write_tag')}({data}, {field.tag}, {payload})")
    code.line(f"{code.need('write_uvarint')}({out}, {tags})")
    code.line(f"{out} += {data}")
    if quick:
        code.depth -= 1


def _emit_field(code: Code, field: Field, local: str, context: Context, out: str) -> None:
    """Any field that is not of fixed width."""
    if field.array:
        _emit_array(code, field, local, context, out)
    elif field.struct is not None:
        _emit_nested(code, field, local, context, out)
    elif field.base in ("records", "batches"):
        _emit_records(code, field, local, context, out)
    elif field.base == "string" and context.hot and context.flexible == ALWAYS:
        _emit_string_in_place(code, field, local, context, out)
    else:
        _emit_bytes(code, field, local, context, out)


def _emit_null_check(code: Code, field: Field, local: str, context: Context) -> str:
    """Refuse None in versions that do not allow it; return whether the rest allows it."""
    if context.not_null:
        return NOT_EVER
    test = context.test(field.nullable)
    if not field.nullable or test == ALWAYS:
        return test
    condition = f"{local} is None" + ("" if test == NOT_EVER else f" and {negated(test)}")
    with code.block(f"if {condition}:"):
        where = f"{context.message.name}.{field.name}"
        code.line(f'raise {code.need("null_field")}("{where}", version)')
    return test


def _call(code: Code, noun: str, nullable: bool, context: Context, arguments: str) -> None:
    null = "nullable_" if nullable else ""
    plain, compact = f"write_{null}{noun}", f"write_compact_{null}{noun}"
    if context.flexible == ALWAYS:
        code.line(f"{code.need(compact)}({arguments})")
    elif context.flexible == NOT_EVER:
        code.line(f"{code.need(plain)}({arguments})")
    else:
        with code.block("if flexible:"):
            code.line(f"{code.need(compact)}({arguments})")
        with code.block("else:"):
            code.line(f"{code.need(plain)}({arguments})")


def _emit_bytes(code: Code, field: Field, local: str, context: Context, out: str) -> None:
    nullable = _emit_null_check(code, field, local, context) != NOT_EVER
    _call(code, field.base, nullable, context, f"{out}, {local}")


def _emit_string_in_place(code: Code, field: Field, local: str, context: Context, out: str) -> None:
    nullable = _emit_null_check(code, field, local, context) != NOT_EVER
    if nullable:
        with code.block(f"if {local} is None:"):
            code.line(f"{out}.append(0)")
        code.line("else:")
        code.depth += 1
    code.line(f"raw = {local}.encode()")
    code.line("length = len(raw)")
    with code.block("if length < 127:"):
        code.line(f"{out}.append(length + 1)")
    with code.block("else:"):
        code.line(f"{code.need('write_string_length')}({out}, length)")
    code.line(f"{out} += raw")
    if nullable:
        code.depth -= 1


def _emit_length(code: Code, length: str, context: Context, out: str) -> None:
    """A count or a data length that is not null."""
    compact = [
        f"if {length} < 127:",
        f"    {out}.append({length} + 1)",
        "else:",
        f"    {code.need('write_uvarint')}({out}, {length} + 1)",
    ]
    if context.flexible == ALWAYS:
        for line in compact:
            code.line(line)
    elif context.flexible == NOT_EVER:
        code.line(f"{out} += {code.need('pack_i')}({length})")
    else:
        with code.block("if flexible:"):
            code.line(f"{code.need('write_uvarint')}({out}, {length} + 1)")
        with code.block("else:"):
            code.line(f"{out} += {code.need('pack_i')}({length})")


def _emit_null(code: Code, context: Context, out: str) -> None:
    if context.flexible == ALWAYS:
        code.line(f"{out}.append(0)")
    elif context.flexible == NOT_EVER:
        code.line(f'{out} += b"\\xff\\xff\\xff\\xff"')
    else:
        code.line(f'{out} += b"\\0" if flexible else b"\\xff\\xff\\xff\\xff"')


def _emit_records(code: Code, field: Field, local: str, context: Context, out: str) -> None:
    assert out == "out", "record data in a tagged field"
    nullable = _emit_null_check(code, field, local, context) != NOT_EVER
    if nullable:
        with code.block(f"if {local} is None:"):
            _emit_null(code, context, out)
        code.line("else:")
        code.depth += 1
    data = f"{local}.data" if field.base == "batches" else local
    code.line(f"length = len({data})")
    _emit_length(code, "length", context, out)
    code.line(f"{out} = {code.need('splice')}({out}, parts, {data})")
    if nullable:
        code.depth -= 1


def _emit_nested(code: Code, field: Field, local: str, context: Context, out: str) -> None:
    assert field.struct is not None
    nullable = _emit_null_check(code, field, local, context) != NOT_EVER
    if nullable:
        with code.block(f"if {local} is None:"):
            code.line(f"{out}.append({'0xFF' if field.tag is None else '0'})")
        code.line("else:")
        code.depth += 1
    if field.nullable:
        code.line(f"{out}.append(1)")
    if context.hot:
        suffix = code.scope()
        code.line(f"{_targets(field.struct, suffix)} = {local}")
        _emit_struct(code, field.struct, context, suffix, out)
    else:
        _emit_call(code, field.struct, local, out)
    if nullable:
        code.depth -= 1


def _emit_call(code: Code, struct: Struct, local: str, out: str) -> None:
    name = f"write_{function_name(struct)}"
    if splices(struct):
        code.line(f"{out} = {name}({out}, parts, {local}, version)")
    else:
        code.line(f"{name}({out}, {local}, version)")


def _emit_array(code: Code, field: Field, local: str, context: Context, out: str) -> None:
    nullable = _emit_null_check(code, field, local, context) != NOT_EVER
    if nullable:
        with code.block(f"if {local} is None:"):
            _emit_null(code, context, out)
        code.line("else:")
        code.depth += 1
    code.line(f"count = len({local})")
    _emit_length(code, "count", context, out)
    if field.struct is None:
        if field.base == "string":
            _call(code, "strings", False, context, f"{out}, {local}")
        else:
            code.line(f"{code.need(ARRAY_WRITERS[field.base])}({out}, {local})")
    elif context.hot:
        suffix = code.scope()
        with code.block(f"for {_targets(field.struct, suffix)} in {local}:"):
            _emit_struct(code, field.struct, context, suffix, out)
    else:
        item = f"{local}_item"
        with code.block(f"for {item} in {local}:"):
            _emit_call(code, field.struct, item, out)
    if nullable:
        code.depth -= 1
