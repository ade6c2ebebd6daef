"""A person's words become a valid answer or a refusal in one sentence; an answer becomes exact keys."""

from __future__ import annotations

import pytest

from atlasbridge.core.prompt.answer import decide_answer, encode_answer
from atlasbridge.core.prompt.keys import Step, When, parse_keys
from atlasbridge.core.prompt.model import Answer, AnswerKind, Choice, Prompt, PromptType, Refusal, Reject


def line(word: str) -> tuple[Step, ...]:
    return (Step(word.encode(), When.DRAINED), Step(b"\r"))


YES_NO = Prompt(
    PromptType.TYPE_YES_NO,
    0.9,
    "Go on?",
    choices=(Choice("y", "Yes", line("yes")), Choice("n", "No", line("no"), refuses=True)),
    safe_default="n",
)
MENU = Prompt(
    PromptType.TYPE_MULTIPLE_CHOICE,
    0.9,
    "Run it?",
    choices=(
        Choice("1", "Yes", (Step(b"1"),), default=True),
        Choice("2", "Yes, and don't ask again", (Step(b"2"),), always=True),
        Choice("3", "No", (Step(b"3"),), refuses=True),
    ),
    safe_default="3",
    line_mode=False,
)
FREE = Prompt(PromptType.TYPE_FREE_TEXT, 0.9, "Name:", constraints={"max_length": 20}, safe_default="enter")
SECRET = Prompt(PromptType.TYPE_FREE_TEXT, 0.9, "Password:", constraints={"secret": True})
ENTER = Prompt(PromptType.TYPE_CONFIRM_ENTER, 0.9, "Press Enter", safe_default="enter")
UNKNOWN = Prompt(PromptType.TYPE_UNKNOWN, 0.6, "vim", line_mode=False)


def typed(prompt: Prompt, value: str, **how: bool) -> bytes:
    answer = decide_answer(prompt, value, **how)
    assert isinstance(answer, Answer), answer
    return b"".join(step.keys for step in encode_answer(prompt, answer))


@pytest.mark.parametrize("word", ["y", "Y", "yes", "ok", "YES", "approve"])
def test_words_of_consent_type_what_the_question_asks_for(word: str) -> None:
    assert typed(YES_NO, word) == b"yes\r"


@pytest.mark.parametrize("word", ["n", "no", "No", "deny"])
def test_words_of_refusal_type_the_refusal(word: str) -> None:
    assert typed(YES_NO, word) == b"no\r"


@pytest.mark.parametrize("word", ["maybe", "", "please do not", "3", "yesno"])
def test_an_unknown_word_is_refused_and_never_turned_into_no(word: str) -> None:
    refused = decide_answer(YES_NO, word)
    assert isinstance(refused, Reject)
    assert refused.reason is Refusal.BAD_VALUE
    assert "y (Yes), n (No)" in refused.sentence


@pytest.mark.parametrize(
    ("word", "keys"), [("1", b"1"), ("3", b"3"), ("No", b"3"), ("no", b"3"), ("yes", b"1"), ("default", b"3")]
)
def test_a_menu_is_answered_by_number_label_or_meaning(word: str, keys: bytes) -> None:
    assert typed(MENU, word) == keys


@pytest.mark.parametrize("word", ["please do not", "my own words", "4", "0", "yes and more"])
def test_words_are_never_typed_into_a_menu(word: str) -> None:
    assert isinstance(decide_answer(MENU, word), Reject)
    assert isinstance(decide_answer(MENU, word, as_text=True), Reject)


def test_consent_for_ever_is_never_meant_by_a_plain_yes() -> None:
    only_always = Prompt(
        PromptType.TYPE_MULTIPLE_CHOICE,
        0.9,
        "Run it?",
        choices=(
            Choice("1", "Yes, always", (Step(b"1"),), always=True),
            Choice("2", "No", (Step(b"2"),), refuses=True),
        ),
        line_mode=False,
    )
    assert isinstance(decide_answer(only_always, "yes"), Reject)


def test_text_and_its_enter_are_two_events() -> None:
    answer = decide_answer(FREE, "orion")
    assert isinstance(answer, Answer)
    assert encode_answer(FREE, answer) == (Step(b"orion", When.DRAINED), Step(b"\r"))


