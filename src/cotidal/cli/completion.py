"""``cotidal completion``: the script that teaches a shell our verbs, options and topics."""

from __future__ import annotations

import click

from cotidal.cli.verb import Failed, Verb


@click.command(
    cls=Verb,
    examples=(
        ("bash", "cotidal completion bash >> ~/.bashrc"),
        ("zsh", "cotidal completion zsh >> ~/.zshrc"),
        ("fish", "cotidal completion fish > ~/.config/fish/completions/cotidal.fish"),
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL."""
    from click.shell_completion import get_completion_class

    completion = get_completion_class(shell)
    if completion is None:
        raise Failed(f"there is no completion for {shell}")
    root = context.find_root().command
    # The source is taken straight from the template: asking the object for it would run bash to
    # learn its version, on a machine that may have none.
    script = completion(root, {}, "cotidal", "_COTIDAL_COMPLETE")
    click.echo(script.source_template % script.source_vars())
