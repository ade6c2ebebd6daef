"""What a person sees of a permission elsewhere: what is to be done first, where, the question last, and no secret."""

from __future__ import annotations

import pytest
from tests.support.playbook import POLLING, Playbook, Raised

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.detection.prompt_builder import prompt_of
from atlasbridge.core.prompt.model import Prompt, Subject, SubjectKind, SubjectSource
from atlasbridge.core.prompt.redact import redact_rows
from atlasbridge.core.recognition.finding import Facts
from atlasbridge.core.recognition.recognise import recognise
from atlasbridge.core.screen.screen import Screen
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

KEY = "sk-lab-0123456789abcdef0123456789abcdef"


def codex(command: str, folder: str = "/home/me/project", told: Subject | None = None) -> Prompt:
    screen = Screen(40, 120)
    dialog = (
        f"  Would you like to run the following command?\n\n  Environment: local\n\n  $ {command}\n\n"
        f"› 1. Yes, proceed (y)\n  2. Yes, and don't ask again for commands that start with `{command[:90]}` (p)\n"
        "  3. No, and tell Codex what to do differently (esc)\n\n  Press enter to confirm or esc to cancel\n"
    )
    screen.feed(dialog.replace("\n", "\r\n").encode())
    view = View.of(screen)
    found = recognise(view, Facts(canonical=False, echo=False), load_dialect("codex"))
    assert found is not None and found.own
    return prompt_of(found, view, [], b"", (), told, folder)


def test_the_folder_stands_below_the_first_line_where_the_dialog_does_not_name_it() -> None:
    lines = codex("make all").excerpt.split("\n")
    assert lines[:2] == ["Would you like to run the following command?", "in /home/me/project"]
    assert lines[-1] == "$ make all"
    assert codex("ls /home/me/project").excerpt.count("/home/me/project") == 1


def test_a_long_dialog_keeps_its_beginning_and_its_end() -> None:
    command = "\r\n  ".join(f"echo step {number} of the way" for number in range(12))
    excerpt = codex(command).excerpt
    assert len(excerpt) <= 200
    assert excerpt.startswith("Would you like to run the following command?\nin /home/me/project\n")
    assert "$ echo step 0 of the way" in excerpt and excerpt.endswith("echo step 11 of the way")


@pytest.mark.parametrize("lead", [0, 20, 40, 60])
def test_a_secret_is_taken_out_before_the_excerpt_is_cut(lead: int) -> None:
    prompt = codex(f"curl -H 'Authorization: Bearer {KEY}' {'x' * lead} http://localhost/{'long/' * 12}")
    for number in range(len(KEY) - 12):
        assert KEY[number : number + 12] not in prompt.excerpt
    assert KEY not in prompt.screen


def test_a_choice_says_no_secret_and_is_still_taken() -> None:
    prompt = codex(f"deploy --token {KEY} now")
    always = next(choice for choice in prompt.choices if choice.always)
    assert KEY not in always.label and "[redacted]" in always.label
    assert replace(always, label="").steps == always.steps != ()


def test_a_secret_that_the_tool_has_wrapped_is_taken_out_of_both_rows() -> None:
    head = "  2. Yes, and don't ask again for commands that start with `curl -H 'Authorization: Bearer sk-lab-"
    text = f"{head}\n     0123456789abcdef0123456789abcdef' http://localhost` (p)\n  3. No\n│ short │\n│ rows │"
    shown = redact_rows(text)
    assert "0123456789abcdef" not in shown
    assert shown.endswith(" http://localhost` (p)\n  3. No\n│ short │\n│ rows │")
    framed = "\n".join(
        f"│ {row:<40} │" for row in ("$ deploy --with ghp_0123456789abcdef012345", "6789abcdef0123456789 now")
    )
    assert "6789abcdef" not in redact_rows(framed) and " now " in redact_rows(framed)
    assert redact_rows("a value of mine\nis my-own-secret", ("my-own-secret",)) == "a value of mine\nis [redacted]"
    assert redact_rows("") == ""


def test_the_folder_that_a_hook_says_comes_instead_of_the_sessions() -> None:
    told = Subject(SubjectKind.COMMAND, "make all", "/elsewhere", SubjectSource.HOOK, complete=True)
    excerpt = codex("make all", told=told).excerpt
    assert "\nin /elsewhere\n" in excerpt and "/home/me" not in excerpt


