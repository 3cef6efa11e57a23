"""``cotidal console``: a live cluster as a web page."""

from __future__ import annotations

import os
from typing import Final

import click

from cotidal.cli.verb import Verb, bootstrap_option

PORT: Final = 8088


@click.command(
    cls=Verb,
    examples=(
        ("the cluster at localhost:9092, at http://localhost:8088", "cotidal console"),
        ("another one", "cotidal console --bootstrap kafka-1:9092,kafka-2:9092"),
        ("with elections, settings and the like", "cotidal console --allow-changes"),
        ("for others too: prints an address with a token", "cotidal console --host 0.0.0.0"),
    ),
)
@bootstrap_option
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: a free one."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Others need a token.")
@click.option("--token", metavar="TEXT", help="Ask for this one.  [default: a random one]")
@click.option(
    "--data", metavar="DIR", help="Of a cluster that `up` runs here: kill and cut from the page."
)
@click.option("--allow-changes", is_flag=True, help="Without it, the page only shows.")
def command(
    bootstrap: str, port: int, host: str, token: str | None, data: str | None, allow_changes: bool
) -> None:
    """Show a live cluster as a page: replicas, leaders, what happens, and why."""
    from cotidal.cli.serve import serve_page
    from cotidal.console.live.worlds import worlds_with

    home = None if data is None else os.path.abspath(data)
    worlds = worlds_with(bootstrap, home=home, allow_changes=allow_changes)
    serve_page(worlds, host=host, port=port, start={}, token=token)
