"""Dialogs in the shapes in which the vendors of Codex, Gemini, Qwen, Vibe and clack draw theirs; the words are ours.

`tools/vendor_snapshots.py` reads the vendors' own pictures.
"""

from __future__ import annotations

import pytest
from tests.support.playbook import POLLING, Playbook, Raised

from atlasbridge.core.prompt.answer import decide_answer, encode_answer
from atlasbridge.core.prompt.model import Answer, AnswerKind

HIDE = "\x1b[2J\x1b[H\x1b[?25l"
FAINT, PLAIN = "\x1b[2m", "\x1b[m"


def boxed(*rows: str, width: int = 70) -> str:
    inside = "".join(f"│ {row:<{width - 4}} │\n" for row in rows)
    return f"╭{'─' * (width - 2)}╮\n{inside}╰{'─' * (width - 2)}╯\n"


CODEX_FIELD = (
    f"\x1b[2J\x1b[H• I need a name.\n\n  Question 1/1 (1 unanswered)\n  Say more about it.\n\n"
    f"  › {FAINT}Type your answer (optional){PLAIN}\n\n\n"
    f"  {FAINT}enter to submit answer | esc to interrupt{PLAIN}\x1b[6;5H"
)
GEMINI_FIELD = HIDE + boxed(
    "Answer Questions", "", "What shall the component be called?", "", "> Enter your response", "",
    "Enter to submit · Esc to cancel",
)  # fmt: skip
ELICITED = (
    f"\x1b[2J\x1b[H  Field 1/1\n  Which branch shall be built?\n\n  › {FAINT}Type your answer{PLAIN}\n\n"
    f"  {FAINT}enter to submit | esc to cancel{PLAIN}\x1b[4;5H"
)


@pytest.mark.parametrize("tool", ["codex", "gemini", "qwen", "generic"])
@pytest.mark.parametrize(
    ("drawn", "asked"),
    [
        (CODEX_FIELD, "Say more about it."),
        (GEMINI_FIELD, "What shall the component be called?"),
        (ELICITED, "Which branch shall be built?"),
    ],
    ids=["codex", "gemini", "elicited"],
)
def test_a_field_of_an_agent_is_free_text_at_once_with_its_question(tool: str, drawn: str, asked: str) -> None:
    play = Playbook(POLLING, tool) >> drawn >> 1.0 << Raised("free_text", asked)
    assert not play.prompt.idle and not play.prompt.secret
    answer = decide_answer(play.prompt, "a plain name")
    assert answer == Answer(AnswerKind.TEXT, "a plain name")
    assert b"".join(step.keys for step in encode_answer(play.prompt, answer)) == b"a plain name\r"


def test_a_field_that_takes_pasted_text_takes_several_lines() -> None:
    play = Playbook(POLLING, "codex") >> f"\x1b[?2004h{CODEX_FIELD}" >> 1.0 << Raised("free_text")
    assert isinstance(decide_answer(play.prompt, "one\ntwo"), Answer)


def test_a_field_for_a_key_is_a_secret() -> None:
    play = Playbook(POLLING, "gemini") >> GEMINI_FIELD.replace(
        "What shall the component be called?", "Enter the API key:"
    )
    play >> 1.0 << Raised("free_text")
    assert play.prompt.secret


def test_an_instruction_box_is_no_field_for_an_answer() -> None:
    drawn = f"{HIDE}All done.\n\n› {FAINT}Ask it to do anything{PLAIN}\n\n  ? for shortcuts"
    play = Playbook(POLLING, "codex") >> drawn >> 1.0
    assert play.detector.open_prompt is None or play.detector.open_prompt.idle


CLACK = (
    f"{HIDE}│\n◆  Where shall it go?\n│  ● a very long first place which\n│  goes on in the next row\n"
    f"│  ○ {FAINT}the second place{PLAIN}\n└\n"
)


def test_a_list_whose_labels_take_two_rows_is_read() -> None:
    play = Playbook(POLLING) >> CLACK >> 1.0 << Raised("multiple_choice", "Where shall it go?")
    assert [choice.label for choice in play.prompt.choices][1] == "the second place"
    first = play.prompt.choices[0]
    assert "goes on in the next row" in f"{first.label} {first.detail}"


@pytest.mark.parametrize("foot", ["Press enter to confirm or esc to go back", "Press R to restart, or Esc to leave it"])
def test_a_dialog_of_a_known_tool_that_its_dialect_does_not_know_gets_no_guessed_enter(foot: str) -> None:
    play = Playbook(POLLING, "codex") >> f"{HIDE}  Something new of the next version\n\n  {foot}"
    play >> 11.0 << Raised("unknown")


def test_a_welcome_in_a_box_above_a_list_is_not_the_list() -> None:
    """Droid asks to log in below its welcome, of which one row is bold."""
    welcome = boxed(
        "", "\x1b[1mWelcome to the CLI    \x1b[m".ljust(74), "It helps you to build,", "and to improve your code.", ""
    )
    drawn = f"{HIDE}{welcome}\nPlease log in with your account to continue.\n\n> \x1b[1mLogin\x1b[m\n  Exit\n"
    play = Playbook(POLLING) >> drawn.replace("\n", "\r\n") >> 1.0
    play << Raised("multiple_choice", "Please log in with your account to continue.")
    assert [choice.label for choice in play.prompt.choices] == ["Login", "Exit"]
