"""Full-screen programs ask in their last rows, in a bar, or in a small box; the cursor may stand anywhere."""

from __future__ import annotations

import pytest
from tests.support.playbook import BUSY, POLLING, RAW, TICKING, Keys, Nothing, Playbook, Raised, Withdrawn

from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
from atlasbridge.core.prompt.answer import decide_answer, encode_answer
from atlasbridge.core.prompt.model import Answer
from atlasbridge.core.values import replace

SCREEN = "\x1b[?1049h\x1b[2J\x1b[H"
HIDE = "\x1b[?25l"
TEXT = "\n".join(["Dear Bob,", "", "the boat is green.", "~", "~"])
FILES = "\n".join(["/home/ada", "  notes.txt", "  photo.png"])
BAR = "\x1b[7m" + "-- notes.txt   12:03:51   line 1 of 3 ".ljust(80, "-") + "\x1b[0m"
BOX = (
    "\x1b[8;20H┌── Question ─────────────┐\x1b[9;20H│{0:<25}│\x1b[10;20H│                         │"
    "\x1b[11;20H│{1:<25}│\x1b[12;20H└─────────────────────────┘"
)


def foot(*rows: str, body: str = TEXT, first: int = 24, after: str = "") -> str:
    """A screen with these rows at its foot, and the cursor behind the last of them unless `after` moves it."""
    drawn = "".join(f"\x1b[{at};1H{row}" for at, row in enumerate(rows, first - len(rows) + 1))
    return f"{SCREEN}{body}{drawn}{after}"


def typed(play: Playbook, value: str) -> bytes:
    answer = decide_answer(play.prompt, value)
    assert isinstance(answer, Answer), answer
    return b"".join(step.keys for step in encode_answer(play.prompt, answer))


ASKED = [
    # what is drawn, the type, part of what is asked, what is said, what is typed
    (foot(BAR, "Buffer notes.txt not saved. Save it? (y/n) "), "yes_no", "Save it?", "n", b"n"),
    (foot(BAR, "Close without saving? (y,n,esc) "), "yes_no", "without saving", "esc", b"\x1b"),
    (foot("Lose changes to this file (y,n,^C)? "), "yes_no", "Lose changes", "^C", b"\x03"),
    (foot(":s", 'Save changes to "n"?', "[Y]es, (N)o, (C)ancel: "), "multiple_choice", "Save changes", "cancel", b"c"),
    (foot("replace with boat (y/n/a/q/l/^E/^Y)?"), "yes_no", "replace with boat", "a", b"a"),
    (foot("Save file? (y, n, !, ., q, C-r, d or C-h) "), "multiple_choice", "Save file?", "C-r", b"\x12"),
    (
        foot("\x1b[7mSave modified buffer?".ljust(84) + "\x1b[0m", " Y Yes", " N No   ^C Cancel", after="\x1b[22;23H"),
        "yes_no",
        "Save modified buffer?",
        "cancel",
        b"\x03",
    ),
    (
        foot(
            "\x1b[7mReplace this instance?".ljust(84) + "\x1b[0m",
            " Y Yes  A All",
            " N No  ^C Cancel",
            after=HIDE + "\x1b[22;23H",
        ),
        "yes_no",
        "Replace this",
        "all",
        b"A",
    ),
    # the cursor stands in the text, or is not shown at all
    (foot(BAR, "Save file /home/ada/n? (y, n, !, ., q)", after="\x1b[1;3H"), "multiple_choice", "Save file", "q", b"q"),
    (foot("Confirm change? [n]", after="\x1b[1;1H"), "yes_no", "Confirm change?", "y", b"y"),
    (foot(BAR, "Do you really want to quit?", "[y/n] ", after=HIDE + "\x1b[5;9H"), "yes_no", "really want", "y", b"y"),
    (foot("'f'ile/'d'ir/'s'ym?", body=FILES, after=HIDE), "multiple_choice", "'d'ir", "dir", b"d"),
    (
        SCREEN
        + FILES
        + HIDE
        + BOX.format(" Really leave? (y/N)", "").replace("│                         │", "│" + " " * 25 + "│"),
        "yes_no",
        "Really leave?",
        "y",
        b"y",
    ),
    (
        SCREEN + FILES + HIDE + BOX.format(' Delete "notes.txt"?', "   Enter [y]es or [n]o"),
        "yes_no",
        "notes.txt",
        "n",
        b"n",
    ),
    # a line to type into
    (foot(BAR, "Find file: /home/ada/"), "free_text", "Find file:", "b.txt", b"\x7f" * 10 + b"b.txt\r"),
    (foot("F3Next  S-F3Prev   EscCancel    Search: "), "free_text", "Search:", "boat", b"boat\r"),
    (
        foot("URL to open: ", " Arrow keys move.", " H)elp Q)uit", after="\x1b[22;14H", body=FILES),
        "free_text",
        "URL",
        "x.y",
        b"x.y\r",
    ),
    (
        foot(BAR, "Enter the new item:", "", after=HIDE + "\x1b[3;3H"),
        "free_text",
        "Enter the new item:",
        "tea",
        b"tea\r",
    ),
    # a letter that is filled in answers a question, wherever the cursor is
    (foot("This document is not saved; are you sure?: n", after="\x1b[1;2H"), "yes_no", "are you sure?", "y", b"y\r"),
    (foot("Overwrite existing file?: n", after="\x1b[24;26H"), "yes_no", "Overwrite", "n", b"n\r"),
    (foot("save to: a.csv", after="\x1b[24;10H"), "free_text", "save to:", "b.csv", b"\x1b[3~" * 5 + b"b.csv\r"),
]