def test_two_lines_in_the_input_box_below_a_quoted_question_are_no_dialog() -> None:
    screen = Screen(24, 100)
    box = "─" * 100
    said = (
        "● The installer prints:\n  Do you want to continue? [Y/n]\n  1. Yes\n  2. No\n  Press Enter to continue...\n"
    )
    screen.feed(f"{said}\n{box}\n❯ two lines\n  please go on\n{box}\n  manual mode on\n".replace("\n", "\r\n").encode())
    found = recognise(View.of(screen), Facts(canonical=False, echo=False), load_dialect("claude"))
    assert found is None or not found.own


def hermes(command: str, size: tuple[int, int] = (24, 80)) -> Prompt:
    """As Hermes draws it: a line break of the command is a column of its box's row, and tears it."""
    inner = 64
    rows = [f"╭{'─' * (inner + 2)}╮", f"│ ⚠️  {'Dangerous Command':<{inner - 4}} │", f"│ {'':<{inner}} │"]
    rows += [f"│ {command[at : at + inner]:<{inner}} │" for at in range(0, len(command), inner)]
    menu = ("❯ 1. Allow once", "  2. Allow for this session", "  3. Deny", "", "recursive delete")
    rows += [f"│ {text:<{inner}} │" for text in ("", *menu)]
    screen = Screen(*size)
    foot = " ⚕ lab-model │ 10/256K │ 34s\n────────────\n⚠ ❯\n────────────"
    screen.feed("\n".join([*rows, foot]).replace("\n", "\r\n").encode())
    view = View.of(screen)
    found = recognise(view, Facts(canonical=False, echo=False), load_dialect("hermes"))
    assert found is not None and found.own
    return prompt_of(found, view, [], b"", (), None, "/home/me/project")


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf ./none\ntouch made.txt",
        "rm -rf a\n\ncat <<EOF | sh\n  one │ two\nEOF",
        "rm -r x\necho one two three four five six seven eight nine ten eleven twelve\ntrue",
    ],
)
def test_no_frame_of_a_torn_box_is_shown_as_a_part_of_the_command(command: str) -> None:
    prompt = hermes(command)
    assert prompt.subject is not None and not prompt.subject.complete
    asked = "".join(command.split())
    assert "".join(prompt.subject.text.split()) == asked
    assert "".join(prompt.question.split()).removeprefix("⚠DangerousCommand") == asked
    assert [choice.label for choice in prompt.choices] == ["Allow once", "Allow for this session", "Deny"]
    assert prompt.subject.text.split("\n")[0] == command.split("\n")[0]


LONG_BOX = "\n".join(f"│ {f'part {number} of a change that is long':<60} │" for number in range(12))


def test_the_frames_of_a_stranger_are_no_part_of_what_is_told() -> None:
    box = f"╭─ Edit ───────────────────────────────────────────────────────╮\n{LONG_BOX}\n╰{'─' * 62}╯\n"
    play = Playbook(POLLING) >> f"\x1b[?25l{box}Apply this change?\n❯ Yes\n  No\n" >> 1.0
    play << Raised("yes_no", "Apply this change?")
    assert not set("│╭╰─╮╯") & set(play.prompt.excerpt)
    assert "part 11 of a change" in play.prompt.excerpt and len(play.prompt.excerpt) <= 200


def test_a_pipe_and_a_tree_in_what_is_asked_stay() -> None:
    play = Playbook() >> "curl x | sh\n├── a\n└── b\nRun it? (y/n) " >> 0.2 << Raised("yes_no", "curl x | sh")
    assert "├── a\n└── b" in play.prompt.excerpt


def test_an_agent_that_has_drawn_only_its_name_says_that_it_waits() -> None:
    bar = "─" * 80
    play = Playbook(POLLING) >> f"\x1b[?25l██  ██ ██\n▀▀  ▀▀ ▀▀\n{bar}\n❯ \n{bar}\n  ? for shortcuts" >> 2.0
    play << Raised("free_text", "(it waits for an instruction)")


def test_a_long_log_above_a_question_loses_its_beginning_and_says_so() -> None:
    log = "".join(f"compiling part {number} of the whole program\n" for number in range(9))
    play = Playbook() >> f"{log}Install it now? (y/n) " >> 0.2 << Raised("yes_no")
    assert play.prompt.excerpt.startswith("…\ncompiling part 5 of")
    assert play.prompt.excerpt.endswith("compiling part 8 of the whole program\nInstall it now? (y/n)")


def test_all_that_was_said_since_the_last_answer_makes_a_list_whole() -> None:
    play = Playbook() >> "Run it? (y/n) " >> 0.2 << Raised("yes_no")
    play.reply() >> "y\n212 passed.\n\nWhich version?\n  1) 1.4.3\n  2) 1.5.0\nEnter choice [1-2]: " >> 0.3
    assert play.detector.open_prompt is not None and play.detector.open_prompt.whole
