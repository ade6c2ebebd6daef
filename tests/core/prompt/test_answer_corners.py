"""An adversary's view of answers: no is never taken for consent, once never for ever, and a timer never agrees."""

from __future__ import annotations

import pytest
from tests.support.playbook import POLLING, RAW, READING, Playbook, Raised

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.detection.events import ProbeAnswer
from atlasbridge.core.prompt.answer import decide_answer, encode_answer
from atlasbridge.core.prompt.keys import Shows, Step, When
from atlasbridge.core.prompt.model import Answer, AnswerKind, Choice, Prompt, PromptType, Reject
from atlasbridge.core.recognition.dialect import matches_any

GENERIC = load_dialect("generic")


def raised(text: str, kind: str, probe: ProbeAnswer = READING) -> Prompt:
    play = Playbook(probe) >> text >> 3.0 << Raised(kind)
    return play.prompt


def menu(*labels: str) -> Prompt:
    rows = "\n".join(f"{'❯' if at == 0 else ' '} {label}" for at, label in enumerate(labels))
    kind = "yes_no" if set(labels) == {"Yes", "No"} else "multiple_choice"
    return raised(f"? What shall it be? (Use arrow keys)\n{rows}", kind, POLLING)


def chosen(prompt: Prompt, words: str) -> str | None:
    """The label that these words choose; None when they are refused."""
    answer = decide_answer(prompt, words)
    if isinstance(answer, Reject):
        return None
    value = {AnswerKind.YES: "y", AnswerKind.NO: "n"}.get(answer.kind, answer.value)
    return next(choice.label for choice in prompt.choices if choice.value == value)


def keys(prompt: Prompt, words: str) -> list[bytes]:
    answer = decide_answer(prompt, words)
    assert isinstance(answer, Answer), answer
    return [step.keys for step in encode_answer(prompt, answer)]


def timer_chooses(prompt: Prompt) -> str | None:
    return chosen(prompt, "default") if prompt.safe_default else None


# ---------------------------------------------------------------- no is no


@pytest.mark.parametrize("word", ["no", "n", "No.", "nope", "deny", "stop", "abort", "don't", "do not", "never"])
@pytest.mark.parametrize("as_text", [False, True])
def test_a_no_at_press_enter_is_not_typed_with_the_enter_that_consents(word: str, as_text: bool) -> None:
    prompt = raised("Press Enter to install, or Ctrl-C to abort ", "confirm_enter")
    assert isinstance(decide_answer(prompt, word, as_text=as_text), Reject)


@pytest.mark.parametrize("word", ["Ask every time", "2", "prod", "go on then"])
@pytest.mark.parametrize(("probe", "as_text"), [(READING, False), (RAW, False), (RAW, True)])
def test_words_where_only_enter_is_asked_are_refused(word: str, probe: ProbeAnswer, as_text: bool) -> None:
    """The program would ignore the words and take its default with the Enter, and the receipt would quote the words."""
    refused = decide_answer(raised("Press Enter to continue ", "confirm_enter", probe), word, as_text=as_text)
    assert isinstance(refused, Reject) and "enter" in refused.sentence


def test_a_program_that_reads_lines_gets_the_words_that_reply_text_names() -> None:
    """tar asks for the next volume so, and its help names `n FILE` for it."""
    prompt = raised("Prepare volume #2 for 'v1.tar' and hit return: ", "confirm_enter")
    assert isinstance(decide_answer(prompt, "n v2.tar"), Reject)
    assert isinstance(decide_answer(prompt, "n v2.tar", as_text=True), Answer)


def test_a_word_that_press_enter_offers_itself_is_typed() -> None:
    prompt = raised("Press Enter to continue or type no to leave: ", "confirm_enter")
    assert keys(prompt, "no") == [b"no", b"\r"]


@pytest.mark.parametrize("word", ["don't", "never", "stop", "don’t", "do not"])
def test_a_refusal_is_no_beginning_of_a_choice_that_does_not_refuse(word: str) -> None:
    labels = ("Yes", "Don't ask again", "Don’t ask again", "Never ask again", "Stop asking me", "Do not ask again")
    assert chosen(menu("Yes", next(label for label in labels if label.lower().startswith(word)), "Later"), word) is None


