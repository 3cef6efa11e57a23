"""Writes the functions that turn bytes into messages. Pure text.

A message that is not hot gets one function per struct, with tests on the version where layouts
differ. A hot one gets one function per layout, with its structs read in place and no test left.
"""

from __future__ import annotations

from message_classes import element_type, function_name, python_type
from message_code import (
    ALWAYS,
    FIXED,
    NOT_EVER,
    Code,
    Context,
    default_value,
    local_name,
    runs_of,
    smallest_element,
    tagged_fields,
)
from message_schema import Field, Message, Struct, layouts

ARRAY_READERS = {
    "int8": "read_int8s",
    "int16": "read_int16s",
    "int32": "read_int32s",
    "int64": "read_int64s",
    "uuid": "read_uuids",
}


def emit_readers(code: Code, message: Message) -> list[str]:
    """Emit; return the name of the root reader for each version."""
    if not message.hot:
        for struct in [*message.structs, message.body]:
            versions = tuple(v for v in struct.versions if v in message.versions)
            context = Context(message, versions, hot=False)
            _emit_function(code, struct, context, f"read_{function_name(struct)}")
        return [f"read_{function_name(message.body)}"] * len(message.versions)
    names: dict[int, str] = {}
    for versions in layouts(message):
        name = f"read_{function_name(message.body)}_v{versions[0]}"
        _emit_function(code, message.body, Context(message, versions, hot=True), name)
        names.update(dict.fromkeys(versions, name))
    return [names[version] for version in message.versions]


def _emit_function(code: Code, struct: Struct, context: Context, name: str) -> None:
    code.begin_function()
    code.line()
    code.line()
    head = f"def {name}(buf: Buffer, pos: int, version: int) -> tuple[{struct.class_name}, int]:"
    if len(head) > 100:
        with code.block(f"def {name}("):
            code.line("buf: Buffer, pos: int, version: int")
        head = f") -> tuple[{struct.class_name}, int]:"
    with code.block(head):
        if context.hot:
            code.line("size = len(buf)")
            if any(field.struct is not None and field.array for field in struct.fields):
                code.others.add("MESSAGE_ELEMENTS_MAX")
                code.line("room = MESSAGE_ELEMENTS_MAX")
        if context.flexible == "flexible":
            code.line(f"flexible = version >= {context.message.flexible.start}")
        made = _emit_struct(code, struct, context)
        code.line(f"return {made}, pos")


def _emit_struct(code: Code, struct: Struct, context: Context) -> str:
    """Emit the reads of one struct; return the expression that builds it."""
    suffix = code.scope()
    missing = [f for f in struct.fields if context.test(f.versions) == NOT_EVER]
    runs = runs_of(struct, context)
    tagged = tagged_fields(struct, context)
    plain_end = context.flexible == ALWAYS and not tagged
    ended = False
    for run in runs:
        inner = context.narrowed(run.fields[0].versions)
        if run.test != ALWAYS:
            for field in run.fields:
                _declare(code, field, local_name(field, suffix))
            code.line(f"if {run.test}:")
            code.depth += 1
        if run.fixed:
            ended = plain_end and run is runs[-1] and run.test == ALWAYS
            _emit_fixed(code, run.fields, suffix, with_tags=ended)
        else:
            declared = run.test != ALWAYS
            field = run.fields[0]
            _emit_field(code, field, local_name(field, suffix), inner, declared)
        if run.test != ALWAYS:
            code.depth -= 1
    if not ended:
        _emit_tags(code, tagged, context, suffix)
    values = [
        default_value(code, f) if f in missing else local_name(f, suffix) for f in struct.fields
    ]
    if context.hot:
        code.others.add("new")
        return f"new({struct.class_name}, ({', '.join(values)}{',' if len(values) == 1 else ''}))"
    return f"{struct.class_name}({', '.join(values)})"


def _declare(code: Code, field: Field, local: str) -> None:
    code.line(f"{local}: {python_type(field)} = {default_value(code, field)}")


def _emit_fixed(code: Code, fields: list[Field], suffix: str, with_tags: bool) -> None:
    formats = [FIXED[f.base][0] for f in fields]
    names = [local_name(f, suffix) for f in fields]
    size = sum(FIXED[f.base][1] for f in fields)
    if with_tags:
        formats.append("B")
        names.append("tags")
        size += 1
    target = f"({names[0]},)" if len(names) == 1 else ", ".join(names)
    code.line(f"{target} = {code.struct('unpack', formats)}(buf, pos)")
    code.line(f"pos += {size}")
    if with_tags:
        with code.block("if tags:"):
            code.line(f"pos = {code.need('skip_tags')}(buf, pos - 1)")