@pytest.mark.parametrize(
    "text", ["two\nlines", "a\x1b[A", "bell\x07", "x\u202ey", "zero\u200bwidth", "tab\there", "a\rb"]
)
def test_text_with_controls_or_invisible_characters_is_refused(text: str) -> None:
    assert isinstance(decide_answer(FREE, text), Reject)


def test_text_over_a_limit_is_refused() -> None:
    assert isinstance(decide_answer(FREE, "x" * 21), Reject)
    unlimited = Prompt(PromptType.TYPE_FREE_TEXT, 0.9, "Name:")
    assert isinstance(decide_answer(unlimited, "x" * 1000), Answer)
    assert isinstance(decide_answer(unlimited, "x" * 1001), Reject)
    assert isinstance(decide_answer(SECRET, "é" * 1000), Answer)


def test_several_lines_go_as_a_paste_only_where_the_tool_takes_one() -> None:
    box = Prompt(PromptType.TYPE_FREE_TEXT, 0.9, "next?", constraints={"idle": True}, line_mode=False, multiline=True)
    assert typed(box, "one\ntwo") == b"\x1b[200~one\rtwo\x1b[201~\r"


def test_a_secret_may_be_any_word_even_enter() -> None:
    assert typed(SECRET, "enter") == b"enter\r"
    assert isinstance(decide_answer(SECRET, "default"), Reject)


def test_enter_confirms_and_accepts_a_default() -> None:
    assert typed(ENTER, "enter") == b"\r"
    assert typed(FREE, "enter") == b"\r"
    assert typed(FREE, "default") == b"\r"


def test_a_full_screen_program_takes_keys_but_no_words() -> None:
    assert isinstance(decide_answer(UNKNOWN, "change it"), Reject)
    assert typed(UNKNOWN, ":q!\\r", as_keys=True) == b":q!\r"
    assert isinstance(decide_answer(UNKNOWN, "default"), Reject)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("q", b"q"),
        ("space", b" "),
        ("\\x1b", b"\x1b"),
        ("esc", b"\x1b"),
        ("ctrl-c", b"\x03"),
        ("^X", b"\x18"),
        ("up", b"\x1b[A"),
        ("\\\\", b"\\"),
    ],
)
def test_keys_are_written_as_people_write_them(text: str, keys: bytes) -> None:
    assert parse_keys(text) == keys


def test_a_key_that_is_an_offered_choice_chooses_it() -> None:
    expand = Prompt(
        PromptType.TYPE_MULTIPLE_CHOICE, 0.9, "(yax)", choices=(Choice("x", "x", line("x")),), line_mode=False
    )
    assert typed(expand, "x", as_keys=True) == b"x\r"


CHECKBOXES = Prompt(
    PromptType.TYPE_MULTIPLE_CHOICE,
    0.9,
    "Features",
    choices=(
        Choice("1", "lint", (Step(b" "),)),
        Choice("2", "test", (Step(b"\x1b[B"), Step(b" ")), default=True),
        Choice("3", "docs", (Step(b"\x1b[B"), Step(b" "))),
    ),
    constraints={"multi_select": True},
    line_mode=False,
    end_steps=(Step(b"\r"),),
)


def test_boxes_are_marked_and_unmarked_on_one_way_down() -> None:
    assert typed(CHECKBOXES, "1,3") == b" \x1b[B \x1b[B \r"
    assert typed(CHECKBOXES, "test") == b"\r"
    assert typed(CHECKBOXES, "none") == b"\x1b[B \r"
    assert isinstance(decide_answer(CHECKBOXES, "1,9"), Reject)


def test_text_before_a_field_opens_it_first() -> None:
    menu = Prompt(
        PromptType.TYPE_MULTIPLE_CHOICE, 0.9, "Which?", choices=(Choice("4", "Type something.", ()),),
        constraints={"allows_other": True}, line_mode=False, text_steps=(Step(b"4", When.CHANGED),),
    )  # fmt: skip
    assert typed(menu, "my own words", as_text=True) == b"4my own words\r"
    refused = decide_answer(menu, "4")
    assert isinstance(refused, Reject)
    assert "own words" in refused.sentence


def test_an_answer_survives_its_json() -> None:
    answer = Answer(AnswerKind.CHOICES, "1,3")
    assert Answer.from_json(answer.to_json()) == answer