def test_numbers_of_yes_and_no_count_as_they_stand() -> None:
    lit_no = (
        "┌──────────────────┐\n│ Really format?   │\n│   \x1b[7m<No>\x1b[m    <Yes>  │\n└──────────────────┘\x1b[?25l"
    )
    prompt = raised(lit_no, "yes_no", RAW)
    assert [choice.label for choice in prompt.choices] == ["No", "Yes"]
    assert (chosen(prompt, "1"), chosen(prompt, "2")) == ("No", "Yes")


def test_a_list_that_counts_from_zero_keeps_its_numbers_where_one_of_them_refuses() -> None:
    prompt = raised("Delete it?\n 0) Yes, delete it\n 1) No\nSelect: ", "multiple_choice")
    assert keys(prompt, "1") == [b"1", b"\r"]
    assert keys(prompt, "0") == [b"0", b"\r"]
    assert isinstance(decide_answer(prompt, "2"), Reject)


def test_a_scrolled_menu_keeps_its_numbers_where_one_of_them_refuses() -> None:
    prompt = raised("Which?\n❯ 2. Yes\n  3. No\n  4. Yes, always\n", "multiple_choice", POLLING)
    assert chosen(prompt, "3") == "No"
    assert chosen(prompt, "1") is None


@pytest.mark.parametrize("at", [0, 1])
def test_where_no_highlight_can_be_seen_enter_is_not_pressed_blindly(at: int) -> None:
    prompt = raised("? Really delete › no / yes", "yes_no", POLLING)
    first = prompt.choices[at].steps[0]
    assert first.until == Shows(prompt.choices[at].label)


def test_enter_at_a_highlight_takes_the_choice_that_was_highlighted_when_it_was_asked() -> None:
    lit_no = (
        "┌──────────────────┐\n│ Really format?   │\n│   <Yes>    \x1b[7m<No>\x1b[m  │\n└──────────────────┘\x1b[?25l"
    )
    assert chosen(raised(lit_no, "yes_no", RAW), "enter") == "No"


def test_an_answer_that_the_prompt_does_not_offer_any_more_has_no_keys() -> None:
    prompt = Prompt(
        PromptType.TYPE_MULTIPLE_CHOICE, 0.9, "?", choices=(Choice("a", "A", (Step(b"a"),)),), line_mode=False
    )
    assert encode_answer(prompt, Answer(AnswerKind.CHOICE, "b")) == ()


@pytest.mark.parametrize(
    "text", ["Stage this hunk [y,n,q,a,d,?]? ", "What now?\n  1) Yes\n  2) No\nChoose [1-2]: ", "(Y)es/(N)o/(A)ll: "]
)
def test_a_raw_program_that_takes_one_key_at_once_gets_no_stray_enter(text: str) -> None:
    prompt = raised(text, "multiple_choice", RAW)
    assert [(step.keys, step.until) for step in prompt.choices[0].steps] == [
        (prompt.choices[0].value.encode(), When.MAY_LEAVE),
        (b"\r", When.AT_ONCE),
    ]


# ---------------------------------------------------------------- once is not for ever

FOR_EVER = [
    "Yes, and don't ask again",
    "Yes, and don’t ask again",
    "Allow always",
    "Trust all",
    "Trust all and continue",
    "Yes to all",
    "Approve all",
    "Allow all edits",
    "Yes, allow all",
    "Yes, for all projects",
    "Allow everything",
    "Allow forever",
    "Allow permanently",
    "Yes, from now on",
    "Yes, and bypass permissions",
    "Yes, and never ask again",
    "Yes, do not prompt again",
    "Yes, stop asking",
    "Proceed without asking",
    "Allow for current session",
    "Allow for this workspace",
    "Yes, (a)lways",
]


@pytest.mark.parametrize("label", FOR_EVER)
def test_a_plain_yes_never_chooses_for_ever(label: str) -> None:
    assert chosen(menu(label, "No"), "y") is None
    assert chosen(menu(label, "Yes", "No"), "y") == "Yes"


@pytest.mark.parametrize(
    "label", ["Yes", "Yes, I trust this folder", "Allow once", "Yes, proceed", "Trust folder", "Approve", "Allow"]
)
def test_plain_consent_is_not_taken_for_ever(label: str) -> None:
    assert chosen(menu(label, "No"), "y") == label


def test_keys_that_are_named_in_words_know_what_is_for_ever() -> None:
    prompt = raised("Press a to allow always.\nPress r to reject.\n", "multiple_choice", RAW)
    assert chosen(prompt, "yes") is None
    assert chosen(prompt, "a") == "allow always"


# ---------------------------------------------------------------- a timer never agrees


