"""AI CLIs that no dialect knows: a spinner turns beside a dialog, an input box ends what was said, refusals have many
names."""

from __future__ import annotations

import re

import pytest
from tests.support.playbook import BLIND, POLLING, TICKING, Nothing, Playbook, Raised

from atlasbridge.core.detection.events import ProbeAnswer, ProbeState, RaisePrompt
from atlasbridge.core.prompt.answer import decide_answer, encode_answer
from atlasbridge.core.prompt.keys import Shows
from atlasbridge.core.prompt.model import Answer

HIDE = "\x1b[?25l"
BAR = "─" * 80
EDGE = "─" * 78
SAID = "The installer prints:\n\n  Do you want to continue? [Y/n]\n  1. Yes\n  2. No\n\nThat is all.\n\n"
FRAMED = f"╭{EDGE}╮\n│ > {' ' * 75}│\n╰{EDGE}╯\n  model  ~/work"
RULED = f"{BAR}\n❯ \n{BAR}\n  model  ~/work"
LISTED = (
    "  Allow execution of: 'touch'?\n\n"
    "  › 1. Yes, allow once\n    2. Always allow\n    3. No, suggest changes (esc)\n\n\n"
)
ROWS = (
    "  Would you like to continue?",
    "",
    "  > Continue (tab)",
    "    Do not ask again (shift+tab)",
    "    No (esc)",
    "",
)
BOXED = "\n".join([f"╭{EDGE}╮", *(f"│{row:<78}│" for row in ROWS), f"╰{EDGE}╯", "  ~/work"])


@pytest.mark.parametrize("dialog", [LISTED + "  ⠏ Waiting for user confirmation...", BOXED])
def test_a_spinner_beside_a_dialog_does_not_hide_it(dialog: str) -> None:
    play = Playbook(TICKING) >> HIDE + "\n" + dialog
    for mark in "⠋⠙⠹⠸⠼":
        play = play >> 0.1 >> f"\x1b7\x1b[H{mark}\x1b8"
    assert play << Raised("multiple_choice")


def test_a_spinner_does_not_hide_a_dialog_whose_keys_are_looked_for_between_sleeps() -> None:
    rows = (" Shell wants to run a command:", "", " touch made.txt", "", " → [1] Approve once", "   [2] Reject", "")
    listed = "\n".join(
        [f"╭─ approval {EDGE[11:]}╮", *(f"│{row:<78}│" for row in (*rows, "   ▲/▼ select  1/2 choose  ↵ confirm"))]
    )
    dialog = f"\n• Using Shell\n{listed}\n╰{EDGE}╯\n{BAR}\nagent (model)  ~/work\n  context: 0 %"
    play = Playbook(ProbeAnswer(ProbeState.BUSY, "runs", echo=False, canonical=False)) >> HIDE + dialog
    for mark in "⠋⠙⠹⠸⠼⠴⠦⠧" * 4:
        play = play >> 0.1 >> f"\x1b7\x1b[2;1H{mark}\x1b8"
    assert play << Raised("multiple_choice", "touch made.txt")
    assert [choice.refuses for choice in play.prompt.choices] == [False, True]


def test_a_refusal_whose_field_wants_a_reason_is_typed_as_the_key_that_refuses() -> None:
    listed = (
        "Run this command?\n\n  $ touch made.txt\n\n❯ 1. Yes\n  2. No, and tell the agent what to do differently\n\n"
    )
    play = Playbook(TICKING) >> f"{HIDE}{BAR}\n{listed}Enter to select · Esc to cancel\n" >> 3.0
    assert play << Raised("multiple_choice", "touch made.txt")
    assert [[step.keys for step in choice.steps] for choice in play.prompt.choices] == [[b"\r"], [b"\x1b"]]


def test_a_question_what_to_do_is_shown_with_the_box_above_it() -> None:
    asks = boxed("Requesting permission to run:", "$ rm -rf build") + "\r\n\r\nWhat would you like to do?\r\n\r\n"
    listed = "> ✓ Approve\r\n  ✗ Reject\r\n\r\n↑/↓ move · enter select · esc cancel\r\n"
    play = Playbook(TICKING) >> HIDE + asks + listed >> 3.0 << Raised("multiple_choice", "rm -rf build")
    assert play.prompt.excerpt.endswith("What would you like to do?")


