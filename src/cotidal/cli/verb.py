"""What every verb is made of: help with examples, the options that verbs share, and failure.

Imports click and nothing else of weight: every command line pays for this module.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import click

DEFAULT_BOOTSTRAP: Final = "localhost:9092"

Example = tuple[str, str]
"""What it does, and the command line that does it."""

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Failed(Exception):
    """The verb could not be carried out: one sentence, and the exit status (2: wrongly asked)."""

    def __init__(self, sentence: str, *, status: int = 1) -> None:
        super().__init__(sentence)
        self.status = status


class _WithExamples(click.Command):
    def __init__(self, *args: Any, examples: Sequence[Example] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Examples"):
                for what, line in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}# {what}\n")
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
        super().format_epilog(ctx, formatter)


class Verb(_WithExamples):
    """A command whose ``--help`` ends with examples."""


class VerbGroup(_WithExamples, click.Group):
    """Verbs under one noun. A mistyped verb is answered with the nearest one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        given = args[0] if args else ""
        if given and not given.startswith("-") and self.get_command(ctx, given) is None:
            from cotidal.client.failures import nearest

            close = nearest(given, self.list_commands(ctx))
            hint = f"; did you mean '{close}'?" if close else ""
            raise click.UsageError(f"there is no verb '{given}'{hint}", ctx)
        return super().resolve_command(ctx, args)


def bootstrap_option(function: Decorated) -> Decorated:
    """``--bootstrap``: any brokers of the cluster; the others are learnt from them."""
    return click.option(
        "--bootstrap",
        metavar="HOST:PORT,...",
        envvar="COTIDAL_BOOTSTRAP",
        default=DEFAULT_BOOTSTRAP,
        show_default=True,
        show_envvar=True,
        callback=check_bootstrap,
        help="Brokers to ask first.",
    )(function)


def check_bootstrap(ctx: click.Context, param: click.Parameter, value: str) -> str:
    from cotidal.client.addresses import parse_bootstrap

    try:
        parse_bootstrap(value)
    except ValueError as wrong:
        raise click.UsageError(str(wrong), ctx) from None
    return value


def json_option(function: Decorated) -> Decorated:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(
        function
    )


def complete_topic(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Topic names for the shell's completion; silence when no cluster answers quickly."""
    from cotidal.client.cluster import Cluster
    from cotidal.client.failures import ClientError

    bootstrap = ctx.params.get("bootstrap") or os.environ.get(
        "COTIDAL_BOOTSTRAP", DEFAULT_BOOTSTRAP
    )
    try:
        with Cluster(bootstrap, timeout_s=1.0) as cluster:
            names = [topic.name for topic in cluster.metadata().topics]
    except (ClientError, ValueError):
        return []
    return [name for name in names if name.startswith(incomplete)]
