"""Menus, boxes and full-screen programs: their choices, the keys that take them, and what is no menu."""

from __future__ import annotations

from base64 import b64encode

import pytest
from tests.support.playbook import BUSY, POLLING, RAW, TICKING, Keys, Nothing, Playbook, Raised, Withdrawn

from atlasbridge.core.detection.events import KeysTyped, OutputReceived, RaisePrompt, StructuredEventReceived
from atlasbridge.core.prompt.answer import decide_answer, encode_answer
from atlasbridge.core.prompt.keys import Only, Reach, Shows, Step, When
from atlasbridge.core.prompt.model import Answer, AnswerKind, Reject, Subject, SubjectKind, SubjectSource
from atlasbridge.core.values import replace

ALTERNATE = "\x1b[?1049h\x1b[H"
HIDDEN = "\x1b[?25l"


def keys_of(play: Playbook, at: int) -> list[bytes]:
    return [step.keys for step in play.prompt.choices[at].steps]


def labels(play: Playbook) -> list[str]:
    return [choice.label for choice in play.prompt.choices]


def test_an_arrow_menu_is_walked_from_its_pointer() -> None:
    play = Playbook(POLLING) >> "? Which theme? (Use arrow keys)\n   Light\n » Dark\n   Solarized" >> 0.4
    play << Raised("multiple_choice", "Which theme?")
    assert labels(play) == ["Light", "Dark", "Solarized"]
    assert keys_of(play, 0) == [b"\x1b[A", b"\r"]
    assert keys_of(play, 1) == [b"\r"]
    assert play.prompt.choices[2].steps[0].until == Shows("Solarized")


def test_arrows_follow_the_application_cursor_mode() -> None:
    play = (
        Playbook(RAW) >> "\x1b[?1hChoose a dish\n> soup\n  salad\n  steak" >> 0.4 << Raised("multiple_choice", "dish")
    )
    assert keys_of(play, 2) == [b"\x1bOB", b"\x1bOB", b"\r"]


def test_a_checkbox_list_takes_several() -> None:
    play = Playbook(POLLING) >> "? Features\n❯◯ lint\n ◉ test\n ◯ docs" >> 0.4 << Raised("multiple_choice", "Features")
    assert play.prompt.constraints["multi_select"] is True
    assert [choice.default for choice in play.prompt.choices] == [False, True, False]


def test_radio_buttons_side_by_side_are_yes_or_no() -> None:
    play = Playbook(POLLING) >> "◆  Install dependencies?\n│  ● Yes / ○ No\n└" >> 0.4 << Raised("yes_no", "Install")
    assert keys_of(play, 1) == [b"\x1b[C", b"\r"]


def box(lines: list[str], lit: str) -> str:
    """A dialog as curses draws it; `lit` is shown in reverse."""
    width = max(map(len, lines)) + 2
    rows = ["┌" + "─" * width + "┐", *("│ " + line.ljust(width - 1) + "│" for line in lines), "└" + "─" * width + "┘"]
    return ALTERNATE + "\n".join(rows).replace(lit, f"\x1b[7m{lit}\x1b[27m") + "\x1b[?25l"


def test_buttons_of_a_box_are_chosen_from_where_the_highlight_is() -> None:
    play = Playbook(RAW) >> box(["Really format the disk?", "", "   <Yes>    <No>"], "<No>") >> 0.4
    play << Raised("yes_no", "Really format the disk?")
    assert keys_of(play, 0) == [b"\x1b[D", b"\r"]
    assert keys_of(play, 1) == [b"\r"]
    assert play.prompt.safe_default == "n"


def test_a_list_in_a_box_has_its_rows_as_choices() -> None:
    play = (
        Playbook(RAW)
        >> box(["Geographic area:", "", "Africa", "Asia", "Europe", "", " <Ok>  <Cancel>"], "Europe")
        >> 0.4
    )
    play << Raised("multiple_choice", "Geographic area:")
    assert labels(play) == ["Africa", "Asia", "Europe"]
    assert keys_of(play, 0) == [b"\x1b[A", b"\x1b[A", b"\r"]


