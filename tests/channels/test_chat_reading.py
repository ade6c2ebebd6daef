"""What a tool said, whole, on demand; its files; instructions for later: the same play in Telegram and Slack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.channels import prompts
from tests.support.chat_stage import Stage, buttons_of, stage, text_of
from tests.support.fake_telegram import FakeTelegram

from atlasbridge.channels.transcript import last_answer, since_instruction, split_rows
from atlasbridge.core.operations import ChangedFile, Changes
from atlasbridge.core.prompt.model import PromptState
from atlasbridge.core.values import replace

CHATS = pytest.mark.parametrize("chat", ["telegram", "slack"])
CLAUDE = """> write the parser

⏺ Read(src/parse.py)
  ⎿  Read 40 lines

⏺ Old words of an earlier answer.

> now test it, please

⏺ Bash(pytest -q)
  ⎿  12 passed

⏺ All 12 tests pass.

  - the empty file is covered
  - so is the long one

  Shall I commit?

────────────────────────────
❯ Try "fix lint errors"
────────────────────────────
  ? for shortcuts"""
CODEX = """› list the files

• Ran ls
  └ a.py

• There is one file.

  It is a.py.

› Explain this codebase

  gpt-5 · 100% context left"""


def styled(text: str, seen: int = 6) -> dict[str, Any]:
    rows = [[[row, None, None, 0]] if row else [] for row in text.split("\n")]
    return {"past": rows[:-seen], "styled": rows[-seen:], "rows": seen, "cols": 80}


def files(on: Stage) -> list[bytes]:
    if isinstance(on.server, FakeTelegram):
        return [one["_content"] for one in on.server.sent(1001) if "_content" in one]
    return [bytes(one) for one in on.server.files.values()]


def test_the_last_answer_is_the_last_words_and_not_the_work_or_the_box() -> None:
    answer = last_answer(CLAUDE.split("\n"))
    assert answer[0] == "⏺ All 12 tests pass." and answer[-1] == "  Shall I commit?"
    assert last_answer(CODEX.split("\n")) == ["• There is one file.", "", "  It is a.py."]


def test_the_transcript_begins_at_the_last_instruction() -> None:
    rows = since_instruction(CLAUDE.split("\n"))
    assert rows[0] == "> now test it, please" and rows[-1] == "  Shall I commit?"
    plain = "setup\nsay: build everything\nbuilding\ndone\n$ "
    assert since_instruction(plain.split("\n"), ["build everything"])[0] == "say: build everything"
    assert since_instruction(["a", "b", ""]) == ["a", "b"]
    assert since_instruction([]) == [] and last_answer([]) == []


def test_pieces_hold_every_character_within_the_limit() -> None:
    rows = ["short", "x" * 250, "", "end"]
    pieces = split_rows(rows, 100, len)
    assert all(len(piece) <= 100 for piece in pieces)
    assert "".join(pieces).replace("\n", "") == "".join(rows)


@CHATS
async def test_the_last_answer_comes_whole_by_command_and_by_button(chat: str) -> None:
    async with stage(chat) as on:
        record = await on.ask(prompts.IDLE)
        on.hub_api.screens[record.session_id] = styled(CLAUDE)
        on.command("last")
        shown = text_of(await on.reads("All 12 tests pass."))
        assert "Shall I commit?" in shown and "pytest -q" not in shown and "shortcuts" not in shown
        on.command("transcript")
        assert "now test it" in text_of(await on.reads("pytest -q"))
        before = len(on.person.sees())
        assert "📄 The whole answer" in buttons_of(on.message_of(record))
        on.press(on.message_of(record), "The whole answer")
        await on.until(lambda: len(on.person.sees()) > before, "the answer by button")
        assert "Shall I commit?" in text_of(on.person.sees()[-1])


@CHATS
async def test_a_long_answer_is_split_and_a_very_long_one_is_a_file_with_all_of_it(chat: str) -> None:
    async with stage(chat) as on:
        session = on.hub_api.add_session()
        lines = [f"row {number} " + "y" * 60 for number in range(100)]
        on.hub_api.screens[session.session_id] = styled("\n".join(["⏺ Begin", *lines, "", "> "]))
        on.command("last")
        await on.reads("row 99 ")
        told = on.all_text()
        assert all(line in told for line in lines) and "(1 of " in told and not files(on)
        lines = [f"row {number} " + "z" * 60 for number in range(900)]
        on.hub_api.screens[session.session_id] = styled("\n".join(["⏺ Begin", *lines, "", "> "]))
        on.command("last")
        await on.until(lambda: files(on), "a file")
        assert all(line.encode() in files(on)[0] for line in lines)


CHANGED = Changes(
    (
        ChangedFile("src/login.py", "changed", 12, 3, "-old\n+new"),
        ChangedFile("logo.png", "added", binary=True),
    ),
    2,
    12,
    3,
    True,
    True,
    "77967ac33d15",
)


@CHATS
async def test_what_a_session_has_changed_is_told_on_request_and_when_it_has_finished(chat: str) -> None:
    async with stage(chat) as on:
        on.hub_api.changed = CHANGED
        record = await on.ask(prompts.IDLE)
        assert "2 files changed, +12 −3 lines" in text_of(on.message_of(record))
        on.command("changes")
        await on.reads("M src/login.py  +12 −3")
        assert "A logo.png  not text" in on.all_text() and "+new" in on.all_text()


@CHATS
async def test_instructions_are_queued_listed_and_taken_back(chat: str) -> None:
    async with stage(chat) as on:
        session = on.hub_api.add_session(label="web")
        on.hub_api.add_session(label="api")
        on.command("queue then run the tests")
        await on.reads("Which session?")
        on.command("queue web then run the tests")
        await on.reads("web: Queued as number 1")
        ((_, reply),) = on.hub_api.queue
        assert (reply.session_id, reply.value) == (session.session_id, "then run the tests")
        on.command("queue")
        await on.reads("1. web: “then run the tests” · Ada")
        on.command("queue off web")
        await on.reads("Removed.")
        assert on.hub_api.queue == [] and on.hub_api.replies == []


@CHATS
async def test_while_a_tool_works_a_plain_text_is_told_about_the_queue(chat: str) -> None:
    async with stage(chat) as on:
        on.hub_api.add_session(label="web")
        on.write("and now the docs")
        await on.reads("queue TEXT")


@CHATS
async def test_files_come_from_inside_the_session_folder_only(chat: str, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "plan.md").write_text("the plan")
    (tmp_path / "outside.txt").write_text("not yours")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "up").symlink_to(tmp_path)
    (folder / ".env").write_text("A=1")
    (folder / "notes.txt").write_text("token ghp_abcdefghijklmnopqrstuvwxyz0123456789")
    async with stage(chat) as on:
        session = on.hub_api.add_session(cwd=str(folder))
        for path, why in (
            ("../outside.txt", "inside the session's folder"),
            (str(tmp_path / "outside.txt"), "inside the session's folder"),
            ("link.txt", "link"),
            ("up/outside.txt", "link"),
            ("docs", "not a regular file"),
            (".env", "secrets"),
            ("notes.txt", "looks like a secret"),
            ("none.txt", "no such file"),
        ):
            before = len(on.person.sees())
            on.command(f"get {path}")
            await on.until(lambda before=before: len(on.person.sees()) > before, path)
            assert why in text_of(on.person.sees()[-1]), path
        assert not files(on)
        on.command("get docs/plan.md")
        await on.until(lambda: files(on), "the file")
        assert files(on) == [b"the plan"]
        assert [fields["session_id"] for event, fields in on.hub_api.notes if event == "FILE_SENT"] == [
            session.session_id
        ]


@CHATS
async def test_the_commands_for_sessions_work(chat: str) -> None:
    async with stage(chat) as on:
        session = on.hub_api.add_session(label="web")
        on.hub_api.screens[session.session_id] = {"text": "$ make\nall good"}
        on.hub_api.launchable = ["api"]
        for command, told in (
            ("screen", "all good"),
            ("esc web", "Esc was pressed in web."),
            ("new nothing", "one of: api"),
            ("new api", "Started api"),
            ("stop", "Which session?"),
            ("stop web", "AtlasBridge asked web to end."),
        ):
            on.command(command)
            await on.reads(told)
        assert on.hub_api.killed == [session.session_id]
        assert on.hub_api.typed[0][:2] == (session.session_id, b"\x1b")


@CHATS
async def test_an_instruction_that_went_through_here_marks_where_the_transcript_begins(chat: str) -> None:
    async with stage(chat) as on:
        session = on.hub_api.add_session()
        record = on.hub_api.add_prompt(session, prompts.IDLE)
        on.hub_api.records[record.prompt_id] = replace(
            record, state=PromptState.RESOLVED, decided_value="compile the firmware"
        )
        on.hub_api.screens[session.session_id] = styled("older\nyou: compile the firmware\ncc main.c\ndone\n")
        on.command("transcript")
        assert "older" not in text_of(await on.reads("cc main.c"))


def test_an_answer_ends_before_what_the_tool_says_of_itself_and_before_the_work_below_it() -> None:
    own = ["✻ Cogitated for 3s · done 4:39 AM", "", "", "                        ◐ medium · /effort"]
    told = ["● I changed the timeout.", "  It is five seconds now.", "", "  - and four retries"]
    assert last_answer(["> do it", "", *told, "", *own]) == told
    work = ["", "  No result recorded for 1 call", "  ⎿  $ curl https://get.example.com", "     Interrupted"]
    assert last_answer(["> do it", "", *told[:1], *work, "", *own]) == told[:1]
    plain = ["● row 0", "row 1", "", "row 2 at the left, as some tools write"]
    assert last_answer(["> do it", "", *plain]) == plain
