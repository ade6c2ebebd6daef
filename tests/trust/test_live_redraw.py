"""A real program on a real PTY that changes what it asks between the showing and the answer: nothing is typed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.arena import Arena, arena
from tests.support.waiting import wait_for

TOOL = r"""
import os, select, sys, time
change, changed, got, raw = {change!r}, {changed!r}, {got!r}, {raw!r}
if raw:
    import tty
    tty.setcbreak(0)
sys.stdout.write({asked!r}); sys.stdout.flush()
while not select.select([0], [], [], 0.02)[0]:
    if os.path.exists(change) and not os.path.exists(changed):
        sys.stdout.write({then!r}); sys.stdout.flush()
        open(changed, "w").close()
open(got, "ab").write(os.read(0, 1000))
time.sleep(60)
"""
ASKED = "\x1b[2J\x1b[Hrm -rf /data/1 | tee log\r\n\r\nReally delete it? [y/N] "
MENU = "\x1b[2J\x1b[Hrm -rf /data/1\r\nWhat now?\r\n❯ 1. Stop\r\n  2. Go on\r\n\x1b[?25l"
CHANGES = {
    "one character of the command": (ASKED, "\x1b7\x1b[1;14H2\x1b8"),
    "the pipe is gone": (ASKED, "\x1b7\x1b[1;16H;\x1b8"),
    "one blank more": (ASKED, "\x1b7\x1b[1;8H \x1b[1;9H/\x1b8"),
    "one character of the question": (ASKED, "\x1b7\x1b[3;15Ha\x1b8"),
    "another question over it": (ASKED, "\x1b[H\x1b[2Krm -rf /home\r\n\x1b[2K\r\nReally delete it? [y/N] "),
    "the head has scrolled away": (ASKED, "\r\n" * 60 + "Really delete it? [y/N] "),
    "asked once more below": (ASKED, "n\r\nrm -rf /home\r\n\r\nReally delete it? [y/N] "),
    "a menu's words change places": (MENU, "\x1b[3;6HGo on\x1b[4;6HStop \x1b[5;1H"),
    "a menu is about something else": (MENU, "\x1b[1;14H2\x1b[5;1H"),
    "a row above a menu's question": (MENU, "\x1b[2;1HWhat not?\x1b[5;1H"),
}


@pytest.fixture(scope="module")
def place() -> Iterator[Arena]:
    with arena() as made:
        made.start_hub()
        yield made


@pytest.mark.parametrize("name", CHANGES)
def test_an_answer_to_what_has_changed_is_not_typed_and_its_sender_is_told(
    place: Arena, tmp_path: Path, name: str
) -> None:
    asked, then = CHANGES[name]
    files = {what: str(tmp_path / what) for what in ("change", "changed", "got")}
    script = tmp_path / "tool.py"
    script.write_text(TOOL.format(asked=asked, then=then, raw=asked is MENU, **files))
    fighter = place.start_session((sys.executable, str(script)), name.replace(" ", "-").replace("'", ""))
    prompt = wait_for(fighter.open_prompt, "the question")
    assert "rm -rf /data/1" in prompt["question"]
    (tmp_path / "change").touch()
    wait_for((tmp_path / "changed").exists, "the change")
    answer = place.reply(prompt["prompt_id"], "2" if asked is MENU else "y")
    assert answer is not None and not answer["ok"], answer
    assert answer["reason"] in ("stale", "not_open", "withdrawn") and answer["message"], answer
    assert not (tmp_path / "got").exists() or (tmp_path / "got").read_bytes() == b""
    place.ask("kill", session_id=fighter.session_id, force=True)