def test_a_password_box_asks_for_a_secret() -> None:
    drawn = box(["Enter the root password", "", "__________", "", "  <OK>   <Cancel>"], "<OK>")
    play = Playbook(RAW) >> drawn + "\x1b[?25h\x1b[4;4H" >> 0.4 << Raised("free_text", "Enter the root password")
    assert play.prompt.secret


@pytest.mark.parametrize("typed", ["********", "a b: c"])
def test_what_is_typed_into_the_field_of_a_box_does_not_make_it_another(typed: str) -> None:
    drawn = box(["Enter it", "", "Phrase: {}", "", "  <OK>   <Cancel>"], "<OK>") + "\x1b[?25h\x1b[4;{}H"
    play = Playbook(RAW) >> drawn.format("_" * 10, 12) >> 0.5 << Raised("free_text", "Phrase:")
    play.reply() >> drawn.format(typed.ljust(10, "_"), 12 + len(typed))
    assert not play.detector.has_left(play.prompt.digest)


def test_a_form_of_several_fields_is_left_to_keys() -> None:
    rows = ["┌" + "─" * 32 + "┐", "│ Log in" + " " * 25 + "│", "│  ┌" + "─" * 26 + "┐  │"]
    rows += [f"│  │ {name:<25}│  │" for name in ("User:  bob", "Password:")]
    rows += ["│  └" + "─" * 26 + "┘  │", "├" + "─" * 32 + "┤"]
    rows += ["│     \x1b[7m<  OK  >\x1b[m    <Cancel>     │", "└" + "─" * 32 + "┘"]
    play = Playbook(RAW) >> "\n".join(rows) + "\x1b[4;13H" >> 1.0 << Raised("unknown", "User:  bob")
    assert not play.prompt.constraints.get("secret")
    assert play.prompt.safe_default == ""
    assert isinstance(decide_answer(play.prompt, "carol"), Reject)


def test_a_message_box_wants_enter() -> None:
    (
        Playbook(RAW)
        >> box(["Installation complete", "", "   <Ok>"], "<Ok>")
        >> 0.4
        << Raised("confirm_enter", "Installation")
    )


def test_an_unknown_full_screen_program_at_rest_is_unknown_and_has_no_default() -> None:
    play = Playbook(RAW) >> ALTERNATE + "hello\n~\n~\nf.txt 1,1 All\x1b[H" >> 0.4 << Raised("unknown", "hello")
    assert play.prompt.safe_default == ""


def test_a_page_that_is_still_coming_in_is_not_waiting() -> None:
    play = Playbook(replace(POLLING, others=True, command="links"))
    for rate in range(60, 30, -3):
        play >> ALTERNATE + f"\x1b[?25lxxxx\x1b[24;1HReceived 110 kB of 400 kB, {rate} kB/s" >> 0.8
    play << Nothing()
    play >> 2.0 << Raised("unknown", "Received 110 kB")


def test_a_timer_says_nothing_before_it_has_fired() -> None:
    slow = replace(TICKING, period_s=20.0)
    play = Playbook(slow) >> ALTERNATE + "\x1b[?25l  PID  READ/s  COMMAND\n  4711  0.00 B  cc1" >> 20.0 << Nothing()
    play >> 3.0 << Raised("unknown", "COMMAND")


def test_a_line_that_says_how_far_it_is_is_no_question() -> None:
    brisk = replace(TICKING, period_s=1.4)
    play = Playbook(brisk)
    for done in range(1, 10):
        play >> f"\rUploading, part {done} of 9 (stage {done}):" >> 1.4
    play << Nothing()
    play >> 2.0 << Raised("free_text", "part 9 of 9")


def test_a_box_that_counts_down_by_itself_is_not_waiting() -> None:
    play = Playbook(TICKING)
    for left in range(9, 0, -1):
        rows = ["┌" + "─" * 32 + "┐", "│ Rebooting soon" + " " * 17 + "│", "│  ┌" + "─" * 26 + "┐  │"]
        rows += [f"│  │{left:^26}│  │", "│  └" + "─" * 26 + "┘  │", "├" + "─" * 32 + "┤"]
        rows += ["│     \x1b[7m<  OK  >\x1b[m    <Cancel>     │", "└" + "─" * 32 + "┘"]
        play >> "\x1b[H" + "\n".join(rows) >> 1.0
    play << Nothing()
    play >> 2.0 << Raised("multiple_choice", "Rebooting soon")  # and it stands still