@pytest.mark.parametrize(("drawn", "kind", "part", "said", "keys"), ASKED, ids=[case[2] for case in ASKED])
@pytest.mark.parametrize("probe", [RAW, POLLING], ids=["reads", "polls"])
def test_what_is_asked_at_the_foot_is_read_and_answered(
    drawn: str, kind: str, part: str, said: str, keys: bytes, probe: ProbeAnswer
) -> None:
    play = Playbook(probe) >> drawn >> 2.5 << Raised(kind, part)
    assert typed(play, said) == keys


@pytest.mark.parametrize("case", [ASKED[0], ASKED[10], ASKED[17]], ids=lambda case: case[2])
def test_a_clock_in_another_row_neither_hides_the_question_nor_makes_its_answer_stale(
    case: tuple[str, str, str, str, bytes],
) -> None:
    drawn, kind, part, _, _ = case
    play = Playbook(TICKING) >> drawn
    for second in range(3):
        play = play >> f"\x1b7\x1b[1;60HMessages: {second * 7}  12:04:{second:02d}\x1b8" >> 1.0
    play << Raised(kind, part)
    asked = play.prompt.digest
    for second in range(10, 14):
        play = play >> f"\x1b7\x1b[1;60HMessages: {second * 7}  12:04:{second:02d}\x1b8" >> 1.0
    play << Nothing()
    assert play.detector.open_prompt is not None
    assert play.detector.open_prompt.digest == asked


QUIET = [
    # what a full screen shows at its foot, and does not ask
    foot("\x1b[7mnotes.txt  3 lines  (y/n marks in column 2)  100%\x1b[0m", after="\x1b[1;3H"),
    foot("E37: No write since last change (add ! to override)", after="\x1b[1;3H"),
    foot("^G Help  ^X Exit", after="\x1b[1;3H"),
    foot("Use (d)elete or (c)opy on the lit row", body=FILES, after=HIDE + "\x1b[2;1H"),
]


@pytest.mark.parametrize("drawn", QUIET)
def test_what_is_only_told_at_the_foot_gets_no_guessed_answer(drawn: str) -> None:
    Playbook(RAW) >> drawn >> 3.0 << Raised("unknown")


WINDOW = SCREEN + "00000150  31 31 32 0A\n" * 8 + f"\n{' ' * 30}New position ? 0x\n\n" + "00000250  31 31 32 0A\n" * 8
LIT_FILES = FILES.replace("notes.txt", "\x1b[7mnotes.txt\x1b[m")
OF = {
    name: ProbeAnswer(ProbeState.READING, "reads", echo=False, canonical=False, command=name)
    for name in ("hexedit", "nnn")
}


@pytest.mark.parametrize(
    ("command", "drawn", "part"),
    [
        ("nnn", foot("rm -rf hovered? [Esc cancels]", body=FILES, after=HIDE), "rm -rf hovered?"),
        ("nnn", foot("rm -rf hovered? [Esc cancels]", body=FILES), "rm -rf hovered?"),
        ("nnn", foot("notes.txt", body=LIT_FILES), "notes.txt"),
        ("nnn", foot("src", body="\x1b[7m src/\x1b[m\n notes.txt"), "src"),
        ("nnn", foot("src", body="\x1b[7m>2026-11-19 20:07  755       4K  src/\x1b[m\n notes.txt"), "src"),
        ("hexedit", f"{WINDOW}\x1b[10;48H", "New position ?"),
    ],
)
def test_what_a_viewer_asks_with_keys_that_are_not_told_is_no_viewer_at_rest(
    command: str, drawn: str, part: str
) -> None:
    play = Playbook(OF[command]) >> drawn >> 3.0 << Raised("unknown", part)
    assert not play.prompt.idle and not play.prompt.constraints.get("default")


