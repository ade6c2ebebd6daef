"""Programs of further families: lists with unusual marks, carets that are drawn, questions above their line."""

from __future__ import annotations

import pytest
from tests.support.playbook import POLLING, RAW, READING, TICKING, Nothing, Playbook, Raised

from atlasbridge.core.detection.events import ProbeAnswer
from atlasbridge.core.prompt.answer import decide_answer, encode_answer
from atlasbridge.core.prompt.model import Answer

ALTERNATE = "\x1b[?1049h\x1b[H"
HIDE = "\x1b[?25l"
GUTTER = "\x1b[38;5;236m▌\x1b[m "
LIT = "\x1b[48;5;236m▌ "


def typed(play: Playbook, value: str, **how: bool) -> bytes:
    answer = decide_answer(play.prompt, value, **how)
    assert isinstance(answer, Answer), answer
    return b"".join(step.keys for step in encode_answer(play.prompt, answer))


CHOICES = [
    # what is drawn, who reads it, what is said, what is typed
    (ALTERNATE + "Please choose a language:\n\n* Java\n  Rust\n  Go" + HIDE, RAW, "Go", b"\x1b[B\x1b[B\r"),
    ("Pick a pet:\n \x1b[7m●cat\x1b[m\n  dog\n  owl\x1b[2A" + HIDE, RAW, "dog", b"\x1b[B\r"),
    ("Pick some:\n◌ \x1b[1mone\x1b[m\n◌ two\n◌ three\r" + HIDE, RAW, "two", b"\x1b[B \r"),
    (ALTERNATE + f"{GUTTER}fig\n{GUTTER}pear\n{LIT}apple\x1b[m\n  3/3 ────\nFruit> ", POLLING, "pear", b"\x1b[A\r"),
    (ALTERNATE + "Choose a planet\n\n\x1b[7m< Mars      >\x1b[m\n< Venus     >\n", RAW, "Venus", b"\x1b[B\r"),
    (ALTERNATE + "Choose a planet\n\n\x1b[44mMars\x1b[m\nVenus\nEarth" + HIDE, TICKING, "Earth", b"\x1b[B\x1b[B\r"),
    ("Where do you go?\n\n\x1b[7m North\x1b[m\n South\n East\r\x1b[2A", TICKING, "South", b"\x1b[B\r"),
    ("Choose:\n\x1b[7mFile\x1b[m  Edit  View\r", TICKING, "View", b"\x1b[C\x1b[C\r"),
    ("Do what?\n\nDeploy  \x1b[42mRoll back\x1b[m  Drop all  Stop\x1b[3;9H", TICKING, "Drop all", b"\x1b[C\r"),
    ("Go where?\n\n\x1b[7mA  B  \x1b[0;42mNorth-West\x1b[0;7m  South\x1b[m\x1b[3;7H", RAW, "South", b"\x1b[C\r"),
    (":: Select a fruit:\n   1 apple\n   2 fig\n   3 pear\n> ", READING, "pear", b"3\r"),
    (ALTERNATE + "Choose (space marks):\n\n* ( ) Java\n  ( ) Rust\n  ( ) Go" + HIDE, RAW, "1,3", b" \x1b[B\x1b[B \r"),
    (ALTERNATE + "Really quit?\n\n  \x1b[7m Quit \x1b[m      Cancel\x1b[H" + HIDE, TICKING, "Quit", b"\r"),
    ("Warning: not aligned.\nIgnore/Cancel? ", RAW, "Ignore", b"Ignore\r"),
    ("Error: cannot read it.\nRetry/Ignore/Cancel? ", RAW, "3", b"Cancel\r"),
    ("? Do what? \x1b[s\n❯ Up\n  Down\x1b[24;1HPress j and k\x1b[u", TICKING, "Down", b"\x1b[B\r"),
    ("[1] t/b\n[2] t/a\n\nSet 1 of 1, preserve files [1 - 2, all, quit]: ", READING, "t/a", b"2\r"),
    ("Type of package: (single, indep)\n[s/i/l/p]?\n", TICKING, "i", b"i\r"),
    ("  1> blue\n  2> red\n  3> green\n\nFavourite colour? : 1", RAW, "red", b"\x7f2\r"),
    ("Pick a lane [slow]:\n [ 0] slow\n [ 1] fast\n > ", RAW, "fast", b"1\r"),
    ("> \x1b[s\n\x1b[7mapple\x1b[m\npear\nfig\x1b[u", RAW, "pear", b"\x1b[B\r"),
    ("What would you like to do?\n  a) Add user\n  q) Quit\n> ", READING, "q", b"q\r"),
    (
        ALTERNATE + "Pick a colour:\n1. red\n2. green\nType number and <Enter> (q or empty cancels): ",
        TICKING,
        "green",
        b"2\r",
    ),
]


