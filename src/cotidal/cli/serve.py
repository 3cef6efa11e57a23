"""``cotidal sim serve``: the simulator as a web page."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

import click

from cotidal.cli.verb import Failed, Verb

PORT: Final = 8090


@click.command(
    cls=Verb,
    examples=(
        ("a cluster to play with, at http://localhost:8090", "cotidal sim serve"),
        ("a certain run, with five brokers", "cotidal sim serve --seed 7 --nodes 5"),
        ("a thousand partitions", "cotidal sim serve --nodes 5 --partitions 1000"),
        ("a lesson", "cotidal sim serve --story lesson/slow-region"),
        ("a run that failed", "cotidal sim serve --plan harsh --seed 22"),
        ("what is left of it", "cotidal sim serve --script harsh-22.script"),
        ("somewhere else", "cotidal sim serve --port 9000"),
        ("for others too: prints an address with a token", "cotidal sim serve --host 0.0.0.0"),
    ),
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: a free one."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Others need a token.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--nodes", type=click.IntRange(1, 7), default=3, show_default=True)
@click.option("--partitions", type=click.IntRange(1, 1000), default=1, show_default=True)
@click.option("--story", help="A script of tests/scripts, or a lesson: see the page's list.")
@click.option("--plan", "plan_name", help="Show this seed of a plan: see `sim plans`.")
@click.option(
    "--script", type=click.Path(dir_okay=False, exists=True), help="Show the run of a script."
)
def serve(
    port: int,
    host: str,
    seed: int,
    nodes: int,
    partitions: int,
    story: str | None,
    plan_name: str | None,
    script: str | None,
) -> None:
    """Open the simulator as a page: see the protocol, break it, understand it."""
    try:
        from cotidal.console.stories import names
        from cotidal.console.worlds import WORLDS
    except TypeError:  # its worlds derive from classes of the simulator, which are closed there
        raise Failed(
            "the page runs on the plain build of cotidal, not on the compiled one"
        ) from None

    start = {"seed": str(seed), "nodes": str(nodes)}
    if partitions > 1:
        start["partitions"] = str(partitions)
    if story is not None:
        if story not in names():
            raise Failed(f"there is no story '{story}'{_hint(story, names())}", status=2)
        start = {"world": "story", "story": story}
    elif plan_name is not None:
        from cotidal.cli.sim import plan_named

        start = {"world": "run", "plan": plan_named(plan_name).name, "seed": str(seed)}
    elif script is not None:
        start = {"world": "run", "script": _text_of(script)}
    serve_page(WORLDS, host=host, port=port, start=start)


def _text_of(path: str) -> str:
    """The page opens it: it is looked at here first, so that what is wrong is said at once."""
    from cotidal.sim.script import parse_script

    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        parse_script(text)
    except ValueError as wrong:
        raise Failed(f"{path} is no script of a run: {wrong}", status=2) from None
    return text


def _hint(story: str, known: Sequence[str]) -> str:
    from cotidal.client.failures import nearest

    close = nearest(story, list(known))
    return f"; did you mean '{close}'?" if close else ""


def serve_page(
    worlds: object, *, host: str, port: int, start: dict[str, str], token: str | None = None
) -> None:
    """Until it is interrupted. ``start``: what the page opens first. ``token``: one to ask for
    in any case; else a random one is asked for where others than this machine can come."""
    try:
        from cotidal.console.host import run
        from cotidal.console.server import is_loopback
    except ImportError as missing:
        raise Failed(
            f"the page needs {missing.name}, which is not installed:"
            " `pip install 'cotidal[console]'`",
            status=2,
        ) from None
    asked = token or ("" if is_loopback(host) else secrets.token_urlsafe(16))

    def told(bound: int) -> None:
        query = f"?{urlencode({'token': asked})}" if asked else ""
        shown = "localhost" if is_loopback(host) else host
        what = f"#{urlencode(start)}" if start else ""
        click.echo(f"http://{shown}:{bound}/{query}{what}")

    try:
        run(worlds, host=host, port=port, token=asked, on_ready=told)  # type: ignore[arg-type]
    except OSError as error:
        raise Failed(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