@pytest.mark.parametrize("probe", [RAW, POLLING], ids=["reads", "polls"])
@pytest.mark.parametrize(
    ("drawn", "kind"),
    [
        (foot("Delete notes.txt? (y/n)", body=LIT_FILES, first=20, after=HIDE), "yes_no"),
        (foot("Delete notes.txt? (y/n) ", body=LIT_FILES), "yes_no"),
        (foot("Rename to: notes.txt", body=LIT_FILES), "free_text"),
        (foot("rm -rf hovered? [Esc cancels]", body=LIT_FILES, after=HIDE), "unknown"),
        (f"{HIDE}Files\n> notes.txt\n  photo.png\n\nDelete notes.txt? (y/n)", "yes_no"),
    ],
)
def test_a_question_below_a_list_is_about_its_lit_row_and_the_list_is_not_asked_for(
    probe: ProbeAnswer, drawn: str, kind: str
) -> None:
    Playbook(probe) >> drawn >> 3.0 << Raised(kind)


def test_a_foot_that_says_which_key_takes_the_lit_row_asks_nothing_itself() -> None:
    drawn = f"{SCREEN}{HIDE}Install mode\n\n \x1b[7mGuided\x1b[m\n Manual\n Rescue\x1b[24;1H12:03:11  press Enter"
    play = Playbook(POLLING) >> drawn >> 3.0 << Raised("multiple_choice", "Install mode")
    assert [choice.label for choice in play.prompt.choices] == ["Guided", "Manual", "Rescue"]


@pytest.mark.parametrize("at", [1, 12])
def test_a_viewer_at_rest_asks_nothing(at: int) -> None:
    play = Playbook(OF["hexedit"]) >> f"{WINDOW}\x1b[{at};1H" >> 3.0 << Raised("unknown")
    assert play.prompt.idle


VIM = replace(TICKING, command="vim", pid=20)
SLEEPS = ProbeAnswer(ProbeState.BUSY, "runs", pid=9, command="sleep")
NOTES = "\x1b[?1049h\x1b[H\n~\n~\n~\n"


@pytest.mark.parametrize(
    ("typed_before_s", "probe", "rests"),
    [
        (None, replace(VIM, called=True), False),  # a program has opened it, and nobody is there
        (5.0, replace(VIM, called=True), False),  # somebody started that program, a while ago
        (0.5, replace(VIM, called=True), True),  # somebody has opened it from a shell
        (None, VIM, True),  # the session is an editor
    ],
)
def test_an_editor_that_a_program_has_opened_waits_for_a_person(
    typed_before_s: float | None, probe: ProbeAnswer, rests: bool
) -> None:
    play = Playbook(SLEEPS) >> "$ " >> 5.0
    if typed_before_s is not None:
        play = play >> Keys("make release\r") >> typed_before_s
    play = play >> probe >> NOTES >> 4.0 << Raised("unknown")
    assert play.prompt.idle is rests


def test_an_editor_in_which_somebody_types_is_no_longer_one_that_waits() -> None:
    play = Playbook(SLEEPS) >> 5.0 >> replace(VIM, called=True) >> NOTES >> 4.0 << Raised("unknown")
    play = play >> Keys("ihello") >> "hello" >> 4.0 << Withdrawn("answered_at_terminal") << Raised("unknown")
    assert play.prompt.idle


def test_what_an_editor_says_in_its_last_row_is_told_first() -> None:
    play = Playbook(RAW) >> foot("E37: No write since last change", body="x" * 300, after="\x1b[1;1H") >> 3.0
    play << Raised("unknown", "E37: No write since last change")


def test_keys_that_are_explained_in_the_last_row_are_not_told_first() -> None:
    play = Playbook(RAW) >> foot("^X Exit    ^R Read File    ^U Paste", body="x" * 300, after="\x1b[1;1H") >> 3.0
    play << Raised("unknown")
    assert play.prompt.excerpt.startswith("xxx")


def test_a_line_at_the_foot_that_counts_by_itself_is_no_question() -> None:
    play = Playbook(BUSY) >> foot("Elapsed: 00:01")
    for second in range(2, 16):
        play = play >> (TICKING if second > 5 else BUSY) >> f"\x1b[24;1HElapsed: 00:{second:02d}" >> 1.0
    play << Nothing()