def test_a_live_display_with_a_timer_is_not_waiting() -> None:
    play = Playbook(TICKING)
    for second in range(8):
        play >> f"{ALTERNATE}Every 1.0s: date\n\nSun 0{second}\nContinue? (y/n)\x1b[24;1H" >> 1.0
    play << Nothing()


def test_a_spinner_in_raw_mode_is_not_waiting() -> None:
    play = Playbook(TICKING) >> "┌  create-app\n│\n"
    for turn in range(80):
        play >> f"\r{'◒◐◓◑'[turn % 4]}  Installing via npm{'.' * (turn // 8 % 4)}\x1b[K" >> 0.08
    play << Nothing()


def test_a_busy_program_with_a_menu_on_its_screen_raises_nothing() -> None:
    Playbook(BUSY) >> "? Which?\n❯ a\n  b" >> 5.0 << Nothing()


def test_a_highlight_moved_at_the_keyboard_keeps_the_prompt_and_changes_its_keys() -> None:
    menu = "\x1b[H\x1b[J? Which theme? (Use arrow keys)\n{}Light\n{}Dark\n"
    play = Playbook(POLLING) >> menu.format("❯ ", "  ") >> 0.4 << Raised("multiple_choice")
    play >> Keys("\x1b[B") >> menu.format("  ", "❯ ") >> 0.5 << Nothing()
    assert play.detector.still_shows(play.prompt.digest)
    fresh = play.detector.open_prompt
    assert fresh is not None
    assert [step.keys for step in fresh.choices[1].steps] == [b"\r"]


def test_a_menu_answered_at_the_keyboard_is_withdrawn() -> None:
    play = Playbook(POLLING) >> "? Which theme? (Use arrow keys)\n❯ Light\n  Dark" >> 0.4 << Raised("multiple_choice")
    play >> BUSY >> Keys("\r") >> "\x1b[H\x1b[J? Which theme? Light\n" >> 0.4 << Withdrawn("answered_at_terminal")


@pytest.mark.parametrize("dialect", ["claude", "codex", "gemini", "opencode"])
def test_text_that_a_model_quotes_is_no_prompt_of_the_tool(dialect: str) -> None:
    quoted = (
        "● Here is what it prints:\n  Do you want to continue? [Y/n]\n  1. Yes\n  2. No\n  Press Enter to continue...\n"
    )
    Playbook(POLLING, dialect) >> quoted >> 5.0 << Nothing()


CLAUDE_DIALOG = (
    "─" * 60 + "\n Bash command\n touch made-by-bash.txt\n Do you want to proceed?\n ❯ 1. Yes\n"
    "   2. Yes, and always allow access to /x from this project\n   3. No\n\n Esc to cancel · Tab to amend\x1b[?25l"
)


def test_the_digit_alone_answers_claude_and_the_refusal_is_the_safe_one() -> None:
    play = Playbook(POLLING, "claude") >> CLAUDE_DIALOG >> 0.4 << Raised("multiple_choice", "touch made-by-bash.txt")
    assert keys_of(play, 0) == [b"1"]
    assert play.prompt.safe_default == "3"
    assert play.prompt.choices[1].always


CLAUDE_BEFORE_MULTI = (
    "─" * 60 + "\n←  ☐ Database  ✔ Submit  →\n\nWhich database?\n\n❯ 1. [ ] PostgreSQL\n  A server\n  2. [ ] SQLite\n"
    "  One file\n  on the disk\n  3. [ ] Type something\n     Submit\n"
    + "─" * 60
    + "\n  4. Chat about this\n\nEnter to select · ↑/↓ to navigate · Esc to cancel\x1b[?25l"
)


def test_what_explains_a_choice_may_stand_in_the_column_of_the_numbers() -> None:
    play = Playbook(POLLING, "claude") >> CLAUDE_BEFORE_MULTI >> 0.4 << Raised("multiple_choice", "Which database?")
    assert labels(play)[:3] == ["PostgreSQL", "SQLite", "Type something"]
    assert play.prompt.constraints["multi_select"] is True
    assert keys_of(play, 1) == [b"2"]


