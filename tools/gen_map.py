"""Draws docs/images/floors.svg from the code's own imports: every package on its floor, and whom it stands on.

A package stands one floor above the highest that it imports; lines that follow from other lines are left out.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
PICTURE = ROOT / "docs" / "images" / "floors.svg"
GROUND = {"errors", "ids", "clock", "values", "offered", "patterns", "visible", "home", "wire", "tty", "ports"}
BOX_W, BOX_H, GAP_X, GAP_Y, MARGIN = 132, 40, 18, 34, 20

Graph = dict[str, set[str]]


def room_of(words: list[str]) -> str:
    """The package that a dotted name belongs to; the small modules of core are one ground floor."""
    if words[0] == "ptypool":
        return "ptypool"
    if len(words) < 2 or words[1].startswith("__"):
        return ""
    if words[1] != "core":
        return words[1]
    if len(words) < 3 or words[2].startswith("__"):
        return ""
    return "core" if words[2] in GROUND else f"core.{words[2]}"


def read_graph() -> tuple[Graph, dict[str, int]]:
    """Who imports whom, and how many lines each has."""
    needs: Graph = defaultdict(set)
    lines: dict[str, int] = defaultdict(int)
    for path in sorted(SRC.rglob("*.py")):
        room = room_of(list(path.relative_to(SRC).with_suffix("").parts))
        if not room:
            continue
        text = path.read_text(encoding="utf-8")
        lines[room] += text.count("\n")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                words = node.module.split(".")
                if words[0] in ("atlasbridge", "ptypool"):
                    needs[room].add(room_of([*words, node.names[0].name]) or room)
        needs[room].discard(room)
    needs["core.daemon"].discard("bootstrap")  # the program's entry, which nobody imports
    needs["core"] -= {room for room in needs if room.startswith("core.")}  # the ports name what stands above the ground
    return needs, lines


def floors(needs: Graph) -> list[list[str]]:
    @cache
    def height(room: str) -> int:
        return 1 + max((height(other) for other in needs.get(room, ()) if other in needs), default=-1)

    stories: dict[int, list[str]] = defaultdict(list)
    for room in sorted(needs):
        stories[height(room)].append(room)
    return [stories[number] for number in sorted(stories)]


def direct(needs: Graph) -> Graph:
    """Without the lines that follow from others."""

    @cache
    def below(room: str) -> frozenset[str]:
        return frozenset(needs.get(room, ())).union(*(below(other) for other in needs.get(room, ())))

    return {
        room: {one for one in others if not any(one in below(other) for other in others - {one})}
        for room, others in needs.items()
    }


def render_map() -> str:
    needs, lines = read_graph()
    stories = floors(needs)
    width = max(map(len, stories)) * (BOX_W + GAP_X) - GAP_X + 2 * MARGIN
    height = len(stories) * (BOX_H + GAP_Y) - GAP_Y + 2 * MARGIN
    place: dict[str, tuple[float, float]] = {}
    for number, story in enumerate(stories):
        left = (width - len(story) * (BOX_W + GAP_X) + GAP_X) / 2
        for at, room in enumerate(story):
            place[room] = (left + at * (BOX_W + GAP_X), height - MARGIN - BOX_H - number * (BOX_H + GAP_Y))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        ' aria-label="The packages on their floors and whom each stands on">',
        "<style>text{font:13px system-ui,sans-serif;fill:#1b1f24;text-anchor:middle}.n{font-size:10px;fill:#57606a}"
        "rect{fill:#eef3fb;stroke:#5b7fb5;rx:6}path{stroke:#9aa7b8;fill:none}.back{fill:#fff;stroke:none}</style>",
        f'<rect class="back" width="{width}" height="{height}"/>',
    ]
    for room, others in sorted(direct(needs).items()):
        for other in sorted(others):
            (x, y), (to_x, to_y) = place[room], place[other]
            start, end = (x + BOX_W / 2, y + BOX_H), (to_x + BOX_W / 2, to_y)
            bend = (end[1] - start[1]) / 2
            parts.append(
                f'<path d="M{start[0]:g} {start[1]:g}C{start[0]:g} {start[1] + bend:g} {end[0]:g} {end[1] - bend:g}'
                f' {end[0]:g} {end[1]:g}"/>'
            )
    for room, (x, y) in sorted(place.items()):
        parts.append(f'<rect x="{x:g}" y="{y:g}" width="{BOX_W}" height="{BOX_H}"/>')
        parts.append(f'<text x="{x + BOX_W / 2:g}" y="{y + 17:g}">{room}</text>')
        parts.append(f'<text class="n" x="{x + BOX_W / 2:g}" y="{y + 32:g}">{round(lines[room], -2):,} lines</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(render_map(), encoding="utf-8")
