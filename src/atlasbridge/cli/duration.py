"""Spans of time on the command line: 30s, 30m, 12h, 7d."""

from __future__ import annotations

import re

import click

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


class Duration(click.ParamType):  # type: ignore[type-arg]  # older versions of click know no arguments
    name = "duration"

    def __init__(self, bare_seconds: bool = False) -> None:
        """`bare_seconds`: a number without a unit means seconds, where nothing else could be meant."""
        self._unit = "[smhdw]?" if bare_seconds else "[smhdw]"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = re.fullmatch(rf"(\d+(?:\.\d+)?)({self._unit})", str(value).strip())
        if found is None:
            self.fail(f"{value!r} is no span of time; write 30m, 12h or 7d", param, ctx)
        return float(found[1]) * _UNITS[found[2] or "s"]


DURATION = Duration()
WAITING_TIME = Duration(bare_seconds=True)
