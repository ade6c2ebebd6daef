"""`atlasbridge help`: the help of any command, and man pages generated from the commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from atlasbridge import __version__
from atlasbridge.cli.catalogue import GROUPS, render_help, sentence_of
from atlasbridge.cli.printing import json_option, print_json
from atlasbridge.core.distribution import others
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.session.model import meant, nearest


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
        click.echo(render_help())
        return
    click.echo(find_help(words))


def find_help(words: tuple[str, ...]) -> str:
    from atlasbridge.cli.main import cli, root_context

    context = root_context()
    found: click.Command = cli
    for word in words:
        inner = found.get_command(context, word) if isinstance(found, click.Group) else None
        if inner is None:
            names = found.list_commands(context) if isinstance(found, click.Group) else []
            raise ConfigError(
                f"there is no command {' '.join(words)!r}", meant(nearest(word, names)) or "see: atlasbridge help"
            )
        found = inner
        context = click.Context(found, info_name=word, parent=context)
    return text_of(found, context)


def text_of(found: click.Command, context: click.Context) -> str:
    """Also for commands that parse their own arguments and have their own help text."""
    from atlasbridge.cli import attach, integrations, run

    own = {"run": run.HELP, "attach": attach.HELP, "mcp": integrations.MCP_HELP, "acp": integrations.ACP_HELP}
    name = context.command_path.removeprefix("atlasbridge ")
    return own[name].rstrip() if name in own else found.get_help(context)


def man_pages() -> Iterator[tuple[str, str]]:
    """Yield (file name, text): one page for all, and one for each command with its subcommands."""
    from atlasbridge.cli.main import cli, root_context

    yield "atlasbridge.1", render_man("atlasbridge", "asks you where you are", [("", render_help())])
    for name in (name for group in GROUPS.values() for name in group):
        found = cli.get_command(context := root_context(), name)
        assert found is not None
        parts = list(_help_texts(found, click.Context(found, info_name=name, parent=context)))
        yield f"atlasbridge-{name}.1", render_man(f"atlasbridge-{name}", sentence_of(name).rstrip("."), parts)


def _help_texts(found: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """The help of a command and of all commands below it."""
    yield context.command_path.partition(" ")[2], text_of(found, context)
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
