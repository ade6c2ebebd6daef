"""`atlasbridge help`: the help of any command, and man pages generated from the commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import get_completion_class

from atlasbridge import __version__
from atlasbridge.cli.catalogue import GROUPS, render_help, sentence_of
from atlasbridge.cli.columns import fit
from atlasbridge.cli.printing import echo, json_option, print_json
from atlasbridge.core.distribution import others
from atlasbridge.core.errors import AtlasBridgeError, ConfigError
from atlasbridge.core.session.model import did_you_mean, nearest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.option("--man", type=click.Path(path_type=Path, file_okay=False), help="Write all man pages into this folder.")
def command(words: tuple[str, ...], man: Path | None) -> None:
    """Show the help of a command, such as `help run` or `help hub start`; without one, the list of commands."""
    if man is not None:
        man.mkdir(parents=True, exist_ok=True)
        pages = dict(man_pages())
        for name, text in pages.items():
            (man / name).write_text(text, "utf-8")
        click.echo(f"{len(pages)} man pages are in {man}; read one: man -l {man}/atlasbridge.1")
        return
    if not words:
        echo(render_help())
        return
    echo(find_help(words))


def find_help(words: tuple[str, ...]) -> str:
    from atlasbridge.cli.main import cli, root_context

    context = root_context()
    found: click.Command = cli
    for word in words:
        inner = found.get_command(context, word) if isinstance(found, click.Group) else None
        if inner is None:
            names = found.list_commands(context) if isinstance(found, click.Group) else []
            raise ConfigError(
                f"there is no command {' '.join(words)!r}",
                did_you_mean(nearest(word, names)) or "see: atlasbridge help",
            )
        found = inner
        context = click.Context(found, info_name=word, parent=context)
    return text_of(found, context)


def text_of(found: click.Command, context: click.Context) -> str:
    """Also for commands that parse their own arguments and have their own help text."""
    from atlasbridge.cli.run import LIGHT_COMMANDS

    name = context.command_path.removeprefix("atlasbridge ")
    return LIGHT_COMMANDS[name][1].rstrip() if name in LIGHT_COMMANDS else found.get_help(context)


MAN_COLS = 70  # what man leaves of a line of 80


def man_pages() -> Iterator[tuple[str, str]]:
    """Yield (file name, text): one page for all, and one for each command with its subcommands."""
    from atlasbridge.cli.main import cli, root_context

    overview = fit(render_help(), MAN_COLS)
    yield "atlasbridge.1", render_man("atlasbridge", "asks you where you are", [("", overview)])
    for name in (name for group in GROUPS.values() for name in group):
        found = cli.get_command(context := root_context(terminal_width=MAN_COLS), name)
        assert found is not None
        parts = list(_help_texts(found, click.Context(found, info_name=name, parent=context)))
        yield f"atlasbridge-{name}.1", render_man(f"atlasbridge-{name}", sentence_of(name).rstrip("."), parts)


def _help_texts(found: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """The help of a command and of all commands below it."""
    yield context.command_path.partition(" ")[2], fit(text_of(found, context), MAN_COLS)
    for word in found.list_commands(context) if isinstance(found, click.Group) else ():
        below = found.get_command(context, word) if isinstance(found, click.Group) else None
        if below is not None and not below.hidden:
            yield from _help_texts(below, click.Context(below, info_name=word, parent=context))


def render_man(name: str, about: str, parts: list[tuple[str, str]]) -> str:
    """The first part is the command's own; its first line is the usage."""
    lines = [f'.TH {name.upper()} 1 "" "AtlasBridge {__version__}"', ".SH NAME", f"{_roff(name)} \\- {_roff(about)}"]
    usage, _, rest = parts[0][1].partition("\n")
    parts = [("synopsis", usage.partition(": ")[2]), ("description", rest.lstrip("\n")), *parts[1:]]
    for title, text in parts:
        lines += [f".SH {_roff(title.upper())}", ".nf", *(_roff(line) for line in text.split("\n")), ".fi"]
    return "\n".join([*lines, ""])


def _roff(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


# `atlasbridge version`.


@click.command("version")
@json_option
def version_command(as_json: bool) -> None:
    """Show the version of AtlasBridge and of what it runs on."""
    if not as_json:
        click.echo(f"atlasbridge {__version__}")
        for other in others():
            click.echo(f"Warning: {other}. To remove it, see docs/install.md.", err=True)
        return
    from atlasbridge.cli.doctor import versions

    print_json(versions())


# Shell completion: names and ids of sessions and prompts. It prints no errors and starts no hub.


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
    from atlasbridge.cli.run import LIGHT_COMMANDS

    arguments = {
        "run": click.Argument(["tool"], nargs=-1, type=click.UNPROCESSED, shell_complete=complete_programs),
        "attach": click.Argument(["session"], required=False, shell_complete=complete_sessions),
    }
    rest = click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)
    return [*_options(LIGHT_COMMANDS[name][2]), arguments.get(name, rest)]


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
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL")
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
