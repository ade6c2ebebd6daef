"""Output of commands: JSON for programs, tables for people."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from atlasbridge.core.clock import SystemClock, parse_duration, parse_iso
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.home import Home
from atlasbridge.core.screen.width import width

# Text in terminal columns: measured, cut, wrapped, and laid out as tables without losing text. Pure.

GAP = 2
LAST_COLS = 24  # with less space, the last column gets separate lines
INDENT = 4


def cells(text: str) -> int:
    return sum(width(char) for char in text)


def clip(text: str, cols: int, end: str = "…") -> str:
    """Cut to at most `cols` columns, with a mark at the cut."""
    if cells(text) <= cols:
        return text
    out, used = "", cells(end)
    for char in text:
        used += width(char)
        if used > cols:
            break
        out += char
    return out + end


def pad(text: str, cols: int) -> str:
    return text + " " * (cols - cells(text))


def fold(text: str, cols: int) -> list[str]:
    """Wrap a line without losing a character. A word is broken only if it fills a whole line."""
    lines, part, used = [], "", 0
    for char in text:
        if used + width(char) > cols:
            end = part.rfind(" ") + 1
            end = end if part[:end].strip() else len(part)
            lines.append(part[:end])
            part = part[end:]
            used = cells(part)
        part += char
        used += width(char)
    return [*lines, part]


def lay_out(columns: Sequence[str], rows: Sequence[Sequence[str]], cols: int) -> list[str]:
    """Header, separator and rows. With `cols` 0, every row is one line of any length."""
    widths = [max(cells(row[place]) for row in (columns, *rows)) for place in range(len(columns))]
    before = sum(widths[:-1]) + GAP * (len(widths) - 1)
    room = cols - before
    if not cols or widths[-1] <= room:
        head, *parts = [[_line(row, widths)] for row in (columns, *rows)]
    elif room >= LAST_COLS:
        head, *parts = [_beside(row, widths, before, room) for row in (columns, *rows)]
    else:
        head, *parts = [_below(row, widths, cols) for row in (columns, *rows)]
    body = [line for part in parts for line in part]
    return [*head, "─" * max(cells(line) for line in (*head, *body)), *body]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return (" " * GAP).join(pad(cell, size) for cell, size in zip(row, widths, strict=True)).rstrip()


def _beside(row: Sequence[str], widths: Sequence[int], before: int, room: int) -> list[str]:
    first, *others = fold(row[-1], room)
    return [_line((*row[:-1], first), (*widths[:-1], 0)), *(" " * before + other for other in others)]


def _below(row: Sequence[str], widths: Sequence[int], cols: int) -> list[str]:
    above = fold(_line(row[:-1], widths[:-1]), cols)
    return [*above, *(" " * INDENT + part for part in fold(row[-1], max(cols - INDENT, 1)))]


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def home() -> Home:
    return Home.find(os.environ)


def hub_client(start: bool = False) -> HubClient:
    """Connect to the hub; `start` starts it first if needed."""
    if start:
        from atlasbridge.core.daemon.starter import ensure_hub

        ensure_hub(home())
    return HubClient(home())


def dump(value: Any, indent: int | None = None) -> str:
    """JSON with invisible and control characters escaped: the same for a program, harmless on a terminal."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)


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
    cols = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    shown = [[escape_controls(str(cell), keep_lines=False) for cell in row] for row in rows]
    click.echo("\n".join(lay_out(columns, shown, cols)))


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
    """A group that accepts old names of its commands and prints the new ones."""

    def __init__(self, *args: Any, renamed: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._renamed = dict(renamed or {})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        now = self._renamed.get(cmd_name)
        if now is None or cmd_name in self.commands:
            return super().get_command(ctx, cmd_name)
        if not ctx.resilient_parsing:
            click.echo(f"note: this command is called {ctx.command_path} {now} now", err=True)
        return super().get_command(ctx, now)