@pytest.mark.parametrize(("drawn", "probe", "said", "keys"), CHOICES, ids=[case[2] for case in CHOICES])
def test_a_choice_is_offered_and_taken(drawn: str, probe: ProbeAnswer, said: str, keys: bytes) -> None:
    play = Playbook(probe) >> drawn >> 1.0 << Raised("multiple_choice")
    assert typed(play, said) == keys


LEFT_TO_A_PERSON = {
    "a grid": "Choose a city:\n\n\x1b[7m Paris     \x1b[m Berlin     Lisbon\n Rome       Madrid     Vienna\n\x1b[3;1H",
    "room for marks": "Which ones?\n\x1b[7m olives  \x1b[m\n cheese\n ham\n mushroom\x1b[2;1H" + HIDE,
}


@pytest.mark.parametrize("drawn", LEFT_TO_A_PERSON.values(), ids=LEFT_TO_A_PERSON)
def test_a_menu_whose_keys_cannot_be_seen_takes_no_enter(drawn: str) -> None:
    play = Playbook(RAW) >> drawn >> 1.0 << Raised("unknown")
    assert not play.prompt.choices


def test_words_in_a_row_of_which_a_caret_covers_one_letter_are_no_menu() -> None:
    Playbook(RAW) >> "Name?\n\nhello  \x1b[7mw\x1b[morld  again\x1b[3;8H" >> 1.0 << Raised("free_text")


YES_NO = [
    ("? Ship it? Yes/\x1b[4;36mNo\x1b[m" + HIDE, RAW, b"\x1b[D\r"),
    (":: Deploy now? (y/N)\n> ", READING, b"y\r"),
    (ALTERNATE + "\x1b[24;1HErase everything? (yes or no) ", TICKING, b"yes\r"),
    ("Type yes to continue: ", READING, b"yes\r"),
    ("Do you want to run this program?[N/Yes] (note need to type Yes if you do):", READING, b"Yes\r"),
    ("Please type yes or no: ", READING, b"yes\r"),
    ("هل تريد المتابعة؟ (نعم/لا) ", READING, "نعم\r".encode()),
    ("האם להמשיך? (כן/לא) ", READING, "כן\r".encode()),
]


@pytest.mark.parametrize(("drawn", "probe", "keys"), YES_NO)
def test_yes_is_typed_as_the_program_takes_it(drawn: str, probe: ProbeAnswer, keys: bytes) -> None:
    play = Playbook(probe) >> drawn >> 1.0 << Raised("yes_no")
    assert typed(play, "y") == keys


def test_an_answer_begun_behind_a_marker_is_still_the_same_question() -> None:
    play = Playbook(READING) >> ":: Deploy now? (y/N)\n> " >> 1.0 << Raised("yes_no", "Deploy now?")
    play.reply() >> "y"
    assert not play.detector.has_left(play.prompt.digest)
    play >> "\r\n"
    assert play.detector.has_left(play.prompt.digest)


@pytest.mark.parametrize("default", ["Rome", "bash", "fish", "zsh", "Linux"])
def test_a_word_in_brackets_is_a_default_and_no_row_of_keys(default: str) -> None:
    Playbook(POLLING) >> f"? Which one do you use? ({default}) " >> 1.0 << Raised("free_text", default)


