"""Families of real programs: what each draws, and the keys that answer it."""

from __future__ import annotations

import pytest
from tests.support.playbook import BUSY, POLLING, RAW, READING, TICKING, Nothing, Playbook, Raised

from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
from atlasbridge.core.prompt.answer import decide_answer, encode_answer
from atlasbridge.core.prompt.keys import When
from atlasbridge.core.prompt.model import Answer, AnswerKind, PromptType, Reject
from atlasbridge.core.recognition.highlight import is_highlighted
from atlasbridge.core.screen.screen import Screen
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

ALTERNATE = "\x1b[?1049h\x1b[H"
HIDE = "\x1b[?25l"
ASLEEP = ProbeAnswer(ProbeState.BUSY, "sleeps", echo=False, canonical=False)


def typed(play: Playbook, value: str, **how: bool) -> bytes:
    answer = decide_answer(play.prompt, value, **how)
    assert isinstance(answer, Answer), answer
    return b"".join(step.keys for step in encode_answer(play.prompt, answer))


CHOICES = [
    # what is drawn, who reads it, what is said, what is typed
    ("n) New remote\ns) Set password\nq) Quit config\nn/s/q> ", READING, "q", b"q\r"),
    ("   (1) RSA and RSA\n   (9) ECC\n  (14) Card\nYour selection? ", READING, "9", b"9\r"),
    ("Select lic\n    1 - MIT\n    2 - BSD\n    Choose from [1/2] (1): ", READING, "BSD", b"2\r"),
    ("(1/1) Stage this hunk [y,n,q,a,d,e,?]? ", READING, "1", b"y\r"),
    ("examine changes to 'f'?\n(enter ? for help) [Ynesfdaq?] ", READING, "n", b"n\r"),
    ("? Conflict on file.js (yaxH) ", RAW, "x", b"x\r"),
    ("Region (eu, us, ap) [eu]: ", READING, "2", b"us\r"),
    ("? (Y)es / (N)o / (A)lways / (S)kip all / (Q)uit? ", READING, "n", b"n\r"),
    ("? Select raw \x1b[s\n  1) aa\n  2) bb\x1b[u", POLLING, "2", b"2\r"),
    ("? What now (Use shortcuts)\n » 1) pizza\n   2) salad", POLLING, "salad", b"2\r"),
    (ALTERNATE + "\x1b[10;1H  cherry\n  banana\n> apple\n  3/3\n> ", POLLING, "3", b"\x1b[A\x1b[A\r"),
    ("◆  Pick key\n│   a  Apple\n│   b  Banana\n└" + HIDE, POLLING, "b", b"b"),
    ("Watch Usage\n › Press f to run only failed tests.\n › Press q to quit watch mode.", POLLING, "q", b"q"),
    ("[O]pen Read-Only, (E)dit anyway, (Q)uit, (A)bort: ", RAW, "3", b"q\r"),
]


@pytest.mark.parametrize(
    ("drawn", "probe", "said", "keys"), CHOICES, ids=[case[0].split("\n")[0][:28] for case in CHOICES]
)
def test_a_choice_is_offered_and_taken(drawn: str, probe: ProbeAnswer, said: str, keys: bytes) -> None:
    play = Playbook(probe) >> drawn >> 1.0 << Raised("multiple_choice")
    assert typed(play, said) == keys


YES_NO = [
    ("Clear<y>? ", RAW, "y", b"y"),
    ("Should man be installed 'setuid man'? [yes/no] no", RAW, "y", b"\x7f\x7fyes\r"),
    ('"f" may be a binary file.  See it anyway? ', RAW, "n", b"n"),
    ("? Want to answer? (y/N) ‣ false" + HIDE, POLLING, "y", b"y\r"),
    ("? Want it? › no / yes" + HIDE, POLLING, "y", b"\x1b[C\r"),
    ("Are you sure? (Type 'yes' in capital letters): ", READING, "y", b"YES\r"),
    ("Type 'yes' to continue, or 'no' to cancel: ", READING, "n", b"no\r"),
    ("Continue with the upgrade (yes/no)? ", READING, "y", b"yes\r"),
]


