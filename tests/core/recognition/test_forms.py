"""Forms and trees: answered in words where every key can be seen to arrive, else left to a person."""

from __future__ import annotations

import pytest
from tests.support.playbook import POLLING, RAW, TICKING, Nothing, Playbook, Raised

from atlasbridge.core.prompt.answer import decide_answer, encode_answer
from atlasbridge.core.prompt.keys import Reach, Stands, Step
from atlasbridge.core.prompt.model import Answer, Reject
from atlasbridge.core.recognition.highlight import is_highlighted
from atlasbridge.core.screen.view import View

ALTERNATE, HIDE = "\x1b[?1049h\x1b[H", "\x1b[?25l"
DIALOG = (
    "\x1b[?1h┌────────────────────────────────────┐\n│ Edit user                          │\n"
    "│ ┌────────────────────────────────┐ │\n│ │User name:   root               │ │\n"
    "│ │Shell:       /bin/sh            │ │\n│ │Group:                          │ │\n"
    "│ └────────────────────────────────┘ │\n├────────────────────────────────────┤\n"
    "│      <  OK  >      <Cancel>        │\n└────────────────────────────────────┘\x1b[4;17H"
)
NPYSCREEN = (
    ALTERNATE + HIDE + "┌ Welcome ───────────────────┐\n│ \x1b[7mHost:\x1b[0m                      │\n"
    "│ Port:   80                 │\n│                       OK   │\n└────────────────────────────┘"
)
PLAIN = ALTERNATE + "\x1b[11;1HName: \x1b[12;1HTown: Rome\x1b[13;1H< OK                      >\x1b[11;7H"


def steps_of(play: Playbook, value: str) -> tuple[Step, ...]:
    answer = decide_answer(play.prompt, value)
    assert isinstance(answer, Answer), answer
    return encode_answer(play.prompt, answer)


@pytest.mark.parametrize("drawn", [DIALOG, NPYSCREEN, PLAIN], ids=["framed", "hidden cursor", "no frame"])
def test_a_form_names_its_fields_and_takes_them_by_name(drawn: str) -> None:
    play = Playbook(RAW) >> drawn >> 1.0 << Raised("free_text")
    fields = play.prompt.constraints["fields"]
    assert len(fields) >= 2 and play.prompt.safe_default == ""
    refused = decide_answer(play.prompt, "just words")
    assert isinstance(refused, Reject) and fields[0] in refused.sentence
    refused = decide_answer(play.prompt, "Nothing: of this")
    assert isinstance(refused, Reject) and "no field 'Nothing'" in refused.sentence
    steps = steps_of(play, f"{fields[-1]}: new words")
    assert steps[-1].keys == b"\r" and isinstance(steps[-2].until, Reach), "the button is seen to have the keys"


def test_a_field_is_reached_emptied_and_seen_to_hold_its_new_words() -> None:
    play = Playbook(RAW) >> DIALOG >> 1.0 << Raised("free_text", "Shell:")
    assert steps_of(play, "Shell: /bin/zsh; Group: staff") == (
        Step(b"\x1bOB", Reach("Shell:")),
        Step(b"\x7f" * 7 + b"\x1b[3~" * 7, Stands("Shell:        ")),
        Step(b"/bin/zsh", Stands("Shell:       /bin/zsh ")),
        Step(b"\x1bOB", Reach("Group:")),
        Step(b"staff", Stands("Group:       staff ")),
        Step(b"\t", Reach("OK")),
        Step(b"\r"),
    )
    assert steps_of(play, "enter") == (Step(b"\t", Reach("OK")), Step(b"\r")), "sent as it stands there"


def test_the_field_with_the_keys_is_known_by_the_cursor_or_by_its_look() -> None:
    for drawn, label in ((DIALOG, "User name:"), (NPYSCREEN, "Host:"), (PLAIN, "Name:")):
        play = Playbook(RAW) >> drawn >> 1.0
        view = View.of(play.detector.screen)
        others = {"User name:", "Shell:", "Host:", "Port:", "Name:", "Town:"} - {label}
        assert is_highlighted(view, label) and not any(is_highlighted(view, other) for other in others)


def test_values_may_hold_signs_and_a_shorter_name_is_enough() -> None:
    play = Playbook(RAW) >> DIALOG >> 1.0 << Raised("free_text")
    typed = [step.keys for step in steps_of(play, "user: a; b: c; shell: /x")]
    assert b"a; b: c" in typed and b"/x" in typed, "only a field's name begins another value"
    assert isinstance(decide_answer(play.prompt, "Shell: a\x1bb"), Reject)


def test_a_form_with_a_hidden_field_or_without_a_button_is_left_to_a_person() -> None:
    hidden = DIALOG.replace("Group:   ", "Password:")
    play = Playbook(RAW) >> hidden >> 1.0 << Raised("unknown")
    assert isinstance(decide_answer(play.prompt, "Shell: x"), Reject)
    Playbook(RAW) >> DIALOG.replace("<  OK  >", "        ") >> 1.0 << Raised("unknown")


def test_rows_that_only_tell_are_no_form() -> None:
    told = ALTERNATE + HIDE + "Host: example.org\nLoad: \x1b[31m97\x1b[0m %\nUsers: 3\n"
    play = Playbook(POLLING) >> told >> 1.0 << Raised("unknown")
    assert "fields" not in play.prompt.constraints