def test_a_field_is_seen_by_the_caret_that_is_drawn() -> None:
    drawn = "Your town?\n> \x1b[7m \x1b[m\n\n(enter to confirm)" + HIDE
    play = Playbook(RAW) >> drawn >> 1.0 << Raised("free_text", "Your town?")
    assert typed(play, "Oslo", as_text=True) == b"Oslo\r"


def test_a_pager_that_names_its_key_in_angles_is_no_line_with_a_default() -> None:
    line = "--Type <RET> for more, q to quit, c to continue without paging--"
    play = Playbook(RAW) >> "Examining data.\n" + line >> 1.0 << Raised("confirm_enter", line)
    assert typed(play, "enter") == b"\r"


def test_a_secret_is_a_secret_at_the_foot_of_a_screen_too() -> None:
    play = (
        Playbook(TICKING) >> ALTERNATE + "text\x1b[24;1HEnter secret: " >> 1.0 << Raised("free_text", "Enter secret:")
    )
    assert play.prompt.secret


def test_a_message_with_a_lit_ok_is_confirmed() -> None:
    rows = ["┌ Info ───────┐", "│ All is done │", "│             │", "│          \x1b[7mOK\x1b[m │", "└─────────────┘"]
    Playbook(RAW) >> ALTERNATE + "\n".join(rows) + HIDE >> 1.0 << Raised("confirm_enter", "All is done")


def test_a_question_that_no_cursor_points_at_takes_no_letters() -> None:
    drawn = ALTERNATE + "Are you sure you want to quit?\n\n   Quit     Cancel\x1b[H" + HIDE
    play = Playbook(RAW) >> drawn >> 1.0
    play << Raised("unknown")


def test_a_list_of_branches_above_a_shell_is_no_menu() -> None:
    Playbook(RAW) >> "$ git branch\n* main\n  dev\n  feature\n$ " >> 1.0 << Raised("free_text")


def test_marks_of_a_program_that_does_not_read_say_nothing() -> None:
    drawn = "│\n●  Some news\n│  and more of it\n◒  Installing" + HIDE
    Playbook(TICKING) >> drawn >> 5.0 << Nothing()


def test_what_explains_the_pointed_choice_is_no_choice() -> None:
    grey = "\x1b[90m    TypeScript, ESLint, and\n   more of them\x1b[m"
    drawn = f"? Use the defaults? › - Use arrow-keys.\n❯   Yes, use them\n{grey}\n    No, reuse\n    No, customize"
    play = Playbook(POLLING) >> drawn + HIDE >> 1.0 << Raised("multiple_choice", "Use the defaults?")
    assert [choice.label for choice in play.prompt.choices] == ["Yes, use them", "No, reuse", "No, customize"]


def test_grey_choices_are_choices() -> None:
    drawn = "? Pick one\n❯ red\n\x1b[90m  green\n  blue\x1b[m"
    play = Playbook(POLLING) >> drawn + HIDE >> 1.0 << Raised("multiple_choice")
    assert [choice.label for choice in play.prompt.choices] == ["red", "green", "blue"]


def test_enter_takes_a_default_in_round_brackets() -> None:
    play = Playbook(POLLING) >> "Is this OK? (yes) " >> 1.0 << Raised("yes_no")
    assert typed(play, "enter") == b"yes\r"


def test_a_field_between_words_and_buttons_that_no_colour_marks_is_typed_into() -> None:
    rows = ["┌─ Name ──────────────┐", "│ Enter a host name:  │", "│                     │", "│   Okay   Cancel     │"]
    drawn = ALTERNATE + "\n".join([*rows, "└─────────────────────┘"]) + "\x1b[3;3H"
    play = Playbook(TICKING) >> drawn >> 1.0 << Raised("free_text", "Enter a host name:")
    assert typed(play, "gnu", as_text=True) == b"gnu\r"


def test_a_request_for_a_name_is_no_yes_or_no() -> None:
    Playbook(READING) >> "May I have your name? " >> 1.0 << Raised("free_text")