@pytest.mark.parametrize(("drawn", "probe", "said", "keys"), YES_NO, ids=[case[0][:28] for case in YES_NO])
def test_yes_and_no_are_typed_as_the_program_takes_them(drawn: str, probe: ProbeAnswer, said: str, keys: bytes) -> None:
    play = Playbook(probe) >> drawn >> 1.0 << Raised("yes_no")
    assert typed(play, said) == keys


def test_a_letter_that_a_library_takes_at_once_is_watched_before_enter() -> None:
    play = Playbook(POLLING) >> "? Are you ok? (Y/n) " >> 1.0 << Raised("yes_no")
    assert [step.until for step in play.prompt.choices[0].steps] == [When.MAY_LEAVE, When.AT_ONCE]
    assert not play.detector.has_left(play.prompt.digest)
    play.reply() >> "n"
    assert not play.detector.has_left(play.prompt.digest), "half an answer is still the same question"
    play >> "\r\x1b[K? Are you ok? No\r\n"
    assert play.detector.has_left(play.prompt.digest)


TEXT = [
    ("◆  Project name?\n│  my-app\n└" + HIDE, POLLING, "Project name?", b"\x7f" * 6 + b"zed\r"),
    ("? Your city Rome", POLLING, "Your city", b"\x7f" * 14 + b"zed\r\r"),  # the second if completions took the first
    ("[?] Your phone: ", RAW, "Your phone", b"zed\r"),
    ("rename f -> ", READING, "rename f ->", b"zed\r"),
    ("postgres=# ", RAW, "postgres=#", b"zed\r"),
]


@pytest.mark.parametrize(("drawn", "probe", "part", "keys"), TEXT, ids=[case[2] for case in TEXT])
def test_text_is_typed_into_a_clean_line(drawn: str, probe: ProbeAnswer, part: str, keys: bytes) -> None:
    play = Playbook(probe) >> drawn >> 1.0 << Raised("free_text", part)
    assert typed(play, "zed", as_text=True) == keys


@pytest.mark.parametrize("value", ["", "\x1b[2mmy-app\x1b[22m\x1b[6D"], ids=["empty", "placeholder"])
def test_an_empty_field_gets_no_key_before_the_text(value: str) -> None:
    """`prompts` would insert ^U into its value."""
    play = Playbook(POLLING) >> f"? What is your app named? › {value}" >> 1.0 << Raised("free_text", "app named")
    assert typed(play, "shop", as_text=True) == b"shop\r\r"


def box(lines: list[str], lit: str = "") -> str:
    width = max(map(len, lines)) + 2
    rows = ["┌" + "─" * width + "┐", *("│ " + line.ljust(width - 1) + "│" for line in lines), "└" + "─" * width + "┘"]
    drawn = "\n".join(rows)
    return ALTERNATE + (drawn.replace(lit, f"\x1b[7m{lit}\x1b[27m") if lit else drawn) + HIDE


def test_a_radio_list_is_marked_before_enter() -> None:
    play = Playbook(RAW) >> box(
        ["Pick one mode", "", "(*) Auto", "( ) Manual", "( ) Off", "", "<Ok>  <Cancel>"], "( ) Off"
    )
    play >> 1.0 << Raised("multiple_choice", "Pick one mode")
    assert typed(play, "Manual") == b"\x1b[A \r"


def test_a_check_list_in_a_box_takes_several() -> None:
    play = (
        Playbook(RAW)
        >> box(["Pick", "", "[ ] Apache", "[*] Bind", "[ ] Cron", "", "<Ok>  <Cancel>"], "[ ] Apache")
        >> 1.0
    )
    play << Raised("multiple_choice", "Pick")
    assert typed(play, "1,2") == b" \r"


def test_the_marks_of_a_long_list_are_no_choices() -> None:
    play = (
        Playbook(RAW)
        >> box(["Pick a server", "", "t1 One", "t2 Two", "v(+)   52%", "", "<OK> <Cancel>"], "t1 One")
        >> 1.0
    )
    play << Raised("multiple_choice", "Pick a server")
    assert [choice.label for choice in play.prompt.choices] == ["t1 One", "t2 Two"]