def test_what_grows_on_a_tree_is_chosen_by_its_name() -> None:
    tree = (
        "┌────────────────────────────┐\n│ Pick one                   │\n│┌──────────────────────────┐│\n"
        "││   ( ) Alpha              ││\n││   \x1b[7m(*)\x1b[0m │  Beta            ││\n││   ( ) │  Gamma           ││\n"
        "│└──────────────────────────┘│\n├────────────────────────────┤\n│   <  OK  >    <Cancel>     │\n"
        "└────────────────────────────┘\x1b[9;8H"
    )
    play = Playbook(RAW) >> tree >> 1.0 << Raised("multiple_choice", "Pick one")
    assert [choice.label for choice in play.prompt.choices] == ["Alpha", "Beta", "Gamma"]
    assert steps_of(play, "gamma")


def test_a_name_in_front_of_a_choice_is_not_needed_to_take_it() -> None:
    drawn = (
        "┌───────── Pick one ─────────┐\n│   ( ) a  Alpha             │\n│   \x1b[7m(*)\x1b[0m b  Beta              │\n"
        "│   ( ) c  Gamma             │\n│                            │\n│   <Ok>        <Cancel>     │\n"
        "└────────────────────────────┘\x1b[3;6H"
    )
    play = Playbook(RAW) >> drawn >> 1.0 << Raised("multiple_choice")
    assert steps_of(play, "Gamma") == steps_of(play, "c") == steps_of(play, "3")


DRAWN = [
    "? Please provide:\n⊙  First name : Jon\n⊙   Last name : Doe\x1b[1;19H",
    "? How good? …\n\n   1 - Bad\n   2 - Good\n        1    2\nSpeed   ◯ ───◯\x1b[1;16H",
    "? Fill out ‣ 0% completed\n { name: <name>, v: <version> }\x1b[1;27H",
    "? When? › 2026-11-16 22:15:40",
    "? Sort these …  (Use <shift>+<up/down> to sort)\n  \x1b[36mone\x1b[0m\n  two\n  three\x1b[1;49H",
]


@pytest.mark.parametrize("drawn", DRAWN, ids=["form", "scale", "sheet", "date", "order"])
def test_a_question_that_wants_more_than_a_line_gets_no_line(drawn: str) -> None:
    play = Playbook(TICKING) >> (HIDE + drawn) >> 1.5 << Raised("unknown")
    assert isinstance(decide_answer(play.prompt, "some words"), Reject) and not play.prompt.choices


def test_a_remark_below_a_drawn_question_does_not_make_it_more() -> None:
    Playbook(POLLING) >> (HIDE + "? Project name ›\n⚠ it must not be empty\x1b[1;17H") >> 1.0 << Raised("free_text")


BLOCKS = "Name\n▊▔▔▔▔▔▔▔▎\n▊ \x1b[44m \x1b[0m     ▎\n▊▁▁▁▁▁▁▁▎\n      Save"
LIT, UNLIT = "\x1b[3;3H\x1b[44m \x1b[0m", "\x1b[3;3H \x1b[0m"


def test_a_field_with_a_caret_that_blinks_is_raised_and_one_beside_a_spinner_is_not() -> None:
    play = Playbook(TICKING) >> (ALTERNATE + HIDE + BLOCKS)
    for _ in range(4):
        play >> 0.5 >> UNLIT >> 0.5 >> LIT
    play << Raised("unknown", "Save")
    play = Playbook(TICKING) >> (ALTERNATE + HIDE + BLOCKS)
    for turn in "|/-\\" * 3:
        play >> 0.4 >> f"\x1b[9;1H{turn} working"
    play << Nothing()


def test_boxes_above_a_button_are_sent_by_the_button() -> None:
    drawn = ALTERNATE + "Which colours?\n[ ] red\n[ ] green\n[ ] blue\n< OK               >\x1b[2;2H"
    play = Playbook(RAW) >> drawn >> 1.0 << Raised("multiple_choice", "Which colours?")
    steps = steps_of(play, "1,3")
    assert [step.keys for step in steps] == [b" ", b"\x1b[B", b"\x1b[B", b" ", b"\x1b[B", b"\r"]
    assert steps[-2].until == Reach("OK"), "Enter in the list would mark one more"


def test_buttons_below_a_calendar_are_left_to_a_person() -> None:
    days = [f"│ │ {' '.join(f'{day:>2}' for day in range(at, at + 7))} │ │" for at in (1, 8, 15, 22)]
    rows = ["┌──────────────────────────┐", "│ Which day?               │", "│ ┌──────────────────────┐ │"]
    rows += ["│ │ Su Mo Tu We Th Fr Sa │ │", *days, "│ └──────────────────────┘ │"]
    rows += ["│   \x1b[7m<  OK  >\x1b[m   <Cancel>   │", "└──────────────────────────┘"]
    Playbook(RAW) >> ALTERNATE + HIDE + "\n".join(rows) >> 3.0 << Raised("unknown", "Which day?")


def test_a_heading_that_asks_to_choose_makes_a_list_of_what_a_program_reads() -> None:
    drawn = ALTERNATE + HIDE + "Choose your runtime\n* node\n  deno\n  bun"
    play = Playbook(RAW) >> drawn >> 3.0 << Raised("multiple_choice", "Choose your runtime")
    assert [choice.label for choice in play.prompt.choices] == ["node", "deno", "bun"]