@pytest.mark.parametrize("prompt", ["irb(main):002:1* ", "irb(main):002:0' "])
def test_a_command_that_goes_on_is_asked_for_its_next_line(prompt: str) -> None:
    Playbook(TICKING) >> f"irb(main):001:0> def f\n{prompt}" >> 1.0 << Raised("free_text", prompt.strip())


def test_the_number_typed_at_a_select_is_not_its_end() -> None:
    play = Playbook(RAW) >> "1) alpha\n2) beta\n#? " >> 1.0 << Raised("multiple_choice", "#?")
    assert typed(play, "beta") == b"2\r"
    play.reply() >> "2"
    assert not play.detector.has_left(play.prompt.digest)


def test_a_line_that_takes_several_numbers_gets_them_with_one_enter() -> None:
    head = "  1. alpha  2. beta  3. gamma\n\n(Enter the items or ranges you want to select, separated by spaces.)\n\n"
    play = Playbook(RAW) >> f"{head}Which parts do you want? " >> 1.0 << Raised("multiple_choice")
    assert typed(play, "1,3") == b"1 3 \r"
    assert typed(play, "1-2", as_text=True) == b"1-2\r"


def test_a_value_that_was_not_liked_is_asked_for_again() -> None:
    drawn = "│\n▲  Where to?\n│  x█\n└  must be relative\n" + HIDE
    play = Playbook(TICKING) >> drawn >> 1.0 << Raised("free_text", "Where to?")
    assert typed(play, "./zed", as_text=True) == b"\x7f\x7f./zed\r"


def test_keys_that_only_end_a_line_leave_it_a_line() -> None:
    keys = " › Press Esc to exit pattern mode.\n › Press Enter to filter by a regex pattern.\n"
    play = Playbook(POLLING) >> f"Pattern Mode Usage\n{keys}\n pattern › " >> 1.0 << Raised("free_text", "pattern ›")
    assert typed(play, "foo", as_text=True) == b"foo\r"


def test_a_line_that_comes_filled_in_is_emptied_with_the_key_that_every_field_knows() -> None:
    play = Playbook(RAW) >> "[?] Your town: Rome" >> 1.0 << Raised("free_text", "Your town:")
    assert typed(play, "Oslo", as_text=True) == b"\x7f\x7f\x7f\x7fOslo\r"


def test_a_letter_typed_below_its_question_is_not_its_end() -> None:
    play = Playbook(RAW) >> "Delete 'foo'?  (y/n)\n" >> 1.0 << Raised("yes_no", "Delete 'foo'?")
    play.reply() >> "y"
    assert not play.detector.has_left(play.prompt.digest)
    play >> "\r\n"
    assert play.detector.has_left(play.prompt.digest)


def test_a_list_whose_last_row_is_the_last_line_is_offered_whole() -> None:
    play = (
        Playbook(RAW) >> "Choose an env:\n   a. dev\n   b. stage\n   c. prod\n\n " >> 1.0 << Raised("multiple_choice")
    )
    assert [choice.label for choice in play.prompt.choices] == ["dev", "stage", "prod"]
    play.reply() >> "b"
    assert not play.detector.has_left(play.prompt.digest)


@pytest.mark.parametrize("asked", ["Pass: ", "Kennwort: ", "Mot de passe : ", "请输入密码：", "パスワード: "])
def test_a_password_is_secret_in_other_words_too(asked: str) -> None:
    play = Playbook(RAW) >> asked >> 1.0 << Raised("free_text")
    assert play.prompt.secret


def test_the_panels_of_a_file_manager_are_no_keys() -> None:
    rows = ["┌──────────────┬───┐", "│ b            │  0│", "│ c            │  0│", "└──────────────┴───┘"]
    Playbook(RAW) >> ALTERNATE + "\n".join(rows) + "\n$ " >> 1.0 << Raised("unknown")


def test_a_listing_above_a_debugger_is_no_menu() -> None:
    (
        Playbook(POLLING)
        >> "Break on start in a.js:1\n> 1 let x=1; x=2;\n  2 \ndebug> "
        >> 1.0
        << Raised("free_text", "debug>")
    )