@pytest.mark.parametrize("gap", ["\n", "\n\n"])
def test_a_question_that_points_at_what_is_above_it_is_shown_with_that(gap: str) -> None:
    said = "● I will remove the old build.\n\n⚒ execute_bash\nCommand:\nrm -rf build\n"
    listed = "Do you want to execute this tool?\n\n> ✓ Yes, execute it\n  ✗ No, cancel\n\nPress Escape to cancel\n"
    play = Playbook(TICKING) >> HIDE + said + gap + listed >> 3.0 << Raised("multiple_choice", "rm -rf build")
    assert play.prompt.excerpt.endswith("Do you want to execute this tool?")
    assert "old build" not in play.prompt.excerpt


ALLOWS = (">>> execute requires approval <<<", " touch made.txt", "", "  › 1. Approve (y)", "    2. Reject (n)")


def test_a_framed_dialog_above_an_input_box_asks_although_status_rows_are_between() -> None:
    dialog = boxed(*ALLOWS, "↑/↓ navigate • Enter select • y/n quick keys • Esc reject")
    between = "\r\n\r\n ⏸ Awaiting decision...  (paused at 9s)\r\n\r\n"
    shown = f"{HIDE}{dialog}{between}{boxed('>')}\r\n manual  ~/work\r\n  Context: 0%"
    play = Playbook(TICKING) >> shown >> 3.0 << Raised("multiple_choice", "touch made.txt")
    assert [choice.label for choice in play.prompt.choices if choice.refuses] == ["Reject (n)"]


def test_an_input_box_behind_a_dialog_takes_no_instruction() -> None:
    rows = boxed(">").split("\r\n")
    over = "\r\n".join(f"{row[:30]}│{'':<18}│{row[50:]}" for row in rows)
    head = f"{'':<30}╭{'─' * 18}╮\r\n{'':<30}│{' Choose a model':<18}│\r\n"
    shown = f"{HIDE}{head}{over}\r\n manual{'':<23}╰{'─' * 18}╯"
    play = Playbook(TICKING) >> shown >> 12.0 << Raised("unknown")
    assert "idle" not in play.prompt.constraints


def test_marks_in_panels_beside_each_other_are_states_and_no_list() -> None:
    foot = (
        f" ╭{'─' * 30} agent ─╮ ╭── agents ──── servers ───╮\n"
        f" │ > Type your message...{'':<15}│ │ ○ creator   ● local       │\n"
        f" │{'':<38}│ │ ○ memorizer ○ unnamed     │\n"
        f" ╰{'─' * 38}╯ ╰{'─' * 27}╯\n  enter to submit"
    )
    play = Playbook(TICKING) >> f"{HIDE} Models  gpt-4o\n\n{foot}" >> 12.0 << Raised("unknown")
    assert not play.prompt.choices


@pytest.mark.parametrize("box", [FRAMED, RULED])
def test_what_stands_above_an_input_box_was_said_and_asks_nothing(box: str) -> None:
    play = Playbook(TICKING) >> HIDE + SAID + box >> 3.0 << Raised("free_text")
    assert play.prompt.constraints.get("idle") is True
    assert "default" not in play.prompt.constraints
    assert "That is all." in play.prompt.excerpt


def boxed(*rows: str) -> str:
    return "\r\n".join([f"╭{EDGE}╮", *(f"│ {row:<77}│" for row in rows), f"╰{EDGE}╯"])


@pytest.mark.parametrize("mark", [">", "❯", "›", "»", "●", "*", "▌"])
@pytest.mark.parametrize(
    ("buttons", "kind"),
    [("<Yes>     <No>", "yes_no"), ("[ Yes ]  [ No ]", "yes_no"), ("< Keep > < Drop >", "multiple_choice"),
     ("<Ok>", "confirm_enter")],
)  # fmt: skip
def test_a_dialog_as_wide_as_the_screen_is_no_input_box_whatever_its_text_begins_with(
    mark: str, buttons: str, kind: str
) -> None:
    play = Playbook(TICKING) >> HIDE + boxed(f"{mark} rm -rf /srv", "", f"   {buttons}") >> 3.0 << Raised(kind)
    assert f"{mark} rm -rf /srv" in play.prompt.asked