def test_a_question_below_a_list_that_counts_does_not_belong_to_the_list() -> None:
    listed = "  1. Look around\n  2. Change it\n  Which colour? (Use arrow keys)\n❯ 1. Red\n  2. Blue"
    play = Playbook(POLLING) >> listed >> 0.4 << Raised("multiple_choice", "Which colour?")
    assert labels(play) == ["Red", "Blue"]


def hooked(command: str) -> StructuredEventReceived:
    about = Subject(SubjectKind.COMMAND, command, "/home/me/project", SubjectSource.HOOK, complete=True)
    return StructuredEventReceived("permission", "Bash", "its hook", about)


def test_a_blinking_bullet_does_not_hide_a_dialog() -> None:
    play = Playbook(POLLING, "claude") >> "● Creating a file\n" + CLAUDE_DIALOG
    for turn in range(6):
        play >> f"\x1b[s\x1b[1;1H{' ●'[turn % 2]}\x1b[u" >> 0.3
    play << Raised("multiple_choice", "touch") << Nothing()


def test_the_word_of_the_tool_in_its_output_is_a_hint_and_changes_no_text() -> None:
    message = b64encode(b"approve Bash: touch made-by-bash.txt")
    status = b"\x1b]7501;state=blocked:app=claude-code:kind=permission:msg=" + message + b"\x1b\\"
    play = Playbook(POLLING, "claude") >> OutputReceived(status) >> CLAUDE_DIALOG >> 0.4
    play << Raised("multiple_choice", "Bash command\ntouch made-by-bash.txt\nDo you want to proceed?")
    assert play.prompt.says == "approve Bash: touch made-by-bash.txt"
    assert "approve" not in play.prompt.excerpt + play.prompt.question + play.prompt.screen
    assert play.prompt.evidence[0].signal == "structured"
    assert play.prompt.score == 0.99


def test_a_word_of_the_tool_that_does_not_fit_the_screen_is_dropped() -> None:
    lie = hooked("ls -la")
    play = Playbook(POLLING, "claude") >> lie >> CLAUDE_DIALOG >> 0.4
    play << Raised("multiple_choice", "touch made-by-bash.txt")
    assert "ls -la" not in play.prompt.excerpt + play.prompt.screen
    assert [item.signal for item in play.prompt.evidence] == ["pattern", "probe"]


def test_a_hook_says_the_folder_and_what_the_screen_has_no_room_for() -> None:
    hook = hooked("touch made-by-bash.txt")
    play = Playbook(POLLING, "claude") >> hook >> hook >> CLAUDE_DIALOG >> 0.4
    play << Raised("multiple_choice", "Bash command\nin /home/me/project\ntouch made-by-bash.txt\nDo you want")
    assert play.prompt.subject is not None and play.prompt.subject.certain
    assert (play.prompt.subject.text, play.prompt.subject.source) == ("touch made-by-bash.txt", "hook")
    long = "touch made-by-bash.txt && " + "x" * 300
    shown = CLAUDE_DIALOG.replace("touch made-by-bash.txt", "touch made-by-bash.txt && xxx…")
    play = Playbook(POLLING, "claude") >> hooked(long) >> shown >> 0.4 << Raised("multiple_choice", "touch made")
    assert play.prompt.subject is not None and play.prompt.subject.text == long and play.prompt.subject.complete
    assert long in play.prompt.asked and play.prompt.screen.startswith(long)


def test_a_hook_that_comes_too_late_changes_nothing() -> None:
    box_drawn = "● All done.\n" + "─" * 60 + "\n❯ \n" + "─" * 60 + "\n  ? for shortcuts"
    play = Playbook(POLLING, "claude") >> box_drawn
    play >> hooked("touch made-by-bash.txt") >> 1.9  # its dialog might have been about to come
    play << Raised("free_text", "All done.")


