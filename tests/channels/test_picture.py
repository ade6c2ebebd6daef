"""A session's screen as a picture: in its colours, as a photo or a file, and words where none can be made."""

from __future__ import annotations

import io
from typing import Any

import pytest
from PIL import Image
from tests.support.chat_stage import stage

from atlasbridge.channels import screenshot as picture
from atlasbridge.channels.screenshot import find_font, lay_out, make_picture

RED_ON_WHITE = ["hello", 1, 15, 0]
needs_font = pytest.mark.skipif(not find_font(), reason="no monospaced font is installed here")


def screen(*rows: list[Any], rows_high: int = 4, cols: int = 20) -> dict[str, Any]:
    return {"styled": list(rows), "rows": rows_high, "cols": cols, "cursor": [0, 0], "cursor_visible": False}


def test_letters_stand_in_the_cells_that_the_terminal_gave_them() -> None:
    cells = list(lay_out(screen([["a世b", None, None, 0]], [["x", "#102030", None, 32]])))
    assert [(row, column, letter, wide) for row, column, letter, wide, *_ in cells] == [
        (0, 0, "a", 1),
        (0, 1, "世", 2),
        (0, 3, "b", 1),
        (1, 0, "x", 1),
    ]
    assert cells[3][4:6] == (picture.GROUND, "#102030")  # turned around


@needs_font
async def test_a_picture_has_the_colours_of_the_screen() -> None:
    made = await make_picture(screen([RED_ON_WHITE], [["│ box", None, None, 1]]))
    assert isinstance(made, bytes)
    image = Image.open(io.BytesIO(made)).convert("RGB")
    colours = {colour for _, colour in image.getcolors(100_000) or []}
    assert (255, 255, 255) in colours and (205, 0, 0) in colours and (14, 18, 23) in colours


@needs_font
async def test_a_huge_screen_stays_within_what_telegram_takes() -> None:
    made = await make_picture(screen(*[[["wide" + " " * 896, None, None, 0]]] * 500, rows_high=500, cols=900))
    assert isinstance(made, bytes)
    image = Image.open(io.BytesIO(made))
    assert image.width + image.height <= 10_000


@needs_font
@pytest.mark.parametrize("name", ["telegram", "slack"])
async def test_the_picture_of_a_session_comes_into_the_chat(name: str) -> None:
    async with stage(name) as on:
        session = on.hub_api.add_session(label="web")
        on.hub_api.screens[session.session_id] = screen([RED_ON_WHITE])
        on.command("picture web")

        def shown() -> list[Any]:
            return [one for one in on.person.sees() if one.get("photo") or one.get("files")]

        await on.until(shown, "the picture")
        content = shown()[0].get("_content") or next(iter(on.server.files.values()))
        assert content.startswith(b"\x89PNG")


async def test_without_a_font_the_person_is_told_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "PLACES", ())
    monkeypatch.setenv("PATH", "")
    assert find_font() == "" and picture.main() == picture.NO_FONT
    assert "pip install" in picture.WHY[picture.NO_PILLOW]