QUIET = [
    ("[nodemon] watching extensions: js\n[nodemon] clean exit - waiting for changes\n", POLLING),
    ("Booting in 6 s, press any key to stop autoboot ", POLLING),
    ("Proceed anyway (or wait 5 seconds to proceed) ? (y,N) ", READING),
    ("Compiling foo", TICKING),
    ("⠧ Continue? (y/n)", BUSY),
    ("  Local: http://localhost:5173/\n  press h + enter to show help\n", POLLING),
    ("Type s + enter at any time to create a snapshot\n", POLLING),
    ("Copied 3 files.\nContinue? [y/N]\n", replace(POLLING, serves=True)),
    (ALTERNATE + HIDE + "  61 be/4 root  press a key to hide", TICKING),
]


@pytest.mark.parametrize(("drawn", "probe"), QUIET, ids=[case[0][:24] for case in QUIET])
def test_nobody_is_awaited(drawn: str, probe: ProbeAnswer) -> None:
    Playbook(probe) >> drawn >> 10.0 << Nothing()


def test_a_reader_that_cannot_be_seen_is_believed_after_a_while() -> None:
    play = Playbook(ASLEEP) >> "[pause]\nPress enter to continue, Ctrl+C to interrupt:\n" >> 1.4 << Nothing()
    play >> 1.0 << Raised("confirm_enter", "Press enter to continue")
    assert play.detector.despite_busy


def test_a_spinner_is_no_reader_that_cannot_be_seen() -> None:
    play = Playbook(ASLEEP)
    for turn in range(60):
        play >> f"\r{'⠋⠙⠹⠸'[turn % 4]} Continue? (y/n)" >> 0.1
    play << Nothing()


def test_a_live_display_is_no_reader_that_cannot_be_seen() -> None:
    watch = ProbeAnswer(ProbeState.BUSY, "sleeps", echo=False, canonical=False, command="watch")
    Playbook(watch) >> ALTERNATE + "Continue? (y/n) " >> 10.0 << Nothing()


@pytest.mark.parametrize("probe", [RAW, TICKING])
def test_a_live_display_asks_in_a_line_at_its_foot_alone(probe: ProbeAnswer) -> None:
    shows = replace(probe, command="htop")
    drawn = ALTERNATE + HIDE + "  PID USER  CPU%\n 4711 root  12.0"
    Playbook(shows) >> drawn >> 20.0 << Nothing()
    play = Playbook(shows) >> drawn + "\x1b[24;1HEscCancel \x1b[7m Search: \x1b[m\x1b[?25h" >> 1.0
    play << Raised("free_text", "Search:")


def test_nobody_is_overlooked_in_a_group_that_does_not_run_at_all() -> None:
    Playbook(replace(ASLEEP, certain=True)) >> "Press any key to continue" >> 10.0 << Nothing()


@pytest.mark.parametrize("question", ["kill-pane 0? (y/n) ", ":"])
def test_a_multiplexer_asks_below_the_terminal_it_runs(question: str) -> None:
    asleep = replace(ASLEEP, certain=True, rows=23)
    drawn = ALTERNATE + "Continue? [y/N] "
    Playbook(asleep) >> drawn >> 10.0 << Nothing()
    play = Playbook(asleep) >> drawn >> "\x1b[24;1H\x1b[43m" + question >> 1.0
    play << Raised("yes_no" if "y/n" in question else "unknown", question.strip())
    assert play.detector.despite_busy


def test_a_multiplexer_asks_in_a_bar_over_the_last_line() -> None:
    asleep = replace(ASLEEP, certain=True, rows=24)
    Playbook(asleep) >> ALTERNATE + "\x1b[24;1HReally kill this window [y/n]" >> 10.0 << Nothing()
    play = Playbook(asleep) >> ALTERNATE + "\x1b[24;1H\x1b[7mReally kill this window [y/n]\x1b[m" >> 1.0
    play << Raised("yes_no", "Really kill this window")


def test_what_is_highlighted_is_seen_by_pointer_colour_or_cursor() -> None:
    pointed = View.from_text("? Pick\n  one\n❯ two\n  three")
    assert is_highlighted(pointed, "two")
    assert not is_highlighted(pointed, "three")
    row = View.from_text("◆  Install?\n│  ● Yes / ○ No\n└")
    assert is_highlighted(row, "Yes")
    assert not is_highlighted(row, "No")


