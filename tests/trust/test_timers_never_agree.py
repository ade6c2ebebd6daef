"""A timer refuses, or goes on where going on is all that is asked; it agrees to nothing and types into no shell."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from tests.support.playbook import ONE_KEY, RAW, READING, Playbook

from atlasbridge.core.detection.events import ProbeAnswer
from atlasbridge.core.prompt.answer import decide_answer
from atlasbridge.core.prompt.model import Choice, Prompt, PromptType, Refusal, Reject
from atlasbridge.core.prompt.timer import asks_permission, timer_can_answer
from atlasbridge.core.routing.policy import PolicySettings, decide_timer_default
from atlasbridge.core.values import replace

PLAN = "Plan:\n1. Yes to all\n2. Skip\n3. No\n"
NEVER = [
    "Press ENTER to format the disk and lose all data",
    "All data on /dev/sda will be lost.\nPress Enter to continue",
    "WARNING: this cannot be undone\n\nPress any key to continue...",
    "Press Enter to accept the license",
    "Press Enter to install or Ctrl-C to abort",
    "Run bash command? (y/n)\n$ git push --force",
    "Run bash command? (y/n)\n$ git push --force ",
    "Project name [demo]: ",
    "Delete everything, then type a name: ",
    "Continue [Y]",
    "",
    "\n\n",
    "some words without a sign",
    "Password: ",
]


def raised(text: str, probe: ProbeAnswer = READING) -> Prompt:
    play = Playbook(probe) >> text >> 4.0
    assert play.detector.open_prompt is not None, text
    return play.detector.open_prompt


@pytest.mark.parametrize("text", NEVER)
def test_a_timer_types_nothing_at_these(text: str) -> None:
    prompt = raised(text)
    assert prompt.safe_default == "" and not decide_timer_default(prompt, PolicySettings())


@pytest.mark.parametrize(
    "mark", ["$", "#", "%", ">", ">>>", "❯", "=>", "irb>", "sqlite>", "In [3]:", "me@host:~$", "...>", "λ"]
)
@pytest.mark.parametrize("probe", [READING, RAW, ONE_KEY])
def test_a_list_above_a_bare_prompt_is_no_menu_and_no_timer_types_there(mark: str, probe: ProbeAnswer) -> None:
    prompt = raised(f"{PLAN}{mark} ", probe)
    assert prompt.type in (PromptType.TYPE_FREE_TEXT, PromptType.TYPE_UNKNOWN)
    assert prompt.safe_default == ""


@pytest.mark.parametrize("mark", ["$", ">", ">>>", "❯", "%"])
def test_a_head_that_asks_to_choose_makes_no_timer_type_at_a_bare_prompt(mark: str) -> None:
    prompt = raised(f"Choose one of the following:\n1. Yes to all\n2. No\n{mark} ")
    assert prompt.safe_default == ""
    if mark in ("$", ">>>", "❯", "%"):
        assert prompt.type is PromptType.TYPE_FREE_TEXT


def test_a_line_that_asks_for_something_else_is_not_answered_by_the_list_above_it() -> None:
    for line in ("Enter a release note: ", "Type a message: ", "Your name: "):
        prompt = raised(f"Components:\n 1. core\n 2. web\n\n{line}")
        assert prompt.type is PromptType.TYPE_FREE_TEXT, line


def test_a_number_beyond_what_the_question_names_is_refused() -> None:
    prompt = raised("Enter your choice [1-4]: ")
    refused = decide_answer(prompt, "7")
    assert isinstance(refused, Reject) and refused.reason is Refusal.BAD_VALUE and "1, 2, 3, 4" in refused.sentence
    assert not isinstance(decide_answer(prompt, "4"), Reject)
    assert not isinstance(decide_answer(prompt, "q", as_text=True), Reject), "a word of its own is typed as one"


@pytest.mark.parametrize(
    "text", ["Press Enter to continue", "Press any key to continue...", "[Press ENTER]", "Hit return to proceed:"]
)
def test_going_on_is_all_that_is_asked(text: str) -> None:
    prompt = raised(text)
    assert prompt.safe_default == "enter" and decide_timer_default(prompt, PolicySettings())


def test_a_timer_refuses_where_a_question_can_be_refused() -> None:
    assert raised("Overwrite a.txt? [y/N] ").safe_default == "n"
    menu = raised("Really delete?\n\n1) Yes\n2) No\n\nEnter choice: ")
    assert menu.safe_default == "2" and timer_can_answer(menu)


QUESTIONS = tomllib.loads((Path(__file__).parent / "timer_questions.toml").read_text(encoding="utf-8"))


def test_a_timer_says_no_to_no_question_where_no_may_do_harm() -> None:
    assert len(QUESTIONS["no_is_harmful"]) >= 100
    assert [text for text in QUESTIONS["no_is_harmful"] if asks_permission(text)] == []


def test_a_timer_knows_most_questions_that_ask_for_permission() -> None:
    assert len(QUESTIONS["no_is_harmless"]) >= 100
    assert [text for text in QUESTIONS["no_is_harmless"] if not asks_permission(text)] == []


@pytest.mark.parametrize(
    "text", ["Keep your local changes?", "Exit without deploying?", "Frobnicate it?", "Verify it?"]
)
def test_a_question_on_the_screen_is_left_alone_where_no_may_do_harm(text: str) -> None:
    assert raised(f"{text} [y/n] ").safe_default == ""
    assert raised(f"{text}\n\n1) Yes\n2) No\n\nEnter choice: ").safe_default == ""


@pytest.mark.parametrize("said", ["Refusing deletes your account.", "N formats the disk!", "Pressing No wipes it all."])
def test_what_stands_above_a_question_can_say_that_no_does_harm(said: str) -> None:
    assert raised(f"{said}\nContinue? [y/n] ").safe_default == ""
    assert raised(f"{said}\nContinue?\n1) Yes\n2) No\n\nEnter choice: ").safe_default == ""
    assert raised("Continue?\n1) Yes\n2) No\n\nEnter choice: ").safe_default == "2"


@pytest.mark.timeout(60)
def test_words_that_can_be_read_in_many_ways_are_read_in_time() -> None:
    assert not asks_permission("do you really want me to " * 16)  # took minutes: each repetition nearly tripled it


def test_a_verb_behind_a_denial_or_a_choice_between_two_things_is_not_known() -> None:
    for text in QUESTIONS["no_is_harmless"]:
        for harmful in (
            f"If not now: {text}",
            f"{text.rstrip(' ?')} or keep it?",
            f"{text} Otherwise it is deleted. Continue?",
        ):
            assert not asks_permission(harmful), harmful


def test_a_default_that_came_from_elsewhere_is_looked_at_once_more() -> None:
    plain = Prompt(PromptType.TYPE_YES_NO, 0.9, "Run?", safe_default="n")
    assert timer_can_answer(plain)
    yes, no = Choice("1", "Yes"), Choice("2", "No", refuses=True)
    menu = Prompt(PromptType.TYPE_MULTIPLE_CHOICE, 0.9, "Run?", choices=(yes, no), safe_default="2")
    assert timer_can_answer(menu)
    for wrong in (
        replace(plain, safe_default="y"),
        replace(plain, safe_default="enter"),
        replace(menu, safe_default="1"),
        replace(menu, choices=(yes, replace(no, always=True))),
        replace(menu, constraints={"secret": True}),
        Prompt(PromptType.TYPE_FREE_TEXT, 0.9, "Name:", safe_default="enter"),
        Prompt(PromptType.TYPE_UNKNOWN, 0.9, "?", safe_default="enter"),
        Prompt(PromptType.TYPE_CONFIRM_ENTER, 0.9, "Press Enter to format the disk", safe_default="enter"),
        Prompt(
            PromptType.TYPE_CONFIRM_ENTER, 0.9, "Press Enter", question="Lose all?\nPress Enter", safe_default="enter"
        ),
    ):
        assert not timer_can_answer(wrong) and not decide_timer_default(wrong, PolicySettings()), wrong
