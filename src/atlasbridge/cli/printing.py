"""How commands print: JSON for programs, tables for people."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any

import click

from atlasbridge.cli.columns import lay_out
from atlasbridge.core.clock import SystemClock, parse_iso
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.home import Home
from atlasbridge.core.visible import visible

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def home() -> Home:
    return Home.find(os.environ)


def hub_client(start: bool = False) -> HubClient:
    """A connection to the hub; `start` it first where that is what the person wants."""
    if start:
        from atlasbridge.core.daemon.starter import ensure_hub

        ensure_hub(home())
    return HubClient(home())


def dump(value: Any, indent: int | None = None) -> str:
    """JSON whose invisible and steering characters are escaped: the same to a program, harmless on a terminal."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)


def print_json(value: Any) -> None:
    click.echo(dump(value, indent=2))


def print_line(value: Any) -> None:
    """One JSON object on one line, at once."""
    sys.stdout.write(dump(value) + "\n")
    sys.stdout.flush()


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], empty: str) -> None:
    """Wrapped on a terminal, whole lines behind a pipe; never cut."""
    if not rows:
        click.echo(empty)
        return
    cols = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    shown = [[visible(str(cell), keep_lines=False) for cell in row] for row in rows]
    click.echo("\n".join(lay_out(columns, shown, cols)))


def ago(at: str) -> str:
    """How long since a moment, for people."""
    if not at:
        return ""
    seconds = max(0, int(SystemClock().wall() - parse_iso(at)))
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
