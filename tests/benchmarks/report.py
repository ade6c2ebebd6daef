"""Turns what was measured into docs/benchmarks.md and one plot."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.measure import Series

BASE = "C poll relay"


@dataclass(slots=True)
class Report:
    """The page as it grows; the targets come first on it."""

    lines: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)

    def section(self, title: str, *lines: str) -> None:
        self.add(f"## {title}", "", *lines)

    def add(self, *lines: str) -> None:
        self.lines += lines

    def target(self, what: str, aim: str, measured: str, met: bool) -> None:
        self.targets.append(f"| {what} | {aim} | {measured} | {'yes' if met else '**no**'} |")

    def page(self, intro: str) -> str:
        head = [
            "# Benchmarks",
            "",
            intro,
            "",
            "## Targets",
            "",
            "| what | aim | measured | reached |",
            "|---|---|---|---|",
        ]
        return "\n".join([*head, *self.targets, "", *self.lines]) + "\n"


def table(series: Series) -> list[str]:
    """One row per peer: median, ratio to the C relay, the machine's noise."""
    lines = [f"### {series.title}", "", f"| | {series.unit} | of the C relay | noise |", "|---|---|---|---|"]
    order = sorted(series.samples, key=series.median, reverse=series.better == "higher")
    for name in order:
        ratio = f"{series.ratio(name, BASE):.2f}" if BASE in series.samples else ""
        shown = f"**{name}**" if name == "AtlasBridge" else name
        lines.append(f"| {shown} | {series.median(name):,.1f} | {ratio} | ±{series.spread(name):.0%} |")
    return [*lines, "", *(f"{note}" for note in series.notes), ""]


def plot(series: Series, path: Path) -> None:
    """A bar chart as plain SVG."""
    names = sorted(series.samples, key=series.median, reverse=True)
    top = max(map(series.median, names))
    height = 28 * len(names) + 56
    rows = []
    for i, name in enumerate(names):
        y, width = 44 + 28 * i, 380 * series.median(name) / top
        fill = "#2f6fed" if name == "AtlasBridge" else "#9aa4b2"
        rows.append(f'<text x="190" y="{y + 14}" text-anchor="end">{name}</text>')
        rows.append(f'<rect x="200" y="{y}" width="{width:.1f}" height="20" rx="3" fill="{fill}"/>')
        rows.append(f'<text x="{208 + width:.1f}" y="{y + 14}">{series.median(name):,.0f}</text>')
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 {height}" font-family="system-ui, sans-serif" '
        f'font-size="13" fill="#444"><text x="20" y="24" font-size="15">{series.title} ({series.unit})</text>'
        + "".join(rows)
        + "</svg>\n"
    )


def machine() -> str:
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
