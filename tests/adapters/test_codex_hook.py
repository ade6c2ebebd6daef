"""Codex's hook: how it comes for one run with the person's own settings kept, what it tells, and what that is worth."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from tests.support.playbook import POLLING, Keys, Nothing, Playbook, Raised, Withdrawn

from atlasbridge.adapters.claude.permission_hook import tell
from atlasbridge.adapters.codex.prepare import TELLING, prepare, trusted_hash, with_hook
from atlasbridge.adapters.tool_start import ToolStart
from atlasbridge.core.detection.events import StructuredEventReceived
from atlasbridge.core.prompt.model import parse_subject

KEY = "/<session-flags>/config.toml:permission_request:0:0"
FOLDER = "/home/me/work"


def settings_of(command: tuple[str, ...]) -> dict[str, object]:
    """What Codex makes of the `-c` arguments: dotted names in front of TOML."""
    given = [command[at + 1] for at, word in enumerate(command) if word == "-c"]
    return tomllib.loads("\n".join(given))


def installed(folder: Path, version: str) -> str:
    package = folder / "node_modules" / "codex"
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"version": version}, indent=1))
    program = package / "codex"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return str(program)


def test_the_digest_is_the_one_that_codex_makes() -> None:
    """As Codex 0.166.0 lists it for this hook."""
    assert trusted_hash("echo hi") == "sha256:21c659123418a18a42fbd7cb92cdc3c4f18fa206107159c94c448e35449c0934"


def test_a_run_gets_one_hook_that_is_vouched_for_by_itself() -> None:
    command = with_hook(("codex", "-m", "gpt-5", "resume"), "/run/door.sock")
    assert command[0] == "codex" and command[-3:] == ("-m", "gpt-5", "resume")
    hooks = settings_of(command)["hooks"]
    assert isinstance(hooks, dict) and set(hooks) == {"PermissionRequest", "state"}
    ((hook,),) = (group["hooks"] for group in hooks["PermissionRequest"])
    assert "/run/door.sock" in hook["command"] and hook["command"].endswith("|| true")
    assert "answers" not in hook["command"], "no dialog is drawn while it waits"
    assert hooks["state"] == {KEY: {"trusted_hash": trusted_hash(hook["command"])}}


@pytest.mark.parametrize(
    "given",
    [
        ("-c", "hooks.Stop=[]"),
        ("-chooks.state={}",),
        ("--config", "hooks={}"),
        ("--config=hooks.PermissionRequest=[]",),
        ("-c", '"hooks".Stop=[]'),
        ("--remote", "ws://127.0.0.1:1"),
        ("--remote=unix://",),
    ],
)
def test_hooks_that_a_person_names_or_a_server_elsewhere_are_left_alone(given: tuple[str, ...]) -> None:
    assert with_hook(("codex", *given), "/d") == ("codex", *given)


def test_words_that_only_look_like_settings_are_no_reason_to_stay_away() -> None:
    assert len(with_hook(("codex", "-c", 'model="hooks"', "--", "-c", "hooks.x=1"), "/d")) == 10


def test_an_attach_socket_that_cannot_be_written_down_leaves_codex_alone() -> None:
    assert with_hook(("codex",), "/d\x7f.sock") == ("codex",)


@pytest.mark.parametrize(("version", "told"), [(TELLING[0], True), ("0.167.0", False), ("0.80.0", False)])
def test_a_version_whose_digest_is_not_known_is_left_as_it_is(tmp_path: Path, version: str, told: bool) -> None:
    start = ToolStart((installed(tmp_path, version),), {}, "/run/d.sock")
    assert (prepare(start) != start) is told


# ---------------------------------------------------------------- what it tells


def patch(*lines: str) -> dict[str, object]:
    text = "\n".join(("*** Begin Patch", *lines, "*** End Patch"))
    return {"tool_name": "apply_patch", "tool_input": {"command": text}, "cwd": FOLDER}


def test_a_patch_names_every_file_that_it_touches() -> None:
    said = tell(
        patch(
            "*** Add File: docs/one.txt",
            "+*** Delete File: not/really.txt",
            "*** Update File: ../seed.txt",
            "*** Move to: moved.txt",
            "@@",
            "-a",
            "+b",
            "*** Delete File: /etc/hosts",
        ),
        "codex",
    )
    subject = parse_subject(said["subject"])
    assert subject is not None and subject.kind == "edit" and subject.complete
    assert subject.targets == ("/etc/hosts", "/home/me/seed.txt", f"{FOLDER}/docs/one.txt", f"{FOLDER}/moved.txt")
    assert said["source"] == "codex (PermissionRequest hook)"


def test_one_path_that_pretends_to_be_several_is_not_taken_for_whole() -> None:
    given = {"tool_name": "Write", "tool_input": {"file_path": "/ok/a\n/ok/b", "content": "x"}, "cwd": FOLDER}
    assert tell(given)["subject"]["complete"] is False


# ---------------------------------------------------------------- and what that is worth: the screen is the check

CHOICES = (
    "\n\n› 1. Yes, proceed (y)\n  2. Yes, and don't ask again (p)\n"
    "  3. No, and tell Codex what to do differently (esc)\n\n  Press enter to confirm or esc to cancel\x1b[?25l"
)
BOX = "\n› Ask Codex to do anything\n\n  gpt-5 default · /home/me/work\n  ? for shortcuts\x1b[?25l"
CLEAR = "\x1b[2J\x1b[H"


def command_dialog(command: str) -> str:
    return f"  Would you like to run the following command?\n\n  Environment: local\n\n  $ {command}\n{CHOICES}"


def edit_dialog(*paths: str) -> str:
    rows = "\n".join(f"  Destination: {path}" for path in paths)
    head = "  Would you like to make the following edits?\n\n  Description: Apply proposed file edits\n"
    return f"{head}{rows}\n\n{CHOICES}"


def hook(payload: dict[str, object]) -> StructuredEventReceived:
    said = tell(payload, "codex")
    return StructuredEventReceived(said["kind"], said["text"], said["source"], parse_subject(said["subject"]))


def runs(command: str) -> StructuredEventReceived:
    return hook({"tool_name": "Bash", "tool_input": {"command": command}, "cwd": FOLDER})


def codex() -> Playbook:
    return Playbook(POLLING, "codex", rows=30, cols=100)


def test_the_command_is_whole_and_so_is_a_tab_that_codex_does_not_draw() -> None:
    play = codex() >> runs("rm -rf build\t/home") >> command_dialog("rm -rf build/home") >> 1.0
    play << Raised("multiple_choice")
    assert play.prompt.subject is not None
    assert play.prompt.subject.certain and play.prompt.subject.text == "rm -rf build\t/home"


def test_without_its_hook_the_same_command_is_only_what_was_drawn() -> None:
    play = codex() >> command_dialog("rm -rf build/home") >> 1.0 << Raised("multiple_choice")
    assert play.prompt.subject is not None and not play.prompt.subject.certain


def test_an_edit_is_whole_where_exactly_its_files_are_named() -> None:
    said = hook(patch("*** Add File: one.txt", "+1", "*** Update File: two.txt", "@@", "-a", "+b"))
    play = codex() >> said >> edit_dialog(f"{FOLDER}/one.txt", f"{FOLDER}/two.txt") >> 1.0
    play << Raised("multiple_choice")
    assert play.prompt.subject is not None and play.prompt.subject.certain
    assert play.prompt.subject.targets == (f"{FOLDER}/one.txt", f"{FOLDER}/two.txt")
    assert "+1" in play.prompt.subject.text
    assert "one.txt" in play.prompt.excerpt and "two.txt" in play.prompt.excerpt


@pytest.mark.parametrize("paths", [("/etc/one.txt",), (f"{FOLDER}/one.txt", "/etc/hosts"), (f"{FOLDER}/one.txt.bak",)])
def test_an_edit_of_other_files_than_those_named_is_not_believed(paths: tuple[str, ...]) -> None:
    play = codex() >> hook(patch("*** Add File: one.txt", "+1")) >> edit_dialog(*paths) >> 1.0
    play << Raised("multiple_choice")
    assert play.prompt.subject is not None and not play.prompt.subject.complete
    assert play.prompt.subject.targets == paths, "every file that is named can be refused by a rule"


def test_a_long_path_goes_on_in_the_next_row() -> None:
    name = f"{FOLDER}/{'very/' * 16}one.txt"
    said = hook(patch(f"*** Add File: {name}", "+1"))
    rows = edit_dialog(f"{name[:80]}\n  {name[80:]}")
    play = codex() >> said >> rows >> 1.0 << Raised("multiple_choice")
    assert play.prompt.subject is not None and play.prompt.subject.certain


def test_a_dialog_that_its_hook_has_announced_is_waited_for_and_the_box_meanwhile_is_no_next_order() -> None:
    """Codex draws the dialog a second after its hook has ended, and its input box until then."""
    play = codex() >> BOX >> 1.0 << Raised("free_text")
    play >> Keys("please\r") >> f"{CLEAR}• I will use exec_command.{BOX}" >> runs("touch x") >> 1.0
    play << Withdrawn("answered_at_terminal")
    play >> 0.5 << Nothing()
    play >> f"{CLEAR}{command_dialog('touch x')}" >> 1.0 << Raised("multiple_choice", "touch x")
    assert play.prompt.subject is not None and play.prompt.subject.certain


def test_what_was_announced_and_never_asked_does_not_hide_the_next_order_for_long() -> None:
    play = codex() >> runs("touch x") >> BOX >> 1.0 << Nothing()
    play >> 1.0 << Raised("free_text")


def test_a_hook_that_came_too_late_says_nothing_about_the_next_dialog() -> None:
    play = codex() >> command_dialog("make") >> 1.0 << Raised("multiple_choice", "make")
    play >> runs("make") >> Keys("y") >> f"{CLEAR}• Working (1s • esc to interrupt)" >> 1.0
    play << Withdrawn("answered_at_terminal")
    play >> f"{CLEAR}{command_dialog('make')}" >> 1.0 << Raised("multiple_choice", "make")
    assert play.prompt.subject is not None and not play.prompt.subject.complete