@pytest.mark.parametrize("draft", ["  <ul><li>", "  <div>", "  put <b> and <i> here", "  [ draft ]"])
def test_brackets_in_what_is_being_typed_make_no_dialog_of_an_input_box(draft: str) -> None:
    play = Playbook(TICKING) >> HIDE + SAID.replace("\n", "\r\n") + boxed("* mend this:", draft) >> 3.0
    assert play << Raised("free_text")
    assert play.prompt.constraints.get("idle") is True


def test_an_input_box_while_something_moves_says_nothing() -> None:
    play = Playbook(TICKING) >> HIDE + SAID + FRAMED
    for mark in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏":
        play = play >> 0.1 >> f"\x1b7\x1b[H{mark} {ord(mark)} tokens\x1b8"
    assert play << Nothing()


def test_a_list_with_a_pointer_right_above_an_input_box_is_for_a_person_to_look_at() -> None:
    play = Playbook(TICKING) >> HIDE + "Run it?\n❯ Yes\n  No\n" + FRAMED >> 15.0 << Raised("unknown")
    assert not play.prompt.choices


def test_numbers_in_square_brackets_number_a_list() -> None:
    drawn = HIDE + "Ready to submit?\n\n  → [1] Submit\n    [2] Cancel\n\n  ↑↓ select  ↵ confirm  esc cancel"
    play = Playbook(TICKING) >> drawn >> 1.0 << Raised("multiple_choice")
    assert [choice.label for choice in play.prompt.choices] == ["Submit", "Cancel"]


@pytest.mark.parametrize("no", ["Reject", "Deny", "Disallow", "Cancel"])
def test_no_refuses_whatever_the_refusal_is_called(no: str) -> None:
    drawn = HIDE + f"Run this command?\n\n  ❯ 1. Approve once\n    2. Approve always\n    3. {no}\n"
    play = Playbook(TICKING) >> drawn >> 1.0 << Raised("multiple_choice")
    answer = decide_answer(play.prompt, "n")
    assert isinstance(answer, Answer) and answer.value == "3"


def test_each_arrow_is_seen_to_have_moved_the_pointer() -> None:
    """Two arrows at once are one unknown key for some, and a spinner changes the screen, too."""
    play = Playbook(TICKING) >> HIDE + "Pick one:\n❯ red\n  green\n  blue\n" >> 1.0 << Raised("multiple_choice")
    answer = decide_answer(play.prompt, "blue")
    assert isinstance(answer, Answer)
    assert [step.until for step in encode_answer(play.prompt, answer)][:2] == [Shows("green"), Shows("blue")]


def test_a_choice_of_two_rows_may_stand_out_of_line() -> None:
    rows = (
        "❯ 1. Yes",
        " 2. Yes, and approve all of them for the rest of",
        " the running session",
        "  3. No (Esc to stop)",
    )
    drawn = HIDE + "Do you want to allow this?\n\n" + "\n".join(rows) + "\n\n↑/↓ to navigate · enter to select"
    play = Playbook(TICKING) >> drawn >> 1.0 << Raised("multiple_choice")
    assert [choice.value for choice in play.prompt.choices] == ["1", "2", "3"]
    second = play.prompt.choices[1]
    assert (second.label, second.detail) == ("Yes, and approve all of them for the rest of", "the running session")
    assert second.always


LIT_ROWS = ("Yes", "Yes, and don't ask again this session", "No", "No, with feedback")


def counted(lit: int, hint: str = "↑↓ navigate • Enter select • Esc cancel", framed: bool = False) -> str:
    """A list whose highlight is a colour, as Grok and Vibe draw theirs."""
    rows = [
        f"  \x1b[{44 if at == lit else 49}m{at + 1}. {label}\x1b[0m{' ' * (70 - len(label))}"
        for at, label in enumerate(LIT_ROWS)
    ]
    rows = ["Permission for the bash tool", "touch made.txt", "", *rows, "", hint]
    if framed:
        rows = [f"┌{EDGE}┐", *(f"│ {row}\x1b[80G│" for row in rows), f"└{EDGE}┘", "~/work        0/200k tokens"]
    return "\r\n".join(rows)


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("lit", [0, 2])
def test_a_counted_list_that_arrows_choose_is_walked_by_arrows_and_never_typed_into(lit: int, framed: bool) -> None:
    """A digit may do nothing there, and the Enter behind it would take the highlighted Yes."""
    play = Playbook(TICKING) >> HIDE + counted(lit, framed=framed) >> 3.0 << Raised("multiple_choice")
    assert [choice.label for choice in play.prompt.choices] == list(LIT_ROWS)
    assert [choice.refuses for choice in play.prompt.choices] == [False, False, True, True]
    answer = decide_answer(play.prompt, "n")
    assert isinstance(answer, Answer)
    steps = encode_answer(play.prompt, answer)
    assert b"".join(step.keys for step in steps).strip(b"\r") == b"\x1b[B" * (2 - lit)
    assert lit == 2 or isinstance(steps[-2].until, Shows)


