"""Output of commands: JSON for programs, tables for people."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from atlasbridge.cli.columns import fit, lay_out, terminal_cols
from atlasbridge.core.clock import SystemClock, parse_duration, parse_iso
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.home import Home


def last_option(default: int) -> Callable[[Any], Any]:
    about = "How many, from the end."
    kind = click.IntRange(1)
    return click.option("-n", "--lines", "--limit", "limit", type=kind, default=default, show_default=True, help=about)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def home() -> Home:
    return Home.find(os.environ)


def hub_client(start: bool = False) -> HubClient:
    """Connect to the hub; `start` starts it first if needed."""
    if start:
        from atlasbridge.core.daemon.request import ensure_hub

        ensure_hub(home())
    return HubClient(home())


def dump(value: Any, indent: int | None = None) -> str:
    """JSON with invisible and control characters escaped: the same for a program, harmless on a terminal."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)


def echo(text: str, err: bool = False) -> None:
    """Print sentences: wrapped between words on a terminal."""
    click.echo(fit(text, terminal_cols(2 if err else 1)), err=err)


def print_json(value: Any) -> None:
    click.echo(dump(value, indent=2))


def print_line(value: Any) -> None:
    """One JSON object on one line, at once."""
    sys.stdout.write(dump(value) + "\n")
    sys.stdout.flush()


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], empty: str) -> None:
    """Wrapped on a terminal, whole lines for a pipe; never cut."""
    if not rows:
        click.echo(empty)
        return
    shown = [[escape_controls(str(cell), keep_lines=False) for cell in row] for row in rows]
    click.echo("\n".join(lay_out(columns, shown, terminal_cols())))


def print_found(
    found: Sequence[Any], as_json: bool, columns: Sequence[str], row: Callable[[Any], Sequence[object]], empty: str
) -> None:
    """The list itself as JSON, or a table with one `row` for each."""
    if as_json:
        print_json(found)
    else:
        print_table(columns, [row(one) for one in found], empty)


def scope_option(about: str) -> Callable[[Any], Any]:
    kinds = click.Choice(["read", "ask", "answer", "admin"])
    return click.option("--scope", type=kinds, default="read", show_default=True, help=about)


def ago(at: str) -> str:
    """The time since a moment, for people."""
    return span(SystemClock().wall() - parse_iso(at)) if at else ""


def span(seconds: float) -> str:
    seconds = max(0, int(seconds))
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


# Durations on the command line: 90, 30s, 30m, 1h30m, 7d.


class Duration(click.ParamType):  # type: ignore[type-arg]  # older versions of click know no arguments
    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = parse_duration(str(value))
        if seconds is None:
            self.fail(f"{value!r} is not a duration; write 30m, 12h, 7d, or a number of seconds", param, ctx)
        return seconds


DURATION = Duration()


# Command groups that accept old names of their commands.


class Renaming(click.Group):
    """A group that accepts old names of its commands for one more version and prints the new ones, which can be of
    several words."""

    def __init__(self, *args: Any, renamed: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._renamed = dict(renamed or {})

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Usage and hints of a command that was called by its old name say the new one."""
        said, command, rest = super().resolve_command(ctx, args)
        return self._renamed.get(said or "", said), command, rest

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        now = None if cmd_name in self.commands else self._renamed.get(cmd_name)
        if now is None:
            return self.find(cmd_name)
        if not ctx.resilient_parsing:
            click.echo(f"note: this command is called {ctx.command_path} {now} now", err=True)
        first, *rest = now.split(" ")
        found = self.find(first)
        for word in rest:
            found = found.commands[word] if isinstance(found, click.Group) else None
        return found

    def find(self, name: str) -> click.Command | None:
        """The command with this name, which is no old one."""
        return self.commands.get(name)