def test_a_hook_that_comes_after_its_dialog_was_raised_has_it_asked_again_with_all_of_it() -> None:
    long = "touch made-by-bash.txt && " + "x" * 300
    shown = CLAUDE_DIALOG.replace("touch made-by-bash.txt", "touch made-by-bash.txt && xxx…")
    play = Playbook(POLLING, "claude") >> shown >> 2.0 << Raised("multiple_choice", "touch made")
    first = play.prompt
    assert first.subject is None or not first.subject.complete
    play >> hooked(long) >> 0.4 << Raised("multiple_choice", "touch made")
    assert play.prompt.subject is not None and (play.prompt.subject.text, play.prompt.subject.complete) == (long, True)
    assert play.prompt.digest == first.digest and long in play.prompt.screen
    play >> 20.0 << Nothing()


def test_a_command_whose_beginning_has_left_the_screen_is_known_by_its_end_above_a_drawn_line() -> None:
    lines = [f"echo line {number} of 19 >> lines.txt" for number in range(1, 20)]
    command, rule = "\n".join(lines), "╌" * 80
    shown = "\n".join([*(f" │ {line}" for line in lines[3:]), rule, " Do you want to proceed?", " ❯ 1. Yes"])
    shown += "\n   2. Yes, and don’t ask again for: echo line *\n   3. No\n\n Esc to cancel · Tab to amend"
    drawn = "\x1b[2J\x1b[H" + shown.replace("\n", "\r\n") + "\x1b[?25l"
    play = Playbook(POLLING, "claude") >> hooked(command) >> drawn >> 1.0 << Raised("multiple_choice", "echo line 1")
    assert play.prompt.subject is not None and play.prompt.subject.text == command and play.prompt.subject.complete
    assert not play.prompt.constraints.get("disagrees")
    noted = replace(hooked(command), note="Write lines")  # drawn above the command, where nobody sees it any more
    play = Playbook(POLLING, "claude") >> noted >> drawn >> 1.0 << Raised("multiple_choice", "echo line 1")
    assert play.prompt.subject is not None and play.prompt.subject.complete
    other = hooked(command.replace("line 7 of", "line 8 of"))
    play = Playbook(POLLING, "claude") >> other >> drawn >> 1.0 << Raised("multiple_choice", "echo line")
    assert play.prompt.constraints["disagrees"]


def test_a_late_hook_that_speaks_of_something_else_leaves_only_the_refusal() -> None:
    play = Playbook(POLLING, "claude") >> CLAUDE_DIALOG >> 2.0 << Raised("multiple_choice", "touch made")
    play >> hooked("rm -rf /srv") >> 0.4 << Raised("multiple_choice", "touch made")
    assert play.prompt.constraints["disagrees"] and "rm -rf" not in play.prompt.screen
    play >> 20.0 << Nothing()


def test_a_late_hook_that_says_no_more_than_the_screen_asks_nothing_again() -> None:
    play = Playbook(POLLING, "claude") >> CLAUDE_DIALOG >> 2.0 << Raised("multiple_choice", "touch made")
    play >> hooked("touch made-by-bash.txt") >> 5.0 << Nothing()


def test_a_late_hook_changes_nothing_while_a_person_answers_at_the_terminal() -> None:
    play = Playbook(POLLING, "claude") >> CLAUDE_DIALOG >> 2.0 << Raised("multiple_choice", "touch made")
    play >> KeysTyped(b"x") >> hooked("rm -rf /srv") >> 1.0 << Nothing()


def test_an_input_box_is_idle_only_while_the_tool_does_not_work() -> None:
    box_drawn = "● All done.\n" + "─" * 60 + "\n❯ \n" + "─" * 60 + "\n  ? for shortcuts"
    play = Playbook(POLLING, "claude") >> box_drawn >> 1.0 << Raised("free_text", "All done.")
    assert play.prompt.idle
    working = box_drawn.replace("? for shortcuts", "esc to interrupt")
    Playbook(POLLING, "claude") >> working >> 5.0 << Nothing()


