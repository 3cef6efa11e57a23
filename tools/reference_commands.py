"""The command line as its own --help tells it."""

from __future__ import annotations

from collections.abc import Iterator

import click

from cotidal.cli.main import cotidal

WIDTH = 80
HELP_OPTION_NAMES = cotidal.context_settings["help_option_names"]
"""As a person's own call has them: click remembers the first that it was given."""


def commands(arguments: tuple[str, ...]) -> str:
    ctx = click.Context(
        cotidal, info_name="cotidal", color=False, help_option_names=HELP_OPTION_NAMES
    )
    return "\n\n".join(_told(cotidal, ctx, 2))


def _told(command: click.Command, ctx: click.Context, level: int) -> Iterator[str]:
    ctx.terminal_width = WIDTH
    text = command.get_help(ctx).rstrip()
    yield f"{'#' * min(level, 4)} {ctx.command_path}\n\n```text\n{text}\n```"
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            verb = command.get_command(ctx, name)
            if verb is not None and not verb.hidden:
                under = click.Context(verb, info_name=name, parent=ctx, color=False)
                yield from _told(verb, under, level + (1 if ctx.parent else 0))
