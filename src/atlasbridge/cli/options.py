"""Command groups that accept old names of their commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click


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
