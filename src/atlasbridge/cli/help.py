"""`atlasbridge help`: the help of any command, and man pages generated from the commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from atlasbridge import __version__
from atlasbridge.cli.catalogue import GROUPS, render_help, sentence_of
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
    match context.command_path:
        case "atlasbridge run":
            from atlasbridge.cli.run import HELP

            return HELP.rstrip()
        case "atlasbridge attach":
            from atlasbridge.cli.attach import HELP as ATTACH

            return ATTACH.rstrip()
    return found.get_help(context)


def man_pages() -> Iterator[tuple[str, str]]:
    """Yield (file name, text): one page for all, and one for each command with its subcommands."""
    from atlasbridge.cli.main import cli, root_context

    context = root_context()
    yield "atlasbridge.1", render_man("atlasbridge", "asks you where you are", [("DESCRIPTION", render_help())])
    for name in (name for group in GROUPS.values() for name in group):
        found = cli.get_command(context, name)
        assert found is not None
        inner = click.Context(found, info_name=name, parent=context)
        parts = [("DESCRIPTION", text_of(found, inner))]
        if isinstance(found, click.Group):
            for word in found.list_commands(inner):
                below = found.get_command(inner, word)
                if below is not None and not below.hidden:
                    parts.append((word.upper(), text_of(below, click.Context(below, info_name=word, parent=inner))))
        yield f"atlasbridge-{name}.1", render_man(f"atlasbridge-{name}", sentence_of(name).rstrip("."), parts)


def render_man(name: str, about: str, parts: list[tuple[str, str]]) -> str:
    lines = [f'.TH {name.upper()} 1 "" "AtlasBridge {__version__}"', ".SH NAME", f"{_roff(name)} \\- {_roff(about)}"]
    for title, text in parts:
        lines += [f".SH {_roff(title)}", ".nf", *(_roff(line) for line in text.split("\n")), ".fi"]
    return "\n".join([*lines, ""])


def _roff(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