def test_a_refusal_leaves_the_review_of_hooks_in_codex_and_no_row_of_it_is_a_choice() -> None:
    listed = (
        "  Hooks\n  Lifecycle hooks from config.\n\n  Event       Installed   Active\n  Start       0           0\n"
        "› Stop        1           0\n\n  t trust all · enter review · esc close\x1b[?25l"
    )
    play = Playbook(POLLING, "codex") >> listed >> 1.0 << Raised("yes_no", "Stop")
    assert [keys_of(play, at) for at in range(2)] == [[b"\r"], [b"\x1b"]]
    one = "  Stop hooks\n› [!]  1  Unnamed hook\n\n  Command   true\n  Trust     New\n\n  t trust · esc back\x1b[?25l"
    play = Playbook(POLLING, "codex") >> one >> 1.0 << Raised("yes_no", "Command   true")
    assert [keys_of(play, at) for at in range(2)] == [[b"t"], [b"\x1b"]]


@pytest.mark.parametrize(("turns", "after_s"), [(7, 10.6), (0, 30.6)])
def test_a_sign_of_work_that_stands_still_beside_an_input_box_is_left_over(turns: int, after_s: float) -> None:
    """Sooner if the probe would see the tool's open request: only a probe that counts turns does."""
    box = f"✢ Tempering…\n{'─' * 80}\n❯ \n{'─' * 80}\n  esc to interrupt"
    play = Playbook(replace(POLLING, turns=turns), dialect="claude") >> box >> after_s - 1.0 << Nothing()
    play >> 1.0 << Raised("free_text")


def test_a_box_for_a_key_is_secret_and_enter_waits_until_the_key_was_drawn() -> None:
    box_drawn = (
        "╭" + "─" * 60 + "╮\n│ Enter Gemini API Key\n│ ╭───╮\n│ │ Paste your API key here │ │\n│ ╰───╯\n"
        "│ (Press Enter to submit, Esc to cancel, Ctrl+C to clear stored key)\n╰" + "─" * 60 + "╯\x1b[?25l"
    )
    play = Playbook(POLLING, "gemini") >> box_drawn >> 1.0 << Raised("free_text", "API key")
    assert play.prompt.secret
    typed, enter = encode_answer(play.prompt, Answer(AnswerKind.TEXT, "lab-key"))
    assert (typed.keys, typed.until, enter.keys) == (b"lab-key", When.REDRAWN, b"\r")


def test_buttons_side_by_side_of_opencode_are_walked_with_arrows_and_refused_without() -> None:
    buttons = "\x1b[44mAllow once\x1b[49m   Allow always   Reject   enter confirm\x1b[?25l"
    drawn = "  ┃  △ Permission required\n  ┃  $ touch x\n  ┃\n  ┃   " + buttons
    play = Playbook(POLLING, "opencode") >> drawn >> 0.4 << Raised("multiple_choice", "$ touch x")
    assert labels(play)[:3] == ["Allow once", "Allow always", "Reject"]
    allowed, second = Step(b"\x1b[C", Reach("Allow always")), Only("△ Always allow")
    assert play.prompt.choices[0].steps == (Step(b"\r"),)
    seen = Step(b"\r", When.CHANGED)  # until then the second dialog stands there, and is no question of its own
    assert play.prompt.choices[1].steps == (allowed, Step(b"\r", second), seen)
    assert play.prompt.choices[2].steps == (Step(b"\x1b", Only("△ Reject permission")), seen)
    assert play.prompt.safe_default == "3"


def permission(head: str, about: str, buttons: str) -> str:
    first, _, rest = buttons.partition("   ")
    drawn = f"  ┃  △ {head}\n  ┃  {about}\n  ┃\n  ┃   \x1b[44m{first}\x1b[49m   {rest}   enter confirm\x1b[?25l"
    return "\x1b[H\x1b[J" + drawn


ASKED = permission("Permission required", "$ touch x", "Allow once   Allow always   Reject")
FOR_EVER = permission("Always allow", "- touch *", "Confirm   Cancel")
WORKING = "\x1b[H\x1b[J  $ touch x\n\n  ┃\n  ┃  Build · Lab\n  ╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀\n   ■■  esc interrupt"


@pytest.mark.parametrize("tool", ["opencode", "kilo"])
def test_a_dialog_that_is_drawn_once_more_behind_its_answer_is_not_asked_again(tool: str) -> None:
    """ "Confirm" leads back to the first dialog, until the tool's server has heard of it."""
    play = Playbook(POLLING, tool) >> ASKED >> 0.9 << Raised("multiple_choice", "$ touch x")
    play.reply() >> FOR_EVER >> 0.1 >> ASKED >> 0.8 << Withdrawn("answered") << Nothing()
    play >> WORKING >> 2.0 << Nothing()