def test_yes_is_not_taken_for_yes_always() -> None:
    menu = View.from_text("? Run it\n  Yes\n❯ Yes, and always\n  No")
    assert not is_highlighted(menu, "Yes")
    assert is_highlighted(menu, "Yes, and always")


ASKED = ("Yes", "No", "Always")


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("  ▶ Make a file: $ touch x\n", ""),  # what was done before, with an arrow in front of it
        ("  ▶ Make a file: $ touch x\n\n  Confirm 1 action(s)?\n\n", ""),
        ("  > do it\n", ""),  # what the person said
        ("  Run it?\n    Yes\n    No\n  > Always\n\n  Run it?\n", ""),  # the same dialog, answered before
        ("  Run it?\n", "\n  ▶ ready\n    set\n"),
        ("  Run it?\n", "\n  ▶ Nothing runs, No, Always\n    Always\n"),
        ("  Run it?\n", "\n  ● No / ○ Yes\n"),
        ("  Run it?\n", "\n  > \n"),
    ],
)
@pytest.mark.parametrize("pointer", ["❯", ">", "▶", "›"])
def test_only_the_list_that_is_answered_tells_what_is_highlighted(above: str, below: str, pointer: str) -> None:
    for current in ASKED:
        rows = "".join(f"  {pointer if label == current else ' '} {label}\n" for label in ASKED)
        view = View.from_text(above + rows + below)
        assert [label for label in ASKED if is_highlighted(view, label, ASKED)] == [current]


def test_a_label_of_two_rows_is_not_highlighted_because_a_shorter_one_is() -> None:
    """Without the arrow, Enter would have taken the shorter one."""
    asked = ("Yes", "Yes, and don't ask again for commands that begin with git", "No")
    rows = "❯ Yes\n  Yes, and don't ask again for\n  commands that begin with git\n  No"
    view = View.from_text(f"Run it?\n{rows}", cols=32, cursor_visible=False)
    assert [label for label in asked if is_highlighted(view, label, asked)] == ["Yes"]


@pytest.mark.parametrize(
    "foot", ["", "  ctrl+f fullscreen  ⇆ select  enter con", "   \x1b[38;5;178menter\x1b[0m confirm"]
)
@pytest.mark.parametrize("labels", [("Allow once", "Allow always", "Reject"), ("Confirm", "Cancel"), ("Yes", "No")])
def test_of_choices_side_by_side_one_is_highlighted_whatever_stands_behind_them(
    labels: tuple[str, ...], foot: str
) -> None:
    """Every one of them was once taken for the highlighted one: a lost arrow key, and a refusal allowed it."""
    for current in labels:
        screen = Screen(24, 80)
        lit, plain = "\x1b[38;5;232m\x1b[48;5;178m", "\x1b[38;5;247m\x1b[48;5;234m"
        row = "".join(f"{lit if label == current else plain} {label} \x1b[38;5;15m\x1b[48;5;234m " for label in labels)
        above = f"\x1b[48;5;234m  ┃  {labels[-1]} and {labels[0]} were asked before\r\n\r\n"
        screen.feed(f"{above}\x1b[48;5;234m  ┃  {row}{foot}\x1b[0m".encode())
        view = View.of(screen)
        assert [label for label in labels if is_highlighted(view, label, labels)] == [current]


def test_a_word_that_begins_alike_elsewhere_is_not_the_choice() -> None:
    """An arrow key was lost: Enter would have agreed."""
    view = View.from_text("Run it?\n   Yes\n   No\n\n▶ Nothing runs\n  for now\n")
    assert not is_highlighted(view, "No", ("Yes", "No"))


def test_half_an_answer_behind_a_drawn_question_is_neither_the_end_nor_untouched() -> None:
    play = Playbook(POLLING) >> "? Continue? (Y/n) " >> 1.0 << Raised("yes_no")
    play.reply() >> "n" >> 0.5
    play << Nothing()
    assert not play.detector.has_left(play.prompt.digest)
    assert not play.detector.still_shows(play.prompt.digest)


