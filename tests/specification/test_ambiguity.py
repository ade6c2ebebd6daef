"""The ambiguity protocol: a reader that nothing is known about, its three actions, and keys by their names."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.hubs import hub_process
from tests.support.playbook import Playbook, Raised
from tests.support.waiting import wait_for

from atlasbridge.channels.excerpt import is_ambiguous
from atlasbridge.channels.matrix import CANCEL, SHOW, YES, reactions
from atlasbridge.channels.receipts import render_answer
from atlasbridge.channels.templates import reads_as_words, render_buttons, render_hint
from atlasbridge.core.prompt.answer import decide_answer, encode_answer, label_answer, quote_answer
from atlasbridge.core.prompt.model import Answer, AnswerKind, Confidence, Prompt, PromptType, Reject

TEXT = Prompt(PromptType.TYPE_FREE_TEXT, 0.9, "Enter your name:")


@pytest.mark.parametrize("written", ["", "Preparing the disk\n", "something unusual here"])
def test_a_reader_that_nothing_is_known_about_is_unknown_and_no_more_than_likely(written: str) -> None:
    play = Playbook() >> written >> 0.6 << Raised("unknown")
    assert play.prompt.confidence is Confidence.MED and is_ambiguous(play.prompt)
    assert play.prompt.safe_default == ""


@pytest.mark.parametrize("written", ["Enter your name: ", "Which color do you want? ", "> ", "Password: "])
def test_a_line_that_asks_is_not_called_unknown(written: str) -> None:
    Playbook() >> written >> 0.6 << Raised("free_text")


def test_three_actions_are_offered_and_text_is_still_taken() -> None:
    prompt = (Playbook() >> "Preparing the disk\n" >> 0.6 << Raised("unknown")).prompt
    assert [(one.label, one.value) for one in render_buttons(prompt)] == [
        ("↩ Send Enter", "enter"),
        ("🔎 Show last output", ""),
        ("✖ Cancel", "cancel"),
    ]
    assert list(reactions(prompt)) == [YES, SHOW, CANCEL]
    assert render_hint(prompt, "p" * 36).startswith("What should AtlasBridge do?")
    assert typed(prompt, "enter") == b"\r" and typed(prompt, "hello") == b"hello\r"


def typed(prompt: Prompt, value: str, as_text: bool = False) -> bytes:
    answer = decide_answer(prompt, value, as_text=as_text)
    assert isinstance(answer, Answer), answer
    return b"".join(step.keys for step in encode_answer(prompt, answer))


@pytest.mark.parametrize(
    ("word", "keys", "label"),
    [
        ("enter", b"\r", "Enter key"),
        ("Enter", b"\r", "Enter key"),
        ("esc", b"\x1b", "Esc key"),
        ("ctrl-c", b"\x03", "Ctrl-C key"),
    ],
)
def test_the_name_of_a_key_presses_it_and_says_so(word: str, keys: bytes, label: str) -> None:
    assert typed(TEXT, word) == keys and not reads_as_words(TEXT, word)
    answer = decide_answer(TEXT, word)
    assert isinstance(answer, Answer) and label_answer(TEXT, answer) == label
    assert quote_answer(label) == f"the {label}" and render_answer(TEXT, label) == label
    assert typed(TEXT, word, as_text=True) == word.encode() + b"\r"
    spoken = decide_answer(TEXT, word, as_text=True)
    assert isinstance(spoken, Answer) and label_answer(TEXT, spoken) == word
    assert render_answer(TEXT, word) == f"“{word}”"


def test_a_secret_may_be_any_word() -> None:
    secret = Prompt(PromptType.TYPE_FREE_TEXT, 0.9, "Password:", constraints={"secret": True})
    assert decide_answer(secret, "enter") == Answer(AnswerKind.TEXT, "enter")


def test_a_menu_is_not_answered_by_the_name_of_a_key() -> None:
    play = Playbook() >> "1) Install\n2) Skip\nEnter choice [1-2]: " >> 0.6 << Raised("multiple_choice")
    assert isinstance(decide_answer(play.prompt, "esc"), Reject)


def test_a_question_above_the_line_of_its_command_is_a_yes_no_question() -> None:
    for end in ("", "\n"):
        play = (
            Playbook() >> f"Run bash command? (y/n)\n  $ git push origin main --force{end}" >> 0.6 << Raised("yes_no")
        )
        assert "git push origin main --force" in play.prompt.question and typed(play.prompt, "n") == b"n\r"
    Playbook() >> "Saved.\n  $ git push origin main\n" >> 0.6 << Raised("unknown")


def test_numbers_without_a_list_are_choices() -> None:
    for asked in ("Enter choice [1-4]: ", "Select option (1-3): ", "Enter your choice [1-4]: "):
        prompt = (Playbook() >> asked >> 0.6 << Raised("multiple_choice")).prompt
        numbers = [choice.value for choice in prompt.choices]
        assert numbers == [str(at) for at in range(1, prompt.constraints["max_choice"] + 1)]
        assert typed(prompt, "2") == b"2\r"
        assert [one.value for one in render_buttons(prompt)][: len(numbers)] == numbers
    Playbook() >> "Port [1-65535]: " >> 0.6 << Raised("free_text")


KEYS = (
    "import os,sys,tty; tty.setcbreak(0); print('Type a word: ', end='', flush=True);"
    r" print(os.read(0, 9).replace(b'\r', b'\n')); input()"  # Python 3.12.0 and 3.12.1 leave Enter as it comes
)


@pytest.mark.parametrize(("word", "shown"), [("esc", r"b'\x1b'"), ("enter", r"b'\n'")])
def test_from_the_command_line_a_key_reaches_a_real_program(word: str, shown: str) -> None:
    import sys

    with hub_process() as hub:
        hub.cli("run", "--detach", "--", sys.executable, "-c", KEYS)
        wait_for(hub.is_asked)
        prompt: dict[str, Any] = hub.ask("prompts")["prompts"][0]
        done = hub.cli("reply", prompt["prompt_id"], word)
        assert done.returncode == 0 and f"the {word.capitalize()} key" in done.stdout, done.stdout + done.stderr
        session = prompt["session_id"]
        wait_for(lambda: shown in str(hub.ask("screen", session_id=session)).replace("\\\\", "\\"))