@pytest.mark.parametrize("tool", ["opencode", "kilo"])
def test_a_dialog_that_comes_back_behind_its_answer_and_stays_is_asked_again_soon(tool: str) -> None:
    play = Playbook(POLLING, tool) >> ASKED >> 0.9 << Raised("multiple_choice", "$ touch x")
    play.reply() >> WORKING >> 0.4 << Withdrawn("answered")
    play >> ASKED >> 1.6 << Raised("multiple_choice", "$ touch x")
    play.reply() >> WORKING >> 0.4 << Withdrawn("answered")
    play >> permission("Permission required", "$ touch y", "Allow once   Allow always   Reject")
    play >> 0.9 << Raised("multiple_choice", "$ touch y")


def test_prompts_survive_a_resize() -> None:
    from atlasbridge.core.detection.events import Resized

    play = Playbook() >> "Continue with the very long upgrade of everything? [y/N] " >> 0.2 << Raised("yes_no")
    play >> Resized(20, 70) >> 0.5 << Nothing()
    assert play.detector.still_shows(play.prompt.digest)


def test_asking_whether_a_prompt_still_shows_changes_nothing() -> None:
    menu = "\x1b[H\x1b[J? Which theme? (Use arrow keys)\n{}Light\n{}Dark\n"
    play = Playbook(POLLING) >> menu.format("❯ ", "  ") >> 0.4 << Raised("multiple_choice")
    play >> menu.format("  ", "❯ ") >> 0.5 << Nothing()
    before = play.detector.open_prompt
    assert play.detector.still_shows(play.prompt.digest)
    assert play.detector.open_prompt == before, "the keys follow the highlight by themselves"
    assert before is not None and [step.keys for step in before.choices[1].steps] == [b"\r"]


CLAUDE_RESTS = (
    "● Both agents run.\n\n"
    + "─" * 60
    + "\n❯ \n"
    + "─" * 60
    + "\n  ⏵⏵ accept edits on (shift+tab to cycle){0}\x1b[4;3H"
)


@pytest.mark.parametrize("working", [" · 1 local agent", " · 2 local agents, 1 shell", " · 1 team"])
def test_a_tool_whose_agents_work_in_the_background_is_not_finished_for_ten_minutes(working: str) -> None:
    play = Playbook(POLLING, "claude") >> CLAUDE_RESTS.format(working) >> 590.0 << Nothing()
    play >> 15.0 << Raised("free_text", "Both agents run.")


@pytest.mark.parametrize("shown", ["", " · 1 shell", " · 3 shells"])
def test_a_shell_in_the_background_may_never_end(shown: str) -> None:
    Playbook(POLLING, "claude") >> CLAUDE_RESTS.format(shown) >> 3.0 << Raised("free_text", "Both agents run.")


def test_words_of_an_agent_above_the_input_box_are_no_work() -> None:
    said = CLAUDE_RESTS.format("").replace("Both agents run.", "Started.\n  · 1 local agent").replace("[4;3H", "[5;3H")
    Playbook(POLLING, "claude") >> said >> 3.0 << Raised("free_text")


CHOICES = "❯ 1. Yes, run it\n  2. Yes, and stop asking\n  3. No\n"
MOVING = {
    "a spinner and seconds above": lambda at: (
        f"{'⠋⠙⠹⠸'[at % 4]} Waiting for approval… ({at // 10}s)\n\n  rm -rf build\n\n{CHOICES}"
    ),
    "a number that counts down": lambda at: f"Run rm -rf build?\ndenied automatically in {90 - at}s\n\n{CHOICES}",
}


@pytest.mark.parametrize("every_s", [0.1, 1.0])
@pytest.mark.parametrize("name", [*MOVING])
def test_a_dialog_with_a_row_that_moves_by_itself_is_asked_once_and_can_be_answered(name: str, every_s: float) -> None:
    play = Playbook(RAW)
    for at in range(14):
        play >> f"\x1b[H\x1b[2J\x1b[?25l{MOVING[name](at)}" >> every_s
    play << Raised("multiple_choice") << Nothing()
    assert play.detector.still_shows(play.prompt.digest)


