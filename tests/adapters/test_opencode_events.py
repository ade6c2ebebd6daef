"""OpenCode's events: how the plugin gets into one run, with the person's own settings kept, and what they are worth."""

from __future__ import annotations

import json

import pytest
from tests.support.playbook import POLLING, Nothing, Playbook, Raised

from atlasbridge.adapters.opencode.prepare import ATTACH_SOCKET, PLUGIN, SETTINGS, with_events
from atlasbridge.core.detection.events import StructuredEventReceived
from atlasbridge.core.prompt.model import Subject, SubjectKind, SubjectSource


def test_a_run_gets_the_plugin_and_the_attach_socket_and_nothing_else_changes() -> None:
    environ = with_events({"HOME": "/home/me"}, "/run/door.sock")
    assert json.loads(environ.pop(SETTINGS)) == {"plugin": [PLUGIN.as_uri()]}
    assert environ == {"HOME": "/home/me", ATTACH_SOCKET: "/run/door.sock"}
    assert PLUGIN.is_file()


def test_settings_of_the_persons_own_environment_are_kept_with_ours_added() -> None:
    theirs = {"model": "lab/model", "plugin": ["file:///own.js"]}
    settings = json.loads(with_events({SETTINGS: json.dumps(theirs)}, "/d")[SETTINGS])
    assert settings == {"model": "lab/model", "plugin": ["file:///own.js", PLUGIN.as_uri()]}


@pytest.mark.parametrize("given", ["{not json", "[1]", '{"plugin": "one"}'])
def test_settings_that_cannot_be_understood_are_left_to_opencode(given: str) -> None:
    assert with_events({SETTINGS: given}, "/d") == {SETTINGS: given}


# ---------------------------------------------------------------- the screen decides, whatever the events say

ASKED = (
    "  ┃  △ Permission required\n  ┃  $ touch made-by-bash.txt\n  ┃\n"
    "  ┃   \x1b[44mAllow once\x1b[49m   Allow always   Reject   enter confirm\x1b[?25l"
)
BOX = "  ┃\n  ┃  Build · Lab model\n  ╹" + "▀" * 30 + "\n"


def asked(command: str) -> StructuredEventReceived:
    about = Subject(SubjectKind.COMMAND, command, "/home/me", SubjectSource.EVENT, complete=True)
    return StructuredEventReceived("permission", "bash", "opencode (its events)", about)


EVENT = asked("touch made-by-bash.txt")


def test_an_event_that_comes_before_its_dialog_fills_it() -> None:
    play = Playbook(POLLING, "opencode") >> EVENT >> ASKED >> 0.4
    play << Raised("multiple_choice", "in /home/me\n$ touch made-by-bash.txt")
    assert play.prompt.subject is not None and play.prompt.subject.certain
    assert play.prompt.evidence[0].detail.startswith("opencode (its events)")


def test_a_doubled_event_is_one_dialog() -> None:
    play = Playbook(POLLING, "opencode") >> EVENT >> EVENT >> ASKED >> 0.4 << Raised("multiple_choice", "touch made")
    play >> EVENT >> 1.0 << Nothing()


def test_an_event_that_comes_after_its_dialog_neither_asks_again_nor_withdraws() -> None:
    play = Playbook(POLLING, "opencode") >> ASKED >> 3.0 << Raised("multiple_choice", "$ touch made-by-bash.txt")
    digest = play.prompt.digest
    play >> EVENT >> 3.0 << Nothing()
    assert play.prompt.digest == digest


def test_an_event_about_something_else_is_not_shown() -> None:
    lie = asked("ls -la")
    play = Playbook(POLLING, "opencode") >> lie >> ASKED >> 0.4 << Raised("multiple_choice", "touch made-by-bash.txt")
    assert "ls -la" not in play.prompt.excerpt + play.prompt.screen
    assert [choice.label for choice in play.prompt.choices][:3] == ["Allow once", "Allow always", "Reject"]


def test_an_event_without_a_dialog_asks_nothing() -> None:
    play = Playbook(POLLING, "opencode") >> BOX >> 1.0 << Raised("free_text", "")
    assert play.prompt.idle
    play >> EVENT >> 3.0 << Nothing()


def test_a_change_that_its_event_tells_still_says_which_file() -> None:
    about = Subject(SubjectKind.EDIT, "+one", "/home/me", SubjectSource.EVENT, True, target="/home/me/written.txt")
    rows = "  ┃  △ Permission required\n  ┃  ← Edit written.txt\n  ┃\n  ┃   1 + one\n  ┃\n"
    buttons = "  ┃   \x1b[44mAllow once\x1b[49m   Allow always   Reject   enter confirm\x1b[?25l"
    told = StructuredEventReceived("permission", "edit", "opencode (its events)", about)
    play = Playbook(POLLING, "opencode") >> told >> rows + buttons >> 0.4 << Raised("multiple_choice", "written.txt")
    assert play.prompt.subject is not None and play.prompt.subject.certain


@pytest.mark.parametrize("bar", ["", "█"])
def test_a_dialog_that_ends_with_the_change_begins_with_its_own_words(bar: str) -> None:
    """They stand above the change, and a piece of a scroll bar below it is none of them."""
    diff = "-colour = red\n+colour = blue"
    about = Subject(SubjectKind.EDIT, diff, "/home/me", SubjectSource.EVENT, True, target="/home/me/seed.txt")
    lines = ["1 - colour = red", "1 + colour = blue", ""]
    change = "".join(f"  ┃  {line:<60}{bar}\n" for line in lines)
    rows = f"  ┃  △ Permission required\n  ┃    → Edit seed.txt\n  ┃\n{change}  ┃\n"
    buttons = "  ┃   \x1b[44mAllow once\x1b[49m   Allow always   Reject   enter confirm\x1b[?25l"
    told = StructuredEventReceived("permission", "edit", "opencode (its events)", about)
    play = Playbook(POLLING, "opencode") >> told >> rows + buttons >> 0.4 << Raised("multiple_choice")
    assert play.prompt.excerpt == f"△ Permission required\nin /home/me\n  → Edit seed.txt\n{diff}"