def test_a_counted_list_without_a_highlight_that_can_be_seen_is_for_a_person_to_look_at() -> None:
    play = Playbook(TICKING) >> HIDE + counted(-1) >> 5.0 << Raised("unknown")
    assert not play.prompt.choices


def test_what_turns_above_a_box_is_no_part_of_the_question_in_it() -> None:
    play = Playbook(TICKING) >> HIDE + "I will use bash.\r\n\r\nRunning command (1s)\r\n" + counted(0, framed=True)
    for second in range(2, 9):
        play = play >> 0.4 >> f"\x1b7\x1b[3;1HRunning command ({second}s)\x1b8"
    play = play << Raised("multiple_choice")
    assert play.prompt.question == "Permission for the bash tool\ntouch made.txt"


def test_a_refusal_in_a_colour_of_its_own_does_not_hide_the_highlight() -> None:
    lit = counted(0, framed=True).replace("\x1b[49m3.", "\x1b[31m3.")
    play = Playbook(TICKING) >> HIDE + lit >> 3.0 << Raised("multiple_choice")
    assert [choice.default for choice in play.prompt.choices] == [True, False, False, False]


COUNTED = [
    "│ Allow execution of [Shell]?" + " " * 50 + "│",
    "│" + " " * 78 + "│",
    "│ ● 1. Allow once" + " " * 62 + "│",
    "│   2. Allow for this session" + " " * 50 + "│",
    "│   3. No, suggest changes (esc)" + " " * 47 + "│",
]


def test_a_bullet_before_a_counted_row_in_a_frame_points() -> None:
    play = Playbook(POLLING) >> HIDE + "\n".join([f"╭{EDGE}╮", *COUNTED, f"╰{EDGE}╯", "", ""]) >> 1.0
    assert play << Raised("multiple_choice")
    assert [choice.refuses for choice in play.prompt.choices] == [False, False, True]
    assert [choice.always for choice in play.prompt.choices] == [False, True, False]


def test_a_bullet_before_a_counted_row_without_a_frame_is_talk() -> None:
    talk = "● 1. Install the package\n  2. Run the tests\n  3. Stop\n\n" + FRAMED
    play = Playbook(POLLING) >> HIDE + talk >> 1.0 << Raised("free_text")
    assert play.prompt.idle


def test_what_is_asked_in_words_below_a_pointed_count_is_a_list_whatever_else_stands_at_the_foot() -> None:
    dialog = "Would you like to proceed?\n\n❯ 1. Yes\n  2. No\n     tab to say more\n\n ctrl+g to edit the plan"
    play = Playbook(POLLING) >> HIDE + dialog >> 1.0
    assert play << Raised("multiple_choice")
    assert [choice.label for choice in play.prompt.choices] == ["Yes", "No"]


def test_a_line_that_asks_for_the_number_takes_the_number() -> None:
    dialog = "Do you want to proceed?\n1. Yes\n2. No\nSelect with numbers [1-2]. Then Enter to submit: "
    play = Playbook(POLLING) >> dialog >> 1.0 << Raised("multiple_choice")
    answer = decide_answer(play.prompt, "2")
    assert isinstance(answer, Answer)
    assert b"".join(step.keys for step in encode_answer(play.prompt, answer)) == b"2\r"


def test_words_side_by_side_of_which_one_is_lit_decide() -> None:
    row = "   \x1b[48;5;214mAllow once\x1b[m   Allow always   Reject              ctrl+f fullscreen  enter confirm"
    play = Playbook(POLLING) >> f"\x1b[?1049h{HIDE}Permission required\n$ touch x\n\n{row}" >> 1.0
    assert play << Raised("multiple_choice")
    assert [choice.label for choice in play.prompt.choices] == ["Allow once", "Allow always", "Reject"]


