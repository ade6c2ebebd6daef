"""Widgets of programs that nobody tuned for: boxes with scroll bars, codes in a sentence, keys before paragraphs."""

from __future__ import annotations

import pytest
from tests.support.playbook import ONE_KEY, POLLING, RAW, READING, TICKING, Playbook, Raised

from atlasbridge.core.detection.events import ProbeAnswer
from atlasbridge.core.prompt.answer import decide_answer, encode_answer
from atlasbridge.core.prompt.model import Answer

ALTERNATE = "\x1b[?1049h\x1b[H"
HIDE = "\x1b[?25l"
RADIO = """┌────────────| Pick |────────────┐
│                                │
│ Which colour?                  │
│                                │
│ \x1b[7m( ) red                      \x1b[m^ │
│ (*) green                      │
│ ( ) blue                     v │
│                                │
│    <    Ok    >  < Cancel >    │
│                                │
└────────────────────────────────┘\x1b[5;4H"""
CHECKS = """┌──────────┤ Pizza ├───────────┐
│ Choose toppings:             │
│                              │
│    [*] cheese  Cheese      ↑ │
│    [ ] ham     Ham         ▮ │
│    [*] olive   Olive       ↓ │
│                              │
│     <Ok>         <Cancel>    │
└──────────────────────────────┘\x1b[4;7H"""
INNER = """┌──────────────────────────────┐
│ Choose one:                  │
│ ┌──────────────────────────┐ │
│ │  (*) cheese  Cheese      │ │
│ │  ( ) ham     Ham         │ │
│ │                          │ │
│ └──────────────────────────┘ │
├──────────────────────────────┤
│    <  OK  >    <Cancel>      │
└──────────────────────────────┘\x1b[4;7H"""
CODES = """Conflict discovered in file 'a'.
Select: (p) Postpone, (df) Show diff, (e) Edit file, (m) Merge,
        (s) Show all options: """
KEYS = """You can:

(q)  Quit and do nothing.  The function will be run again next time.

(0)  Exit, creating the file ~/.zshrc containing just a comment.
     That will prevent this function being run again.

(1)  Continue to the main menu.

--- Type one of the keys in parentheses --- """

GRID = """What next?

 < Save >   < Load >
 \x1b[7m< Quit >\x1b[m   < Help >\x1b[?25l"""
BOXED_GRID = """┌──────────────────────┐
│ What next?           │
│                      │
│  < Save >   < Load > │
│  \x1b[7m< Quit >\x1b[m   < Help > │
└──────────────────────┘\x1b[?25l"""


def typed(play: Playbook, value: str) -> bytes:
    answer = decide_answer(play.prompt, value)
    assert isinstance(answer, Answer), answer
    return b"".join(step.keys for step in encode_answer(play.prompt, answer))


WIDGETS: list[tuple[str, ProbeAnswer, list[str], str, bytes]] = [
    (ALTERNATE + RADIO, TICKING, ["red", "green", "blue"], "blue", b"\x1b[B\x1b[B  \t\r"),
    (ALTERNATE + CHECKS, POLLING, ["cheese  Cheese", "ham     Ham", "olive   Olive"], "1,2", b"\x1b[B \x1b[B \r"),
    (ALTERNATE + INNER, POLLING, ["cheese  Cheese", "ham     Ham"], "2", b"\x1b[B \r"),
    (CODES, READING, ["Postpone", "Show diff", "Edit file", "Merge", "Show all options"], "df", b"df\r"),
    (CODES, READING, ["Postpone", "Show diff", "Edit file", "Merge", "Show all options"], "Merge", b"m\r"),
    (ALTERNATE + GRID, POLLING, ["Save", "Load", "Quit", "Help"], "Load", b"\x1b[C\x1b[A\r"),
    (ALTERNATE + BOXED_GRID, POLLING, ["Save", "Load", "Quit", "Help"], "Load", b"\x1b[C\x1b[A\r"),
]


@pytest.mark.parametrize(("drawn", "probe", "labels", "said", "keys"), WIDGETS)
def test_all_choices_are_found_and_taken(
    drawn: str, probe: ProbeAnswer, labels: list[str], said: str, keys: bytes
) -> None:
    play = Playbook(probe) >> drawn >> 1.0 << Raised("multiple_choice")
    assert [choice.label for choice in play.prompt.choices] == labels
    assert typed(play, said) == keys


def test_a_scroll_bar_says_that_there_is_more() -> None:
    play = Playbook(POLLING) >> ALTERNATE + CHECKS >> 1.0 << Raised("multiple_choice", "Choose toppings:")
    assert play.prompt.constraints["scrolls"]


def test_the_frame_around_a_list_is_no_part_of_the_question() -> None:
    play = Playbook(POLLING) >> ALTERNATE + INNER >> 1.0 << Raised("multiple_choice")
    assert play.prompt.excerpt == "Choose one:"


def test_keys_in_front_of_paragraphs_are_choices_and_take_no_enter() -> None:
    play = Playbook(ONE_KEY) >> KEYS >> 1.0 << Raised("multiple_choice", "You can:")
    assert [choice.value for choice in play.prompt.choices] == ["q", "0", "1"]
    assert typed(play, "q") == b"q"
    assert play.prompt.choices[0].refuses


def test_codes_that_are_only_told_are_no_choices() -> None:
    text = "Flags are (v) verbose, (q) quiet.\nEnter a file name: "
    Playbook(READING) >> text >> 1.0 << Raised("free_text", "Enter a file name:")