def _emit_tags(code: Code, tagged: list[Field], context: Context, suffix: str) -> None:
    if context.flexible == NOT_EVER:
        return
    for field in tagged:
        _declare(code, field, local_name(field, suffix))
    if context.flexible == "flexible":
        code.line("if flexible:")
        code.depth += 1
    if not tagged and not context.hot:
        code.line(f"pos = {code.need('skip_tags')}(buf, pos)")
    elif not tagged:
        with code.block("if buf[pos]:"):
            code.line(f"pos = {code.need('skip_tags')}(buf, pos)")
        with code.block("else:"):
            code.line("pos += 1")
    else:
        with code.block("if not buf[pos]:"):
            code.line("pos += 1")
        with code.block("else:"):
            flexible = context.narrowed(context.message.flexible)
            _emit_known_tags(code, tagged, flexible, suffix)
    if context.flexible == "flexible":
        code.depth -= 1


def _emit_known_tags(code: Code, tagged: list[Field], context: Context, suffix: str) -> None:
    tags, tag, end = f"tags{suffix}", f"tag{suffix}", f"end{suffix}_t"
    code.line(f"{tags}, pos = {code.need('read_uvarint')}(buf, pos)")
    with code.block(f"for _ in range({tags}):"):
        code.line(f"{tag}, pos, {end} = {code.need('read_tag')}(buf, pos)")
        word = "if"
        for field in tagged:
            test = context.test(field.versions)
            also = "" if test == ALWAYS else f" and {test}"
            with code.block(f"{word} {tag} == {field.tag}{also}:"):
                inner = context.narrowed(field.versions)._replace(hot=False)
                if context.hot and field.struct is not None:
                    inner = inner._replace(hot=True)
                local = local_name(field, suffix)
                if field.base in FIXED and not field.array:
                    _emit_fixed(code, [field], suffix, with_tags=False)
                else:
                    _emit_field(code, field, local, inner, declared=True)
            word = "elif"
        with code.block("else:"):
            code.line(f"pos = {end}")
        with code.block(f"if pos != {end}:"):
            code.line(f"raise {code.need('tag_misread')}({tag}, pos, {end})")


def _emit_field(code: Code, field: Field, local: str, context: Context, declared: bool) -> None:
    """Any field that is not of fixed width. ``declared``: the local has a type already."""
    if field.array:
        _emit_array(code, field, local, context, declared)
    elif field.struct is not None:
        _emit_nested(code, field, local, context, declared)
    elif context.hot:
        _emit_bytes_in_place(code, field, local, context, declared)
    else:
        _emit_bytes(code, field, local, context)


def _emit_nested(code: Code, field: Field, local: str, context: Context, declared: bool) -> None:
    assert field.struct is not None
    nullable = context.test(field.nullable)
    assert nullable in (ALWAYS, NOT_EVER), "a struct that is nullable in some versions only"
    if nullable == ALWAYS:
        if not declared:
            code.line(f"{local}: {python_type(field)} = None")
        else:
            code.line(f"{local} = None")
        code.line("pos += 1")
        # Null is -1, but 0 in a tagged field: Kafka's generator does it so.
        code.line("if buf[pos - 1] < 0x80:" if field.tag is None else "if buf[pos - 1]:")
        code.depth += 1
    if context.hot:
        code.line(f"{local} = {_emit_struct(code, field.struct, context)}")
    else:
        code.line(f"{local}, pos = read_{function_name(field.struct)}(buf, pos, version)")
    if nullable == ALWAYS:
        code.depth -= 1


def _variant(code: Code, noun: str, nullable: bool, context: Context, arguments: str) -> str:
    """A call of the plain or the compact reader, or a choice between them."""
    null = "nullable_" if nullable else ""
    plain, compact = f"read_{null}{noun}", f"read_compact_{null}{noun}"
    match context.flexible:
        case "always":
            return f"{code.need(compact)}({arguments})"
        case "never":
            return f"{code.need(plain)}({arguments})"
        case _:
            return (
                f"{code.need(compact)}({arguments}) if flexible "
                f"else {code.need(plain)}({arguments})"
            )


def _emit_bytes(code: Code, field: Field, local: str, context: Context) -> None:
    nullable = context.test(field.nullable)
    noun = "records" if field.base == "batches" else field.base
    target = "data" if field.base == "batches" else local
    call = _variant(code, noun, nullable != NOT_EVER, context, "buf, pos")
    code.line(f"{target}, pos = {call}")
    _emit_null_check(code, field, f"{target} is None", nullable, context)
    if field.base == "batches":
        code.others.add("read_batches")
        code.line(f"{local} = None if data is None else read_batches(data)")


def _emit_null_check(
    code: Code, field: Field, is_null: str, nullable: str, context: Context
) -> None:
    """Refuse a null where only some of the versions at hand allow one."""
    if nullable in (ALWAYS, NOT_EVER):
        return
    with code.block(f"if {is_null} and not {nullable}:"):
        code.line(f'raise {code.need("null_refused")}("{context.message.name}.{field.name}")')