def test_tabs_of_a_full_screen_are_no_decision() -> None:
    row = "   \x1b[48;5;214mCurrent\x1b[m   Sessions   Issues   Pull requests"
    play = Playbook(POLLING) >> f"\x1b[?1049h{HIDE}{row}\n\nwelcome" >> 15.0 << Raised("unknown")
    assert not play.prompt.choices


PLACE = "\x1b[2mAsk me to do anything\x1b[m"


@pytest.mark.parametrize("mark", ["› ", "> ", "┃  "])
def test_a_field_with_a_faded_hint_above_a_status_line_is_the_input_box(mark: str) -> None:
    drawn = f"{SAID}\n{mark}\x1b7{PLACE}\n\n  model · ~/work\x1b8"
    play = Playbook(POLLING) >> drawn >> 1.0 << Raised("free_text")
    assert play.prompt.idle


@pytest.mark.parametrize(
    "beside", ["✽ Tempering…\n", "⠴ Thinking... (esc to cancel, 2s)\n", "🌖 · Tip: ask it anything\n"]
)
def test_a_wheel_above_the_input_box_is_work(beside: str) -> None:
    assert Playbook(POLLING) >> HIDE + SAID + beside + FRAMED >> 5.0 << Nothing()


@pytest.mark.parametrize(
    "below", ["  ⏸ manual mode on · esc to interrupt · ? for help", "  ◉ Working esc esc edit prompt"]
)
def test_who_can_be_interrupted_works(below: str) -> None:
    assert Playbook(POLLING) >> HIDE + f"{SAID}{BAR}\n❯ \n{BAR}\n{below}" >> 5.0 << Nothing()


VIBE = "\r\n".join(
    [
        f"┌{EDGE}┐",
        f"│ {'Permission for the file_system.bash tool (touch *)':<77}│",
        f"│ {'touch made.txt':<77}│",
        f"│{'':78}│",
        f"│ \x1b[44m{'  1. Allow once':<77}\x1b[0m│",
        f"│ {'  2. Always allow':<77}│",
        f"│ {'  3. Deny':<77}│",
        f"│{'':78}│",
        f"│ {'↑↓/jk navigate  Enter select  Esc reject':<77}│",
        f"└{EDGE}┘",
    ]
)


def test_a_dialog_that_ignores_the_first_keys_is_raised_when_it_hears_them() -> None:
    """A rule answers at once: keys that the tool throws away would be an answer that never arrived."""
    play = Playbook(TICKING, dialect="vibe") >> HIDE + VIBE >> 0.5 << Nothing()
    play = play >> 0.5 << Raised("multiple_choice")
    assert [choice.refuses for choice in play.prompt.choices] == [False, False, True]


def test_a_bare_mark_below_a_bar_across_the_screen_is_an_input_box() -> None:
    said = "Repo-map: disabled\n1. Yes\n2. No\n" + "─" * 80 + "\n> "
    play = Playbook(POLLING) >> said >> 1.0 << Raised("free_text", "Repo-map")
    assert play.prompt.idle and not play.prompt.choices
    typed = Playbook(POLLING) >> said.replace("> ", "Your name> ") >> 1.0 << Raised("free_text")
    assert not typed.prompt.idle


STATUS = (
    " lab-model (10) $0.00                                        ○ Plan ● Act (Tab)\n work\n Auto-approve disabled"
)


def test_a_mode_that_is_shown_in_a_status_row_is_no_choice() -> None:
    """Anyone who is asked whether to plan or to act would press Enter in the dialog above."""
    dialog = "\n Approve tool call?\n\n editor\n   /tmp/seed.txt\n\n  [y] Approve   [n] Deny\n\n"
    play = Playbook(TICKING) >> HIDE + dialog + STATUS >> 12.0
    raised = [command.prompt for _, command in play.heard if isinstance(command, RaisePrompt)]
    assert not any("Plan" in choice.label for prompt in raised for choice in prompt.choices)
    assert Playbook(TICKING) >> HIDE + f"{BAR}\n❯ Ask anything...\n{BAR}\n{STATUS}" >> 3.0 << Raised("free_text")


@pytest.mark.parametrize("row", ["● Yes / ○ No", "│  ○ Yes / ● No", "Go on? ● Yes  ○ No", "Mode: ○ Plan ● Act"])
def test_choices_with_marks_in_a_row_of_their_own_or_behind_their_question_are_a_menu(row: str) -> None:
    play = Playbook(TICKING) >> HIDE + f"◆  Shall it go on?\n{row}\n" >> 3.0
    (raised,) = [command.prompt for _, command in play.heard if isinstance(command, RaisePrompt)]
    assert len(raised.choices) == 2


