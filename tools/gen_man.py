"""Writes man pages from the commands themselves: `python tools/gen_man.py build/man`.

One page for `atlasbridge`, one for each command; packages build them from the source, so they are not kept in it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from atlasbridge import __version__
from atlasbridge.cli.catalogue import COMMANDS, sentence_of
from atlasbridge.cli.main import cli, root_context

SECTION = 1


def render_all() -> dict[str, str]:
    """File name and text of every page."""
    context = root_context()
    pages = {"atlasbridge.1": _overview()}
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None, name
        pages[f"atlasbridge-{name}.1"] = _page(name, command)
    return pages


def _overview() -> str:
    listed = [
        f".TP\n.B {_plain(name)}\n{_plain(text)}" for name, text in ((name, sentence_of(name)) for name in COMMANDS)
    ]
    return "\n".join(
        [
            _head("atlasbridge", "asks you where you are when a terminal program waits for you"),
            ".SH SYNOPSIS\n.B atlasbridge\n.I COMMAND\n.RI [ ARGS ...]",
            ".SH DESCRIPTION\nNotices when a terminal program waits for you,",
            "asks you where you are, and types your answer.",
            ".SH COMMANDS",
            *listed,
            ".SH ENVIRONMENT\n.TP\n.B ATLASBRIDGE_HOME\nThe home folder; ~/.atlasbridge unless it is set.",
            ".TP\n.B ATLASBRIDGE_BYPASS\nA shim runs the tool itself.",
            _also(),
        ]
    )


def _page(name: str, command: click.Command, title: str = "") -> str:
    title = title or f"atlasbridge {name}"
    short = sentence_of(name)
    parts = [_head(f"atlasbridge-{name}", short.rstrip(".")), f".SH SYNOPSIS\n.B {_plain(title)}\n{_usage(command)}"]
    parts.append(f".SH DESCRIPTION\n{_plain(_help(command))}")
    parts += _options(command)
    if isinstance(command, click.Group):
        parts.append(".SH COMMANDS")
        for word, inner in sorted(command.commands.items()):
            parts.append(f".SS {_plain(f'{title} {word} {_usage(inner)}')}\n{_plain(_help(inner))}")
            parts += _options(inner, ".PP")
    return "\n".join([*parts, _also()])


def _options(command: click.Command, heading: str = ".SH OPTIONS") -> list[str]:
    context = click.Context(command, parent=root_context())
    rows = [row for item in command.get_params(context) if (row := item.get_help_record(context))]
    listed = [f".TP\n.B {_plain(names)}\n{_plain(text) or _plain(names)}" for names, text in rows]
    return [heading, *listed] if listed else []


def _usage(command: click.Command) -> str:
    return _plain(" ".join(command.collect_usage_pieces(click.Context(command, parent=root_context()))))


def _help(command: click.Command) -> str:
    return " ".join((command.help or "").replace("\b", "").split())


def _head(name: str, short: str) -> str:
    return f'.TH {name.upper()} {SECTION} "" "AtlasBridge {__version__}"\n.SH NAME\n{name} \\- {_plain(short)}'


def _also() -> str:
    return ".SH SEE ALSO\n.BR atlasbridge (1),\nevery command has \\-\\-help.\n"


def _plain(text: str) -> str:
    """Roff reads a dot or a quotation mark at the beginning of a line as a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/man")
    target.mkdir(parents=True, exist_ok=True)
    for file_name, page in render_all().items():
        (target / file_name).write_text(page, "utf-8")
