"""Lengths of time as people write them: 90, 45s, 30m, 2h, 1d."""

from __future__ import annotations

import re

import click

_UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d)?")


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        found = _WRITTEN.fullmatch(str(value).strip().lower())
        seconds = float(found[1]) * _UNITS[found[2] or ""] if found else 0.0
        if seconds <= 0:
            self.fail(f"{value!r} is no length of time: write 90, 45s, 30m, 2h or 1d", param, ctx)
        return seconds


DURATION = Duration()