@pytest.mark.parametrize(
    "keys", ["[y] Approve   [n] Deny", "(a) Allow  (d) Don't allow", "│ <y> Yes   <s> Skip   <esc> Cancel  │"]
)
@pytest.mark.parametrize("below", ["", STATUS])
def test_keys_in_one_row_below_a_question_are_choices_of_one_key_each(keys: str, below: str) -> None:
    play = Playbook(POLLING) >> HIDE + f"\n Run this command?\n\n   touch it\n\n {keys}\n\n{below}" >> 3.0
    play = play << Raised("multiple_choice", "Run this command?")
    pressed = [step.keys for choice in play.prompt.choices for step in choice.steps]
    assert pressed == [one.encode().replace(b"esc", b"\x1b") for one in re.findall(r"[\[(<](\w+)[\])>]", keys)]
    assert play.prompt.choices[0].refuses is False
    assert play.prompt.choices[-1].refuses is True


def test_keys_that_a_display_explains_in_its_last_row_ask_nothing() -> None:
    play = (
        Playbook(TICKING) >> HIDE + "\x1b[?1049h\n  load 0.20\n  tasks 81\n\n [q] Quit   [r] Refresh   [h] Help" >> 3.0
    )
    raised = [command.prompt for _, command in play.heard if isinstance(command, RaisePrompt)]
    assert not any(prompt.choices for prompt in raised)


def test_an_arrow_in_what_was_said_does_not_hide_the_list_below_it() -> None:
    said = "I will use shell.\n  ────────────\n  ▸ shell\n    command: touch it\n\n\n  Tool approval request\n\n"
    asked = "◆  Goose would like to call the above tool, do you allow?\n│  ● Allow (Allow the tool call once)\n"
    play = Playbook(POLLING) >> said + asked + "│  ○ Always Allow\n│  ○ Deny\n│  ○ Cancel\n└\n" >> 3.0
    play = play << Raised("multiple_choice", "do you allow?")
    assert [choice.label for choice in play.prompt.choices][1:] == ["Always Allow", "Deny", "Cancel"]
    assert [choice.refuses for choice in play.prompt.choices] == [False, False, True, True]


@pytest.mark.parametrize(("above", "asks"), [("Which database should it use?", True), ("These were found:", False)])
def test_a_list_above_some_rows_of_status_asks_where_a_question_stands_right_above_it(above: str, asks: bool) -> None:
    rows = f"\n Agent is asking\n\n {above}\n\n  > PostgreSQL\n    SQLite\n    Redis\n\n\n{STATUS}"
    play = Playbook(POLLING) >> "\x1b[?1049h" + HIDE + rows >> 3.0
    raised = [command.prompt for _, command in play.heard if isinstance(command, RaisePrompt)]
    assert any(prompt.choices for prompt in raised) is asks


STRANGE_LISTS = {
    "a dull mark before the others": ("Run rm -rf build?\n\n  ❭ 1 Yes\n  · 2 No\n", ["Yes", "No"]),
    "letters": ("It wants to run 3 tools.\n\n❯ (a) Approve all\n  (b) Ask each time\n  (c) Reject\n",
                ["Approve all", "Ask each time", "Reject"]),
    "a tick and a cross": ("Run this command?\n\n  > ✓ Yes\n    ✗ No\n", ["Yes", "No"]),
    "blank rows": ("Run this command?\n\n  ❯ Yes\n\n    No, stop\n\n  ↑↓ to move\n", ["Yes", "No, stop"]),
    "a smaller box": (
        "╭──────────────────╮\n│ Allow this tool? │\n│ ╭──────────╮     │\n│ │ rm -rf x │     │\n│ ╰──────────╯     │\n"
        "│ > ✔ Allow        │\n│   ✖ Deny         │\n╰──────────────────╯\n", ["Allow", "Deny"]),
    "a bullet that is lit": ("Deploy?\n\n\x1b[36m● Yes, deploy\x1b[m\n  No, wait\n", ["Yes, deploy", "No, wait"]),
}  # fmt: skip


