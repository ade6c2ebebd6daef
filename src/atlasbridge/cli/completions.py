"""`atlasbridge completions`: the script that teaches a shell to complete our commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command("completions")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash  eval "$(atlasbridge completions bash)"   in ~/.bashrc
    zsh   eval "$(atlasbridge completions zsh)"    in ~/.zshrc
    fish  atlasbridge completions fish > ~/.config/fish/completions/atlasbridge.fish
    """
    from atlasbridge.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "atlasbridge", "_ATLASBRIDGE_COMPLETE").source())