def test_another_command_in_the_same_dialog_is_another_prompt() -> None:
    """A number that changes once is no clock."""
    play = Playbook(RAW) >> f"\x1b[H\x1b[2J\x1b[?25lRun it for 5 s?\n{CHOICES}" >> 1.0 << Raised("multiple_choice")
    play >> f"\x1b[H\x1b[2J\x1b[?25lRun it for 9 s?\n{CHOICES}"
    assert not play.detector.still_shows(play.prompt.digest)
    play >> 4.0 << Withdrawn("moved_on") << Raised("multiple_choice", "9 s")


@pytest.mark.parametrize(
    "asked",
    [
        "Pay {} EUR?",
        "Run: kill 10{:02}",
        "Send it {} % of the traffic?",
        "Drop what is older than {}m?",
        "Stop 10:00:{:02}?",
    ],
)
def test_a_number_that_keeps_counting_in_what_is_asked_is_never_agreed_to_unseen(asked: str) -> None:
    play, looks = Playbook(RAW), 0
    for at in range(12):
        play >> f"\x1b[H\x1b[2J\x1b[?25l{asked.format(10 + at)}\n\n{CHOICES}" >> 0.5
        if play.detector.open_prompt is not None:
            looks += 1
            shown = play.detector.open_prompt
            play >> f"\x1b[H\x1b[2J\x1b[?25l{asked.format(50)}\n\n{CHOICES}"
            assert not play.detector.still_shows(shown.digest)
    assert looks > 3


def test_a_pointer_that_blinks_does_not_withdraw_its_list_for_ever() -> None:
    play = Playbook(RAW)
    for at in range(20):
        play >> "\x1b[H\x1b[2J\x1b[?25lRun it?\n\n" + (CHOICES if at % 2 else CHOICES.replace("❯", " ")) >> 0.5
    assert sum(isinstance(command, RaisePrompt) for _, command in play.heard) <= 5


def test_a_display_that_keeps_drawing_is_no_list() -> None:
    play = Playbook(RAW)
    for at in range(70):
        rows = f" overview   00:00:{at // 5:02d}\n\n  pods {100 + at % 7}\n\n"
        rows += "  > web-1     Running\n    web-2     Running\n"
        play >> ALTERNATE + HIDDEN + "\x1b[2J" + rows + "\n d delete   q quit   ? help" >> 0.2
    play << Nothing()


QUOTED = "README.md says:\n\nDo you want to continue?\n> Yes\n  No\n\n"
PLAN = "◉ read config.toml\n◯ change the port?\n◯ restart the server\n"


@pytest.mark.parametrize("said", [QUOTED, PLAN], ids=["a quoted dialog", "its own plan"])
def test_an_unknown_agent_with_a_spinner_below_what_it_says_is_at_work(said: str) -> None:
    play = Playbook(RAW)
    for at in range(60):
        play >> f"\x1b[H\x1b[2J\x1b[?25l{said}{'⠋⠙⠹⠸'[at % 4]} Thinking about it ({at // 10}s)\n" >> 0.1
    play << Nothing() >> 12.0
    assert any(isinstance(command, RaisePrompt) for _, command in play.heard), "it stands still now"


def test_a_spinner_below_a_dialog_of_an_unknown_agent_is_believed_for_ten_seconds() -> None:
    play = Playbook(RAW)
    for at in range(140):
        play >> f"\x1b[H\x1b[2J\x1b[?25lRun rm -rf build?\n\n{CHOICES}\n{'⠋⠙⠹⠸'[at % 4]} Processing...\n" >> 0.1
    play << Raised("multiple_choice", "rm -rf build")


def test_a_spinner_below_a_quoted_dialog_is_believed_while_a_request_of_the_agent_is_open() -> None:
    play = Playbook(BUSY)
    for at in range(200):
        play >> f"\x1b[H\x1b[2J\x1b[?25l{QUOTED}{'⠋⠙⠹⠸'[at % 4]} Thinking about it ({at // 10}s)\n" >> 0.1
    play << Nothing()
