"""The frozen interface over the same detector and typist as `run`: dialogs that need steps, on a real terminal."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from atlasbridge.adapters.base import AdapterInjectionError, PromptEvent, PromptType
from atlasbridge.adapters.contract import Run
from atlasbridge.adapters.pty import PtyAdapter
from atlasbridge.adapters.pty import PtyAdapter as GenericAdapter
from atlasbridge.adapters.registry import AdapterRegistry

MENU = """
import os, sys, termios, tty
rows, at = ["Solarized", "Gruvbox", "Nord"], 0
tty.setraw(0)
def draw():
    print("\\x1b[2J\\x1b[HChoose a theme:\\r", *(f"{'❯' if n == at else ' '} {row}\\r" for n, row in enumerate(rows)),
          sep="\\n", end="\\r\\n\\r\\n(arrow keys, enter)", flush=True)
draw()
while (key := os.read(0, 64)) != b"\\r":
    at = (at + (key.count(b"B") - key.count(b"A"))) % 3
    draw()
print("\\r\\ntook", rows[at], "\\r", flush=True)
os.read(0, 1)
"""


async def asked(run: Run) -> PromptEvent:
    while (event := await run.adapter.detect_prompt(bytes(run.output[-4096:]))) is None:
        await asyncio.sleep(0.05)
    return event


async def test_a_menu_that_needs_arrows_is_chosen_step_by_step(tmp_path: Path) -> None:
    program = tmp_path / "menu.py"
    program.write_text(MENU)
    run = await Run.start(GenericAdapter, (sys.executable, str(program)))
    try:
        event = await asked(run)
        assert (event.prompt_type, event.choices) == (PromptType.TYPE_MULTIPLE_CHOICE, ["Solarized", "Gruvbox", "Nord"])
        await run.adapter.inject_reply(run.reply(event, "3"))
        await run.shows(b"took Nord")
    finally:
        await run.end()


async def test_text_that_looks_like_a_prompt_while_the_tool_works_is_none() -> None:
    run = await Run.start(GenericAdapter, ("sh", "-c", "printf 'Overwrite the file? [y/N] '; sleep 30"))
    try:
        await run.shows(b"[y/N]")
        for _ in range(4):
            assert await run.adapter.detect_prompt(bytes(run.output)) is None
    finally:
        await run.end()


async def test_a_reply_to_a_prompt_that_has_left_the_screen_types_nothing() -> None:
    code = "import sys; input('Overwrite the file? [y/N] '); print('\\x1b[2J', flush=True); sys.stdin.read()"
    run = await Run.start(GenericAdapter, (sys.executable, "-c", code))
    try:
        event = await asked(run)
        assert isinstance(run.adapter, PtyAdapter)
        await run.adapter.type_keys(b"n\r")
        await run.shows(b"\x1b[2J")
        with pytest.raises(AdapterInjectionError, match="not typed"):
            await run.adapter.inject_reply(run.reply(event, "y"))
    finally:
        await run.end()


async def test_a_question_behind_which_a_pointer_stands_is_answered() -> None:
    code = "print('got', repr(input('Do you want to run this? (y/n) ❯ ')), flush=True); input()"
    run = await Run.start(GenericAdapter, (sys.executable, "-c", code))
    try:
        event = await asked(run)
        await run.adapter.inject_reply(run.reply(event, "y"))
        await run.shows(b"got 'y'")
    finally:
        await run.end()


async def test_the_names_of_the_architecture_document_are_there() -> None:
    adapter = AdapterRegistry.of_dialect("claude")()
    assert adapter.tool_name == "claude" and "2.1.325" in adapter.supported_versions
    for force, status in ((False, -15), (True, -9)):
        tool = PtyAdapter()
        await tool.start_session(["sleep", "600"])
        await tool.terminate(force)
        assert await tool.wait() == status


LINES = ["Continue? (y/n) ", "Overwrite it? [y/N] ", "Password: ", "Enter your name: ", "Press Enter to continue", "> "]


@pytest.mark.parametrize("question", LINES)
async def test_a_prompt_is_found_where_detect_prompt_follows_each_chunk(question: str) -> None:
    """As the document's supervisor does: after each chunk, and by the stall watchdog where no chunk comes."""
    for _ in range(3):
        adapter = PtyAdapter()
        session = await adapter.start_session(["sh", "-c", f"printf '%s' '{question}'; read x"])
        buffer, found = b"", None
        async for chunk in adapter.read_stream():
            assert len(chunk) <= 1024
            buffer = (buffer + chunk)[-4096:]
            found = await adapter.detect_prompt(buffer)
            if found is not None or buffer.endswith(question.encode()):
                break
        assert found is not None, question
        assert found.excerpt.strip() == question.strip() or found.prompt_type.value == "free_text"
        await adapter.terminate_session(session)
