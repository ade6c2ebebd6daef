"""Qwen Code's hook: how it gets there without touching anybody's settings, and what it tells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atlasbridge.adapters.claude.permission_hook import tell
from atlasbridge.adapters.qwen.prepare import VARIABLE, prepare
from atlasbridge.adapters.tool_start import ToolStart


def started(folder: Path, **environ: str) -> ToolStart:
    return prepare(ToolStart(("qwen",), environ, str(folder / "d.sock")))


def test_the_hook_comes_by_a_private_file_of_defaults(tmp_path: Path) -> None:
    file = Path(started(tmp_path).environ[VARIABLE])
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent == tmp_path
    (hook,) = json.loads(file.read_text())["hooks"]["PermissionRequest"][0]["hooks"]
    assert str(tmp_path / "d.sock") in hook["command"] and "|| true" in hook["command"]


def test_an_administrators_defaults_are_kept_with_ours_added(tmp_path: Path) -> None:
    theirs = {"model": {"name": "x"}, "hooks": {"PermissionRequest": [{"hooks": []}], "Stop": []}}
    file = tmp_path / "defaults.json"
    file.write_text(json.dumps(theirs))
    merged = json.loads(Path(started(tmp_path, **{VARIABLE: str(file)}).environ[VARIABLE]).read_text())
    assert merged["model"] == {"name": "x"} and merged["hooks"]["Stop"] == []
    assert merged["hooks"]["PermissionRequest"][0] == {"hooks": []} and len(merged["hooks"]["PermissionRequest"]) == 2
    assert json.loads(file.read_text()) == theirs


@pytest.mark.parametrize("given", ["{not json", "[1]", '{"hooks": []}'])
def test_defaults_that_cannot_be_understood_are_left_alone(tmp_path: Path, given: str) -> None:
    file = tmp_path / "defaults.json"
    file.write_text(given)
    start = ToolStart(("qwen",), {VARIABLE: str(file)}, str(tmp_path / "d.sock"))
    assert prepare(start) == start


@pytest.mark.parametrize(
    ("tool", "given", "kind", "text"),
    [
        ("run_shell_command", {"command": "make\nmake install"}, "command", "make\nmake install"),
        ("write_file", {"file_path": "/p/a.txt", "content": "one"}, "edit", "+one"),
        ("edit", {"file_path": "/p/x", "old_string": "a", "new_string": "b"}, "edit", "-a\n+b"),
        ("ask_user_question", {"questions": [{"question": "Which?", "options": []}]}, "question", "Which?"),
    ],
)
def test_it_tells_all_of_what_is_asked(tool: str, given: dict[str, object], kind: str, text: str) -> None:
    said = tell({"tool_name": tool, "tool_input": given, "cwd": "/p"}, "qwen")
    assert (said["subject"]["kind"], said["subject"]["text"], said["subject"]["complete"]) == (kind, text, True)
    assert said["source"] == "qwen (PermissionRequest hook)"