def _emit_length(code: Code, length: str, context: Context, wide: bool, data: bool = False) -> None:
    """In place: a length or count, -1 for null."""
    if context.flexible == ALWAYS:
        code.line(f"{length} = buf[pos] - 1")
        code.line("pos += 1")
        with code.block(f"if {length} > 126:"):
            if data:  # a batch is never shorter than its header, and seldom longer than 16 KB
                with code.block("if buf[pos] < 0x80:"):
                    code.line(f"{length} += (buf[pos] - 1) << 7")
                    code.line("pos += 1")
                code.line("else:")
                code.depth += 1
            code.line(f"{length}, pos = {code.need('read_length')}(buf, pos - 1)")
            code.depth -= 1 if data else 0
    else:
        letter, size = ("i", 4) if wide else ("h", 2)
        code.line(f"({length},) = {code.struct('unpack', [letter])}(buf, pos)")
        code.line(f"pos += {size}")


def _emit_bytes_in_place(
    code: Code, field: Field, local: str, context: Context, declared: bool
) -> None:
    nullable = context.test(field.nullable) == ALWAYS
    data = field.base in ("records", "batches")
    _emit_length(code, "length", context, wide=field.base != "string", data=data)
    if nullable:
        if not declared:
            code.line(f"{local}: {python_type(field)} = None")
        code.line("if length >= 0:")
        code.depth += 1
    else:
        with code.block("if length < 0:"):
            code.line(f'raise {code.need("null_refused")}("{context.message.name}.{field.name}")')
    if field.base in ("string", "batches"):
        string = field.base == "string"
        code.line("end = pos + length")
        long = f" or length > {code.need('STRING_BYTES_MAX')}" if string else ""
        with code.block(f"if end > size{long}:"):
            refused = code.need("string_refused" if string else "data_refused")
            code.line(f"raise {refused}(length, size - pos)")
        if string:
            code.line(f'{local} = str(buf[pos:end], "utf-8")')
        else:
            code.others.add("read_batches")
            code.line(f"{local} = read_batches(buf[pos:end])")
        code.line("pos = end")
    else:
        reader = "read_blob" if field.base == "bytes" else "read_data"
        code.line(f"{local}, pos = {code.need(reader)}(buf, pos, length)")
    if nullable and declared:
        code.depth -= 1
        with code.block("else:"):
            code.line(f"{local} = None")
    elif nullable:
        code.depth -= 1


def _emit_array(code: Code, field: Field, local: str, context: Context, declared: bool) -> None:
    nullable = context.test(field.nullable)
    count = f"{local}_count"
    smallest = smallest_element(field, context)
    if context.hot:
        _emit_length(code, count, context, wide=True)
        claimed = count if smallest == 1 else f"{count} * {smallest}"
        low = f"{count} < 0 or " if nullable == NOT_EVER else ""
        if field.struct is not None:
            low += f"{count} > room or "
        with code.block(f"if {low}{claimed} > size - pos:"):
            code.line(f"raise {code.need('count_refused')}({count}, size - pos)")
    else:
        call = _variant(code, "count", nullable != NOT_EVER, context, f"buf, pos, {smallest}")
        code.line(f"{count}, pos = {call}")
    _emit_null_check(code, field, f"{count} < 0", nullable, context)
    if nullable != NOT_EVER:
        code.line(f"{local} = None" if declared else f"{local}: {python_type(field)} = None")
        code.line(f"if {count} >= 0:")
        code.depth += 1
    _emit_elements(code, field, local, count, context)
    if nullable != NOT_EVER:
        code.depth -= 1


def _emit_elements(code: Code, field: Field, local: str, count: str, context: Context) -> None:
    if field.struct is None:
        if field.base == "string":
            plain, compact = "read_strings", "read_compact_strings"
            if context.flexible == ALWAYS:
                reader = code.need(compact)
            elif context.flexible == NOT_EVER:
                reader = code.need(plain)
            else:
                reader = f"({code.need(compact)} if flexible else {code.need(plain)})"
        else:
            reader = code.need(ARRAY_READERS[field.base])
        code.line(f"{local}, pos = {reader}(buf, pos, {count})")
        return
    if context.hot:
        code.line(f"room -= {count}")
    items = f"{local}_items"
    code.line(f"{items}: list[{element_type(field)}] = []")
    with code.block(f"for _ in range({count}):"):
        if context.hot:
            code.line(f"{items}.append({_emit_struct(code, field.struct, context)})")
        else:
            item = f"{local}_item"
            code.line(f"{item}, pos = read_{function_name(field.struct)}(buf, pos, version)")
            code.line(f"{items}.append({item})")
    code.line(f"{local} = tuple({items})")
