"""Renders a session's screen as a PNG for chats, with Pillow (the extra `picture`) and a font of this machine.

A separate process draws the picture: the hub stays small, and an error there is only a refusal here. The session has
redacted secrets before the screen leaves it.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from atlasbridge.channels.base import run_program
from atlasbridge.channels.language import t
from atlasbridge.core.process import own_environ, own_python
from atlasbridge.core.screen.queries import palette
from atlasbridge.core.screen.width import width

log = logging.getLogger(__name__)
DRAWING_S = 60.0  # only a drawing that hangs takes so long, even on a busy machine
GROUND, INK = "#0e1217", "#d5dae1"
BOLD, DIM, UNDERLINE, REVERSE, HIDDEN = 1, 2, 8, 32, 64
MOST_ROWS, MOST_COLS = 200, 400  # keeps width and height within Telegram's limit
SIZE, MARGIN = 16, 12
PLACES = (
    "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf",
    "/usr/share/fonts/dejavu-sans-mono-fonts/DejaVuSansMono.ttf",
    "/usr/share/fonts/TTF/DejaVuSansMono.ttf",
    "/usr/share/fonts/truetype/liberation/LiberationMono-Regular.ttf",
    "/usr/share/fonts/truetype/noto/NotoSansMono-Regular.ttf",
    "/System/Library/Fonts/Menlo.ttc",
    "C:/Windows/Fonts/consola.ttf",
)
NO_PILLOW, NO_FONT = 3, 4
WHY = {
    NO_PILLOW: "Pictures need one more package: pip install '.[picture]' in the checkout",
    NO_FONT: "Pictures need a monospaced font, such as DejaVu Sans Mono.",
}
Cell = tuple[int, int, str, int, str, str, int]  # row, column, character, cells, foreground, background, flags


async def make_picture(screen: dict[str, Any]) -> bytes | str:
    """Return the picture, or the reason why there is none."""
    words, given = own_python("atlasbridge.channels.screenshot"), json.dumps(screen).encode()
    try:
        status, made, why = await run_program(words, DRAWING_S, given, own_environ(os.environ))
    except TimeoutError:
        return t("The picture took too long.")
    if status == 0 and made:
        return made
    log.warning("a picture of a screen could not be drawn: status %s %s", status, why)
    return t(WHY.get(status, "The picture could not be drawn."))


def lay_out(screen: dict[str, Any]) -> Iterator[Cell]:
    """Yield every character to draw, with its position. Pure."""
    for row, runs in enumerate((screen.get("styled") or [])[:MOST_ROWS]):
        column = 0
        for text, front, back, flags in runs:
            ink, ground = _colour(front, INK), _colour(back, GROUND)
            if flags & REVERSE:
                ink, ground = ground, ink
            for letter in text:
                cells = width(letter)
                if cells > 0 and column + cells <= MOST_COLS:
                    yield row, column, letter, cells, ink, ground, int(flags)
                column += max(0, cells)


def _colour(value: object, otherwise: str) -> str:
    if isinstance(value, str) and len(value) == 7 and value.startswith("#"):
        return value
    return palette(value) if isinstance(value, int) and 0 <= value <= 255 else otherwise


def find_font() -> str:
    """Return the path of a monospaced font, or "" if there is none."""
    if found := next((path for path in PLACES if Path(path).is_file()), ""):
        return found
    if program := shutil.which("fc-match"):
        asked = subprocess.run([program, "-f", "%{file}", "monospace"], capture_output=True, text=True, check=False)
        return asked.stdout.strip()
    return ""


def draw(screen: dict[str, Any], font_path: str) -> bytes:
    import io

    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.truetype(font_path, SIZE)
    step, (above, below) = round(font.getlength("M")), font.getmetrics()
    height = above + below
    rows, cols = (
        min(int(screen.get(name) or least), most)
        for name, least, most in (("rows", 24, MOST_ROWS), ("cols", 80, MOST_COLS))
    )
    image = Image.new("RGB", (cols * step + 2 * MARGIN, rows * height + 2 * MARGIN), GROUND)
    pen = ImageDraw.Draw(image)
    for row, column, letter, cells, ink, ground, flags in lay_out(screen):
        left, top = MARGIN + column * step, MARGIN + row * height
        right = left + cells * step
        if ground != GROUND:
            pen.rectangle((left, top, right - 1, top + height - 1), fill=ground)
        if letter != " " and not flags & HIDDEN:
            faded = ink if not flags & DIM else _between(ink, ground)
            pen.text((left, top), letter, font=font, fill=faded, stroke_width=0.4 if flags & BOLD else 0)
        if flags & UNDERLINE:
            pen.line((left, top + height - 2, right - 1, top + height - 2), fill=ink)
    if screen.get("cursor_visible") and screen.get("cursor"):
        row, column = (int(number) for number in screen["cursor"])
        left, top = MARGIN + column * step, MARGIN + row * height
        pen.rectangle((left, top, left + step - 1, top + height - 1), outline=INK)
    output = io.BytesIO()
    image.save(output, "PNG", optimize=True)
    return output.getvalue()


def _between(one: str, other: str) -> str:
    pairs = ((int(one[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{(2 * a + b) // 3:02x}" for a, b in pairs)


def main() -> int:
    font_path = find_font()
    if not font_path:
        return NO_FONT
    try:
        made = draw(json.load(sys.stdin), font_path)
    except ImportError:
        return NO_PILLOW
    sys.stdout.buffer.write(made)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