@pytest.mark.parametrize(
    "label", ["Never ask again", "Stop asking", "Don’t ask again", "Back up now", "No problem, go on"]
)
def test_a_label_that_only_begins_like_a_refusal_is_none(label: str) -> None:
    assert not matches_any(GENERIC.refuse, label)


@pytest.mark.parametrize(
    "labels",
    [
        ("Yes", "No, continue without saving"),
        ("Deploy", "Skip tests and deploy"),
        ("Stop", "Don't stop"),
        ("Save", "Don't save"),
        ("Wait", "Exit and discard changes"),
        ("Yes", "Quit without saving"),
    ],
)
def test_a_refusal_that_goes_on_all_the_same_is_no_default(labels: tuple[str, ...]) -> None:
    assert timer_chooses(menu(*labels)) in (None, "Stop")


@pytest.mark.parametrize(
    ("labels", "default"),
    [
        (("Save", "Don't save", "Cancel"), None),
        (("Allow once", "Never ask again (always allow)", "Deny"), "Deny"),
        (("Yes", "No"), None),
        (("Delete", "Don't delete"), "Don't delete"),
        (("Yes", "No, keep it"), None),
        (("Overwrite", "Skip this file"), "Skip this file"),
    ],
)
def test_a_plain_refusal_is_the_default_where_a_choice_asks_for_permission(
    labels: tuple[str, ...], default: str | None
) -> None:
    assert timer_chooses(menu(*labels)) == default


@pytest.mark.parametrize(
    "text",
    [
        "Deploy to production [Y]: ",
        "Proceed with installation [yes]: ",
        "Delete all files (default: yes): ",
        "Delete all? (default yes): ",
        "Weiter mit der Installation [ja]: ",
    ],
)
def test_a_timer_does_not_press_enter_where_enter_may_agree(text: str) -> None:
    assert raised(text, "free_text").safe_default == ""


@pytest.mark.parametrize("text", ["Möchten Sie fortfahren? ", "¿Desea continuar? ", "続行しますか？"])
def test_a_timer_does_not_guess_how_another_language_says_no(text: str) -> None:
    assert raised(text, "yes_no").safe_default == ""


@pytest.mark.parametrize("text", ["Project name: ", "Project name [demo]: ", "What is your name? ", "Port (8080): "])
def test_a_timer_presses_nothing_where_text_is_asked(text: str) -> None:
    assert raised(text, "free_text").safe_default == ""


@pytest.mark.parametrize(
    "text", ["Press Enter to install or Ctrl-C to abort ", "Press RETURN to continue or any other key to abort: "]
)
def test_a_timer_does_not_press_enter_where_the_other_way_is_to_abort(text: str) -> None:
    assert raised(text, "confirm_enter").safe_default == ""


@pytest.mark.parametrize(
    "text",
    [
        "Cancel the deletion? [y/N] ",
        "Abort? (y/n) ",
        "Do you want to cancel the rollback? [y/n] ",
        "Quit? [y/n] ",
        "Continue (Ctrl-C to abort)? [y/N] ",
        "Keep your local changes? [y/n] ",
    ],
)
def test_a_timer_does_not_say_no_to_stopping(text: str) -> None:
    assert raised(text, "yes_no").safe_default == ""


@pytest.mark.parametrize("text", ["Continue? [y/N] ", "Overwrite a.txt? [y/n] ", "Really delete all 3 files? [y/N] "])
def test_a_timer_says_no_to_what_asks_for_permission(text: str) -> None:
    assert raised(text, "yes_no").safe_default == "n"


def test_a_timer_presses_no_enter_in_a_program_that_reads_keys() -> None:
    assert raised("Your name: half a te", "free_text", RAW).safe_default == ""


@pytest.mark.parametrize("word", ["1" * 8191, "0" * 8191, "²", "٣²"])
def test_digits_that_are_no_number_are_no_fault(word: str) -> None:
    """A superscript is a digit to Python, and a number of thousands of digits is none that it converts."""
    choices = (Choice("a", "Apply"), Choice("b", "Back", refuses=True))
    for kind in PromptType:
        for more in ({}, {"min_choice": 1, "max_choice": 3}):
            for offered in ((), choices):
                prompt = Prompt(kind, 0.9, "Which one?", choices=offered, constraints=more)
                for as_text in (False, True):
                    decide_answer(prompt, word, as_text=as_text)
    assert isinstance(decide_answer(Prompt(PromptType.TYPE_YES_NO, 0.9, "Go?", choices=choices), word), Reject)
