"""Claude Code's hook: what it says, that it never disturbs, and how it gets into the command line."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from atlasbridge.adapters.claude.hook import HOOK, hook_command, quoted_on_windows, with_hook
from atlasbridge.adapters.claude.permission_hook import TEXT_LIMIT, decision, tell
from atlasbridge.core.hub_connection import Pass, new_key, write_pass
from atlasbridge.core.peer import Peer, own_uid
from atlasbridge.core.prompt.model import SubjectSource, parse_subject
from atlasbridge.os.windows.attach_port import AttachPort

BASH = {"tool_name": "Bash", "tool_input": {"command": "make all\nmake install"}, "cwd": "/home/me/project"}


def settings_of(command: tuple[str, ...]) -> dict[str, Any]:
    given = command[command.index("--settings") + 1]
    return json.loads(given if given.startswith("{") else Path(given).read_text())


def run_hook(given: str, attach_socket: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-S", str(HOOK), attach_socket], input=given, capture_output=True, text=True
    )


def test_a_plain_command_gets_the_hook_before_its_own_arguments() -> None:
    command = with_hook(("claude", "--model", "opus"), "/run/door.sock")
    assert command[0] == "claude" and command[-2:] == ("--model", "opus")
    hooks = settings_of(command)["hooks"]["PermissionRequest"]
    assert "/run/door.sock" in hooks[0]["hooks"][0]["command"]


def test_settings_that_a_person_passes_are_kept_with_ours_added(tmp_path: Path) -> None:
    theirs = {"model": "opus", "hooks": {"PermissionRequest": [{"hooks": []}], "Stop": [{"hooks": []}]}}
    file = tmp_path / "own.json"
    file.write_text(json.dumps(theirs))
    for given in (("--settings", json.dumps(theirs)), ("--settings", str(file))):
        merged = settings_of(with_hook(("claude", *given), str(tmp_path / "d.sock")))
        assert merged["model"] == "opus" and merged["hooks"]["Stop"] == [{"hooks": []}]
        assert merged["hooks"]["PermissionRequest"][0] == {"hooks": []}
        assert len(merged["hooks"]["PermissionRequest"]) == 2
    assert json.loads(file.read_text()) == theirs
    joined = with_hook(("claude", f"--settings={json.dumps(theirs)}"), "/d")
    assert json.loads(joined[1].partition("=")[2])["model"] == "opus"


@pytest.mark.parametrize("given", ["no-such-file.json", "{not json", "[1]", '{"hooks": []}'])
def test_settings_that_cannot_be_understood_are_left_to_claude_code(given: str) -> None:
    command = ("claude", "--settings", given, "hello")
    assert with_hook(command, "/d") == command


def test_the_hook_tells_the_whole_command_and_the_folder() -> None:
    said = tell(BASH)
    assert said["kind"] == "permission"
    subject = {"kind": "command", "text": "make all\nmake install", "target": "", "folder": "/home/me/project"}
    assert said["subject"] == {**subject, "source": "hook", "complete": True}
    long = tell({**BASH, "tool_input": {"command": "x" * 100_000}})["subject"]
    assert (len(long["text"]), long["complete"]) == (TEXT_LIMIT, False)


@pytest.mark.parametrize(
    ("tool", "given", "kind", "text", "target"),
    [
        ("Write", {"file_path": "/p/a b.txt", "content": "one\n\n two"}, "edit", "+one\n+\n+ two", "/p/a b.txt"),
        ("Edit", {"file_path": "/p/x", "old_string": "a", "new_string": "b"}, "edit", "-a\n+b", "/p/x"),
        ("WebFetch", {"url": "http://x/?a=1|2", "prompt": "read"}, "fetch", "http://x/?a=1|2", "http://x/?a=1|2"),
        ("ExitPlanMode", {"plan": "# Plan\n\n1. rm"}, "plan", "# Plan\n\n1. rm", ""),
        ("mcp__db__drop", {"table": "users"}, "tool", '{"table": "users"}', "mcp__db__drop"),
    ],
)
def test_every_tool_is_told_with_its_subject(
    tool: str, given: dict[str, Any], kind: str, text: str, target: str
) -> None:
    said = parse_subject(tell({"tool_name": tool, "tool_input": given})["subject"])
    assert said is not None and said.complete
    assert (said.kind, said.text, said.target, said.source) == (kind, text, target, SubjectSource.HOOK)


def test_a_question_is_told_with_its_options() -> None:
    options = [{"label": "A", "description": "first"}, {"label": "B"}]
    said = tell(
        {"tool_name": "AskUserQuestion", "tool_input": {"questions": [{"question": "Which?", "options": options}]}}
    )
    assert (said["kind"], said["subject"]["text"]) == ("question", "Which?\n- A: first\n- B: ")


def test_the_hook_speaks_to_the_session_and_says_nothing_to_claude_code() -> None:
    attach_socket = Path(tempfile.mkdtemp(prefix="ab")) / "d.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(attach_socket))
        listener.listen(1)
        done = run_hook(json.dumps(BASH), str(attach_socket))
        connection, _ = listener.accept()
        with connection:
            heard = json.loads(connection.makefile("rb").readline())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert heard["m"] == "structured" and heard["subject"]["text"].startswith("make all")
    attach_socket.unlink()


@pytest.mark.parametrize("given", ["", "no json", "[]", '{"tool_name": "Bash"}', json.dumps(BASH)])
def test_the_hook_ends_well_when_the_session_is_gone_or_the_payload_is_strange(given: str) -> None:
    done = run_hook(given, "/nowhere/at/all.sock")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_command_ends_well_even_when_python_is_gone() -> None:
    broken = hook_command("/d").replace(sys.executable, "/no/such/python")
    done = subprocess.run(broken, shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("said", "behaviour"),
    [
        ([{"m": "started"}, {"m": "decide", "behavior": "allow"}], "allow"),
        ([{"m": "decide", "behavior": "deny"}], "deny"),
        ([{"m": "over"}], ""),
        ([], ""),
    ],
)
def test_a_hook_that_answers_says_what_the_host_decided_and_nothing_else(
    said: list[dict[str, str]], behaviour: str
) -> None:
    attach_socket = Path(tempfile.mkdtemp(prefix="ab")) / "d.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(attach_socket))
        listener.listen(1)
        words = [sys.executable, "-I", "-S", str(HOOK), str(attach_socket), "answers"]
        hook = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert hook.stdin is not None
        hook.stdin.write(json.dumps(BASH))
        hook.stdin.close()
        connection, _ = listener.accept()
        with connection:
            assert json.loads(connection.makefile("rb").readline())["answers"] is True
            connection.sendall(b"".join(json.dumps(line).encode() + b"\n" for line in said))
    assert hook.stdout is not None
    printed = hook.stdout.read()
    hook.stdout.close()
    assert hook.wait() == 0
    given = json.loads(printed)["hookSpecificOutput"]["decision"] if printed else {}
    assert given.get("behavior", "") == behaviour
    assert given.get("interrupt") is (True if behaviour == "deny" else None)  # as the dialog's own No does
    attach_socket.unlink()


def test_only_versions_where_it_was_tried_get_a_hook_that_answers() -> None:
    assert (
        " answers"
        in settings_of(with_hook(("claude",), "/d", answers=True))["hooks"]["PermissionRequest"][0]["hooks"][0][
            "command"
        ]
    )
    assert "answers" not in hook_command("/d")


def test_a_refusal_with_a_reason_is_heard_by_the_model_and_one_without_ends_the_turn() -> None:
    def decided(said: dict[str, str]) -> Any:
        return decision(said)["hookSpecificOutput"]["decision"]

    assert decided({"behavior": "allow", "reason": "x"}) == {"behavior": "allow"}
    assert decided({"behavior": "deny"})["interrupt"] is True
    assert decided({"behavior": "deny", "reason": "make no files"}) == {
        "behavior": "deny",
        "message": "make no files",
        "interrupt": False,
    }
    assert decided({"behavior": "nonsense"})["behavior"] == "deny"


def test_where_there_is_no_socket_the_hook_comes_to_the_sessions_port_with_its_key(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    attach_socket = AttachPort(
        {"m": "started"}, lambda *_: Peer(0, own_uid()), lambda _, said: heard.append(said), lambda _: None
    )
    attach_socket.open(tmp_path / "0123.sock")
    done = run_hook(json.dumps(BASH), str(tmp_path / "0123.sock"))
    attach_socket.close()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [said["subject"]["text"] for said in heard] == ["make all\nmake install"]


def test_a_stranger_on_the_sessions_port_is_told_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        write_pass(tmp_path / "0123.tcp", Pass(stranger.getsockname()[1], new_key()))
        hook = subprocess.Popen(
            [sys.executable, "-I", "-S", str(HOOK), str(tmp_path / "0123.sock")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert hook.stdin is not None and hook.stdout is not None
        hook.stdin.write(json.dumps(BASH).encode())
        hook.stdin.close()
        link, _ = stranger.accept()
        with link, link.makefile("rb") as said:
            assert len(said.read(32)) == 32
            link.sendall(b"x" * 64)
            assert said.read() == b""
        with hook.stdout as out:
            assert out.read() == b""
    assert hook.wait() == 0


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("C:\\Python\\python.exe", "C:/Python/python.exe"),
        ("-I", "-I"),
        ("C:\\Program Files\\Python\\python.exe", '"C:/Program Files/Python/python.exe"'),
        ("C:\\Users\\A & $B\\x.sock", '"C:/Users/A & \\$B/x.sock"'),
    ],
)
def test_a_word_for_the_shell_that_runs_hooks_on_windows(word: str, quoted: str) -> None:
    assert quoted_on_windows(word) == quoted
    read = subprocess.run(["bash", "-c", f"printf %s {quoted}"], capture_output=True, text=True).stdout
    assert read == word.replace("\\", "/"), "as the bash of Git reads it"


def test_on_windows_the_settings_stand_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool may be a batch file there, and its arguments are read twice."""
    monkeypatch.setattr("atlasbridge.adapters.claude.hook.ON_WINDOWS", True)
    for given in ((), ("--settings", '{"model": "opus"}')):
        command = with_hook(("claude", *given), str(tmp_path / "0123.sock"))
        at = command.index("--settings")
        assert command[at + 1] == str(tmp_path / "0123.settings")
        settings = json.loads(Path(command[at + 1]).read_text())
        assert ("model" in settings) == bool(given)
        line = settings["hooks"]["PermissionRequest"][0]["hooks"][0]["command"]
        assert "0123.sock" in line and "/dev/null" not in line