@pytest.mark.parametrize("name", STRANGE_LISTS)
def test_a_list_is_known_by_its_shape_whatever_marks_it_has(name: str) -> None:
    drawn, labels = STRANGE_LISTS[name]
    kind = "yes_no" if labels == ["Yes", "No"] else "multiple_choice"
    play = Playbook(POLLING) >> HIDE + drawn >> 1.0 << Raised(kind)
    assert [choice.label for choice in play.prompt.choices] == labels
    assert [choice.refuses for choice in play.prompt.choices][-1] is True


@pytest.mark.parametrize(
    "rows", ["❯ Red\n  Green\n  Blue\n", "\x1b[7mRed\x1b[m\nGreen\nBlue\n", ">   Red\n    Green\n    Blue\n"]
)
@pytest.mark.parametrize(
    ("asked", "several"),
    [("Which colours do you want?", True), ("Select the colours to use", True), ("What features should it have?", True),
     ("Pick one or more tools:", True), ("Which colour? (space to toggle)", True), ("Which of these files?", True),
     ("Which colour do you want?", False), ("Choose a colour from these sets?", False), ("Which class is it?", False),
     ("Which plan suits you?", False), ("What does it do to your files?", False), ("Which status has it?", False)],
)  # fmt: skip
def test_a_list_from_which_several_may_be_taken_gets_no_enter_for_one(asked: str, several: bool, rows: str) -> None:
    """Ink's lists of several draw a mark only beside what is taken: Enter alone would take nothing."""
    play = Playbook(POLLING) >> f"{HIDE}{asked}\n{rows}" >> 11.0
    prompts = [command.prompt for _, command in play.heard if isinstance(command, RaisePrompt)]
    assert {prompt.type.value for prompt in prompts} == {"unknown" if several else "multiple_choice"}


@pytest.mark.parametrize("hint", ["enter submit", "Return to submit.", "⏎ select", "(Press <enter> to select)"])
def test_a_list_that_says_what_enter_takes_is_one_of_one_choice(hint: str) -> None:
    play = Playbook(POLLING) >> f"{HIDE}Which colours do you want?\n❯ Red\n  Green\n{hint}" >> 3.0
    assert play << Raised("multiple_choice")


@pytest.mark.parametrize("words", [("Yes", "No"), ("No", "Yes"), ("Ja", "Nein"), ("Sí", "No"), ("はい", "いいえ")])
def test_a_list_of_yes_and_no_is_a_question_of_that_kind(words: tuple[str, str]) -> None:
    play = Playbook(POLLING) >> f"{HIDE}Delete the branch?\n❯ {words[0]}\n  {words[1]}\n" >> 3.0 << Raised("yes_no")
    no, yes = sorted(play.prompt.choices, key=lambda choice: choice.value)
    assert (no.value, no.refuses, yes.value, yes.refuses) == ("n", True, "y", False)
    assert {word: decide_answer(play.prompt, word) for word in ("y", "n")} == {
        "y": decide_answer(play.prompt, yes.label), "n": decide_answer(play.prompt, no.label)
    }  # fmt: skip


def test_the_count_behind_a_filter_is_no_second_pointer() -> None:
    filtered = "? Pick one: \n\x1b[35m❯\x1b[m   \x1b[90m3/3\x1b[m\n\x1b[34m❯ Red\x1b[m\n  Green\n  Blue\x1b[2;3H"
    play = Playbook(POLLING) >> filtered >> 3.0 << Raised("multiple_choice", "Pick one")
    assert [choice.label for choice in play.prompt.choices] == ["Red", "Green", "Blue"]


@pytest.mark.parametrize("asks", ["⟡ approve\n⟡ reject\n", "Allow this?\n❯ Yes, go\n  No, stop\n", "Overwrite? [y/N] "])
def test_a_title_that_was_left_over_holds_back_no_question(asks: str) -> None:
    play = Playbook(TICKING, dialect="gemini") >> "\x1b]0;✦  Working… (shop)\x07" >> 0.5 >> f"{HIDE}{asks}"
    play >> 8.0 << Nothing()
    assert play >> 3.0 and play.detector.open_prompt is not None


@pytest.mark.parametrize("probe", [POLLING, TICKING])
@pytest.mark.parametrize(
    "drawn",
    ["⟡ approve?\n⟡ reject?\n", "\x1b[?1049h\x1b[2J", "╭────────╮\n│        │\n╰────────╯\n"],
    ids=["words", "", "box"],
)
def test_a_screen_that_nobody_understands_is_shown_after_ten_seconds(drawn: str, probe: ProbeAnswer) -> None:
    play = Playbook(probe) >> HIDE + drawn >> 8.0 << Nothing()
    play >> 3.0 << Raised("unknown")