@pytest.mark.parametrize("cols", [24, 40, 60])
def test_a_label_that_wraps_keeps_all_options(cols: int) -> None:
    labels = [
        "Yes",
        "Yes, and don't ask again for commands that begin with git commit",
        "No, and say what to do",
        "Other",
    ]
    rows = "\n".join(f"{'❯' if at == 1 else ' '} {at}. {label}" for at, label in enumerate(labels, 1))
    play = Playbook(POLLING, rows=40, cols=cols) >> f"? Pick one\n{rows}\n" >> 1.0 << Raised("multiple_choice")
    assert [choice.label for choice in play.prompt.choices] == labels


@pytest.mark.parametrize("cols", [24, 40, 60])
def test_a_label_without_a_number_that_wraps_keeps_all_options(cols: int) -> None:
    labels = ["Alpha", "Beta is a label that goes on and on until there is no more room for it", "Gamma", "Delta"]
    rows = "\n".join(f"{'❯' if at == 0 else ' '} {label}" for at, label in enumerate(labels))
    play = Playbook(POLLING, rows=40, cols=cols) >> f"? Pick one\n{rows}\n" >> 1.0 << Raised("multiple_choice")
    assert [choice.label for choice in play.prompt.choices] == labels


def test_a_number_that_has_no_room_for_the_blank_behind_it_counts() -> None:
    drawn = "Proceed?\n❯ 1. Yes\n  2.Yes, and always\n  3. No\x1b[?25l"
    play = Playbook(RAW) >> drawn >> 1.0 << Raised("multiple_choice")
    assert [choice.label for choice in play.prompt.choices] == ["Yes", "Yes, and always", "No"]


def test_a_label_that_the_tool_wraps_itself_is_one_label() -> None:
    rows = "❯ 1. Yes\n  2. Yes, and don't ask again for\n     commands that begin with git\n  3. No"
    play = Playbook(POLLING, cols=40) >> f"Run it?\n{rows}\n" >> 1.0 << Raised("multiple_choice")
    assert play.prompt.choices[1].label == "Yes, and don't ask again for commands that begin with git"
    assert play.prompt.choices[1].detail == ""


@pytest.mark.parametrize("pointed", [0, 1, 2])
def test_labels_in_small_letters_that_the_tool_wraps_in_a_narrow_window_stay_apart(pointed: int) -> None:
    labels = ["us-east-1 (N. Virginia)", "eu-central-1 (Frankfurt, recommended for customers in Germany)", "ap-east-1"]
    rows = [f"{'❯' if at == pointed else ' '} {label}" for at, label in enumerate(labels)]
    drawn = "\n".join(row.replace("recommended ", "recommended\n  ") for row in rows)
    play = Playbook(POLLING, cols=40) >> f"\x1b[?25l? Which region?\n{drawn}" >> 3.0 << Raised("multiple_choice")
    assert [choice.label for choice in play.prompt.choices] == labels


def test_a_label_that_the_tool_wraps_inside_a_box_ends_where_its_description_begins() -> None:
    words = [
        "❯ 1. Yes",
        "  2. Yes, and don't ask again when in this",
        "     folder (/tmp/shop/api)",
        "     For this session",
    ]
    rows = [*words, "  3. No"]
    box = "\n".join(["╭" + "─" * 46 + "╮", *(f"│ {row:<45}│" for row in ("Edit it?", *rows)), "╰" + "─" * 46 + "╯"])
    play = Playbook(RAW, cols=48) >> f"{box}\x1b[?25l" >> 1.0 << Raised("multiple_choice")
    assert [choice.label for choice in play.prompt.choices] == [
        "Yes",
        "Yes, and don't ask again when in this folder (/tmp/shop/api)",
        "No",
    ]
    assert play.prompt.choices[1].detail == "For this session"


EDITED = """┌──────────────────────────────┐
│ Describe the change:         │
│ ┌──────────────────────────┐ │
│ │ Fix the build            │ │
│ │                          │ │
│ │                          │ │
│ └──────────────────────────┘ │
├──────────────────────────────┤
│     <  OK  >    <Cancel>     │
└──────────────────────────────┘\x1b[4;18H"""
NESTED = f"""┌──────────────────────────────────────────────┐
│ Arrow keys navigate the menu.                │
│ \x1b[44m  General setup with all its options  --->\x1b[m   │
│       Timers subsystem of the kernel  --->   │
│   Processor type and features  --->          │
│                                              │
│        <Select>      < Exit >                │
└──────────────────────────────────────────────┘{HIDE}"""


@pytest.mark.parametrize("drawn", [EDITED, NESTED], ids=["a sheet to write on", "a list that is not in one column"])
def test_a_box_that_enter_would_leave_half_done_is_left_to_a_person(drawn: str) -> None:
    Playbook(POLLING) >> ALTERNATE + drawn >> 3.0 << Raised("unknown")


def test_a_box_that_asks_whether_to_change_a_password_takes_yes_or_no() -> None:
    box = """┌──────────────────────────────┐
│ Change the password of root? │
│                              │
│      \x1b[7m< Yes >\x1b[m      < No  >      │
└──────────────────────────────┘"""
    play = Playbook(POLLING) >> ALTERNATE + box + HIDE >> 3.0 << Raised("yes_no", "Change the password")
    assert typed(play, "no") == b"\x1b[C\r"


def test_marked_boxes_of_prompt_toolkit_are_sent_with_its_button() -> None:
    box = """┌────────────| Pick |────────────┐
│                                │
│ Which colours?                 │
│                                │
│ \x1b[7m[ ] red                      \x1b[m  │
│ [ ] green                      │
│ [ ] blue                       │
│                                │
│    <    Ok    >  < Cancel >    │
│                                │
└────────────────────────────────┘\x1b[5;4H"""
    play = Playbook(TICKING) >> ALTERNATE + box >> 1.0 << Raised("multiple_choice", "Which colours?")
    assert typed(play, "red, blue") == b" \x1b[B\x1b[B \t\r"
