"""Durations on the command line: 90, 30s, 30m, 1h30m, 7d."""

from __future__ import annotations

import click

from atlasbridge.core.clock import parse_duration


class Duration(click.ParamType):  # type: ignore[type-arg]  # older versions of click know no arguments
    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = parse_duration(str(value))
        if seconds is None:
            self.fail(f"{value!r} is not a duration; write 30m, 12h, 7d, or a number of seconds", param, ctx)
        return seconds


DURATION = Duration()