def test_words_of_work_that_stand_still_end_after_ten_seconds() -> None:
    play = Playbook(POLLING) >> HIDE + f"{SAID}{BAR}\n❯ \n{BAR}\n  esc to interrupt" >> 9.0 << Nothing()
    play >> 2.0 << Raised("free_text")


@pytest.mark.parametrize("hint", ["Press return to open your browser", "Hit enter to log in", "Press any key to go on"])
def test_a_row_that_tells_which_key_goes_on_is_no_choice_beside_the_only_one(hint: str) -> None:
    drawn = f"  New here? You can create an account later.\n\n\n → Login to continue\n\n   {hint}\n{HIDE}"
    play = Playbook(POLLING) >> drawn >> 3.0 << Raised("confirm_enter", hint)
    assert not play.prompt.choices


def nanocoder_at_rest(above: str = "") -> str:
    """A bar on the left, a ground of its own, a drawn caret on the first letter of a faded hint, a status row."""
    row = "\x1b[38;5;183m┃\x1b[39m\x1b[48;5;59m"
    hint = "\x1b[38;5;103m> \x1b[7m\x1b[39m/\x1b[0m\x1b[90m\x1b[48;5;59m commands, ! bash, ↑/↓ history"
    box = f"{row} {above}\x1b[K\x1b[m\n{row} {hint}\x1b[K\x1b[m\n{row}\x1b[K\x1b[m"
    return f"\x1b[?25lAll done.\n\n\x1b[1mWhat would you like me to help with?\x1b[m\n\n{box}\n\n▶ normal mode on\n"


def test_a_field_behind_a_bar_of_its_own_is_the_input_box_unless_a_question_is_behind_it_too() -> None:
    play = Playbook(POLLING) >> nanocoder_at_rest() >> 3.0 << Raised("free_text")
    assert play.prompt.idle
    asked = Playbook(POLLING) >> nanocoder_at_rest("Which branch?") >> 3.0 << Raised("free_text", "Which branch?")
    assert not asked.prompt.idle


@pytest.mark.parametrize("above", ["The work is done.\n\n  Which way?", "I looked at the tests and\n  they fail."])
def test_what_is_said_above_a_list_with_blank_rows_is_no_choice(above: str) -> None:
    play = (
        Playbook(POLLING)
        >> f"  {above}\n\n  Apply it\n\n❯ Revert it\n\n  Stop\n\x1b[?25l"
        >> 3.0
        << Raised("multiple_choice")
    )
    assert [choice.label for choice in play.prompt.choices] == ["Apply it", "Revert it", "Stop"]


def test_the_second_row_of_a_choice_is_no_choice_where_blank_rows_stand_between_choices() -> None:
    rows = "❯ Apply it\n\n  Apply it and then\n  run all of the tests\n\n  Stop\n"
    Playbook(POLLING) >> f"Which way?\n\n{rows}\x1b[?25l" >> 12.0 << Raised("unknown")


@pytest.mark.parametrize(
    "drawn",
    [
        "What shall I do next?\n\n  gpt-5 · 31 %   ● Plan  ○ Act\n",  # a mode in a status row
        "Shall I go on?\n\nx Yes\no No\n",  # marks, and no keys
        "Shall I go on?\n\n  \x1b[32mYes\x1b[m\n  \x1b[31mNo\x1b[m\n",  # two colours that stand out alike
        "Shall I go on?\n\n  \x1b[42mYes\x1b[m   \x1b[41mNo\x1b[m\n",
    ],
)
def test_what_only_looks_like_choices_or_keys_in_a_row_is_left_to_a_person(drawn: str) -> None:
    Playbook(POLLING) >> f"{drawn}\x1b[?25l" >> 12.0 << Raised("unknown")


def test_keys_in_rows_are_taken_alone_where_nobody_can_tell_who_reads() -> None:
    play = Playbook(BLIND) >> "Run it?\n\n[y] Approve\n[n] Deny\n" >> 12.0
    play << Raised("multiple_choice", "Run it?")
    assert [b"".join(step.keys for step in choice.steps) for choice in play.prompt.choices] == [b"y", b"n"]
