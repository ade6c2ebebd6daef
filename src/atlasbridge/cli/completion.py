"""Shell completion: names and ids of sessions and prompts. It prints no errors and starts no hub."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import get_completion_class

from atlasbridge.core.errors import AtlasBridgeError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


ANSWER_S = 1.0  # a completion must be fast


def complete_sessions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    items = []
    for session in _ask("sessions"):
        name = session["label"] or session["tool"]
        words = [name] if name.isprintable() else []
        about = f"{session['tool']} in {session['cwd']}"
        items += [CompletionItem(word, help=about) for word in [*words, session["session_id"][:8]]]
    return [item for item in items if item.value.lower().startswith(incomplete.lower())]


def complete_prompts(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from atlasbridge.cli.overview import asking_line
    from atlasbridge.core.escape import escape_controls

    items = [
        CompletionItem(word, help=escape_controls(asking_line(prompt), keep_lines=False)[:60])
        for prompt in _ask("prompts")
        for word in (prompt["label"] or prompt["tool"], prompt["prompt_id"][:8])
    ]
    return [item for item in items if item.value.lower().startswith(incomplete.lower())]


def complete_channels(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from atlasbridge.bootstrap import channel_names

    return [name for name in (*channel_names(), "none") if name.startswith(incomplete)]


def complete_programs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Programs on PATH that start with `incomplete`; none if it is empty."""
    import os

    found: dict[str, None] = {}
    for folder in os.get_exec_path():
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        found |= dict.fromkeys(name for name in names if name.startswith(incomplete))
    return list(found) if incomplete else []


def plain_parameters(name: str) -> list[click.Parameter]:
    """Options of the commands that parse their own arguments, for shell completion."""
    from atlasbridge.cli import attach, integrations, run

    if name not in ("run", "attach"):
        return [*_options(integrations.OPTIONS), click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)]
    if name == "attach":
        session = click.Argument(["session"], required=False, shell_complete=complete_sessions)
        return [*_options(attach.OPTIONS), session]
    tool = click.Argument(["tool"], nargs=-1, type=click.UNPROCESSED, shell_complete=complete_programs)
    return [*_options(run.OPTIONS), tool]


def _options(table: tuple[tuple[str, str, str], ...]) -> list[click.Parameter]:
    special: dict[str, dict[str, Any]] = {
        "--channel": {"multiple": True, "shell_complete": complete_channels},
        "--backend": {"type": click.Choice(["pty", "conpty"])},
    }
    return [
        click.Option(names.split(", "), is_flag=not value, help=text, **special.get(names, {}))
        for names, value, text in table
    ]


def _ask(what: str) -> list[dict[str, Any]]:
    from atlasbridge.cli.printing import home
    from atlasbridge.core.daemon.request import HubClient

    try:
        with HubClient(home(), timeout_s=ANSWER_S) as hub:
            return list(hub.ask(what)[what])
    except AtlasBridgeError:
        return []  # a shell cannot show an error during completion


# `atlasbridge completions`: prints the completion script for a shell.

SHELLS = ("bash", "zsh", "fish")


@click.command("completions")
@click.argument("shell", type=click.Choice(SHELLS))
def completions_command(shell: str) -> None:
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