def test_words_are_not_typed_into_a_dialog_of_an_ai_cli_that_nobody_knows() -> None:
    play = (
        Playbook(RAW, "gemini") >> "Where shall it go?\n\n   somewhere new\n   where it was\n\nchosen so far: " >> 1.0
    )
    prompt = play.detector.open_prompt
    assert prompt is not None
    assert prompt.type is PromptType.TYPE_UNKNOWN
    assert isinstance(decide_answer(prompt, "2"), Reject)


def test_the_enter_of_a_drawn_secret_waits_until_it_is_drawn() -> None:
    """A program that stores the text after its next drawing would get an empty secret."""
    play = Playbook(RAW) >> "Password: " >> 1.0 << Raised("free_text", "Password:")
    steps = encode_answer(play.prompt, Answer(AnswerKind.TEXT, "hunter2"))
    assert play.prompt.secret
    assert [step.until for step in steps] == [When.REDRAWN, When.AT_ONCE]


def test_a_list_above_a_field_is_chosen_with_the_arrows() -> None:
    """Fuzzy finders: Enter takes the highlighted row, whatever words are typed."""
    rows = "  oldest\n  middle\n\x1b[36m▌ newest\x1b[0m\n\n"
    play = Playbook(RAW) >> f"{rows}Which checkpoint? " >> 1.0 << Raised("multiple_choice", "Which checkpoint?")
    assert typed(play, "oldest") == b"\x1b[A\x1b[A\r"
    assert isinstance(decide_answer(play.prompt, "eldest"), Reject)


def test_finished_steps_above_a_field_are_no_list() -> None:
    play = Playbook(RAW) >> "✔ build\n  test\n  lint\n\nRelease name: " >> 1.0 << Raised("free_text", "Release name:")
    assert typed(play, "one") == b"one\r"


def test_words_are_refused_where_a_choice_is_lit_and_nothing_is_known() -> None:
    play = Playbook(RAW) >> " alpha  beta \x1b[7m gamma \x1b[27m" >> 12.0 << Raised("unknown")
    assert isinstance(decide_answer(play.prompt, "alpha"), Reject)


def test_letters_in_braces_behind_a_word_are_no_choices() -> None:
    asked = "Last sector, +/-sectors or +/-size{K,M,G,T,P} (2048-131071, default 131071): "
    play = Playbook(READING) >> asked >> 0.2 << Raised("free_text")
    assert typed(play, "+10M") == b"+10M\r"


def test_a_value_alone_in_its_row_is_erased() -> None:
    play = Playbook(RAW) >> "Install where?\n/usr/local" >> 1.0 << Raised("unknown", "/usr/local")
    assert typed(play, "/opt") == b"\x7f" * len("/usr/local") + b"/opt\r"


@pytest.mark.parametrize("foot", ["Master password: █", "Enter the 6-digit code from your authenticator\r\n_ _ _ _"])
def test_a_field_for_a_secret_is_one_even_if_its_keys_are_unknown(foot: str) -> None:
    play = Playbook(RAW) >> f"{ALTERNATE}{HIDE}\x1b[5;5H{foot}".encode() >> 12.0 << Raised("unknown")
    assert play.prompt.secret


def test_a_unique_letter_chooses_from_a_counted_list() -> None:
    drawn = "  1: status  2: update  3: revert  4: quit\nWhat now> "
    play = Playbook(READING) >> drawn >> 0.2 << Raised("multiple_choice")
    assert typed(play, "q") == b"4\r"
    play = Playbook(READING) >> "  1: status  2: stage\nWhat now> " >> 0.2 << Raised("multiple_choice")
    assert isinstance(decide_answer(play.prompt, "s"), Reject)


def test_yes_and_no_mean_labels_that_say_so_in_other_words() -> None:
    play = Playbook(POLLING) >> f"? Want it? › Nope / Yep{HIDE}" >> 1.0 << Raised("multiple_choice")
    assert typed(play, "y") == b"\x1b[C\r"


def test_signs_in_the_field_of_a_box_are_no_list() -> None:
    """whiptail's box for a password once something is typed into it."""
    drawn = box(["Vault password", "", "*****____", "", "<Ok>  <Cancel>"], "*****____").replace(HIDE, "")
    play = Playbook(RAW) >> f"{drawn}\x1b[4;8H" >> 1.0 << Raised("free_text", "Vault password")
    assert play.prompt.secret and not play.prompt.choices
