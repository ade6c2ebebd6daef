"""When a prompt that is open stays, goes or is replaced, and what counts as rest on a machine that is late."""

from __future__ import annotations

import pytest
from tests.support.playbook import (
    BUSY,
    POLLING,
    READING,
    TICKING,
    Keys,
    Nothing,
    Playbook,
    Raised,
    Withdrawn,
)

from atlasbridge.core.detection.events import (
    Command,
    OutputReceived,
    ProbeAnswer,
    ProbeAnswered,
    RaisePrompt,
    WakeupDue,
)
from atlasbridge.core.values import replace

BLOCKED = replace(READING, pid=7, turns=31)
LOG = "[worker] handled request {}\n"


def test_lines_of_another_process_below_a_blocked_read_leave_the_prompt_as_it_is() -> None:
    play = Playbook(BLOCKED) >> "Stop the worker? [y/N] " >> 0.3 << Raised("yes_no", "Stop the worker?")
    for number in range(60):
        play >> LOG.format(number) >> 0.7
    play << Nothing()
    assert play.detector.still_shows(play.prompt.digest), "it can be answered although it has left the screen"
    play.reply() >> "y\n" >> replace(BUSY, pid=7, turns=32) >> 0.5 << Withdrawn("answered") << Nothing()


def test_another_process_that_asks_in_its_log_does_not_take_the_place_of_the_prompt() -> None:
    play = Playbook(BLOCKED) >> "Name: " >> 0.3 << Raised("free_text", "Name:")
    play >> "worker asks: Continue? [y/N]\n" >> 0.7 >> "worker asks: Continue? [y/N]\n" >> 0.7 << Nothing()


def test_a_program_that_has_run_meanwhile_asks_something_else() -> None:
    play = Playbook(BLOCKED) >> "Name: " >> 0.3 << Raised("free_text", "Name:")
    play >> replace(BLOCKED, turns=32) >> "\ntoo late\nColour: " >> 0.5
    play << Withdrawn("moved_on") << Raised("free_text", "Colour:")


def test_a_guess_makes_room_for_the_question_that_follows_it() -> None:
    play = Playbook(BLOCKED) >> "starting\n" >> 0.5 << Raised("unknown", "starting")
    play >> "Delete all? [y/N] " >> 0.5 << Withdrawn("moved_on") << Raised("yes_no", "Delete all?")


def test_keys_of_a_person_end_what_the_blocked_read_held() -> None:
    play = Playbook(BLOCKED) >> "Name: " >> 0.3 << Raised("free_text", "Name:")
    play >> Keys("A") >> "A" >> LOG.format(1) >> 0.3
    assert not play.detector.still_shows(play.prompt.digest)


def drawn(*frames: tuple[float, str], late_s: float, probe: ProbeAnswer) -> list[Command]:
    """What is raised when every look comes this much too late."""
    detector = Playbook(probe).detector
    out, now, due, waiting = list[Command](), 100.0, 100.0, list(frames)
    while waiting:
        due_frame = 100.0 + waiting[0][0]
        now = max(now, min(due_frame, due + late_s))
        if due_frame <= now:
            commands = detector.handle(OutputReceived(waiting.pop(0)[1].encode()), now)
        else:
            detector.handle(WakeupDue(), now)
            commands = detector.handle(ProbeAnswered(probe), now)
        due = next((one.at for one in commands if not isinstance(one, RaisePrompt) and hasattr(one, "at")), due)
        out += [one for one in commands if isinstance(one, RaisePrompt)]
    return out


BRISK = replace(TICKING, period_s=0.1)


@pytest.mark.parametrize("late_s", [0.0, 0.2, 0.4])
def test_a_late_beat_of_a_spinner_is_no_rest_on_a_machine_that_is_late(late_s: float) -> None:
    turns = [(0.1 * at + (late_s if at % 7 == 0 else 0), "\r" + r"|/-\ "[at % 4] + " Thinking… (esc to interrupt)")
             for at in range(1, 120)]  # fmt: skip
    assert not drawn(*sorted(turns), late_s=late_s, probe=BRISK)


def test_the_same_picture_at_two_looks_is_no_rest_if_it_was_drawn_in_between() -> None:
    detector = Playbook(BRISK).detector
    detector.handle(OutputReceived(b"| Working: "), 100.0)
    detector.handle(ProbeAnswered(BRISK), 100.1)
    for tenth in range(2, 33):
        detector.handle(OutputReceived(b"\r" + rb"/-\|"[(tenth + 3) % 4 :][:1] + b" Working: "), 100 + tenth / 10)
    assert not any(isinstance(one, RaisePrompt) for one in detector.handle(ProbeAnswered(BRISK), 103.25))


def test_a_task_list_whose_spinner_stops_now_and_then_asks_nothing() -> None:
    play = Playbook(TICKING) >> "\x1b[?25l"
    for at in range(150):
        spin = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"[at % 10 if at // 15 % 2 == 0 else 0]
        play >> (f"\x1b[H✔ lint\n{spin} types\n  bundle\n  publish") >> 0.1
    play << Nothing()


def test_a_full_screen_that_begins_to_ask_in_its_last_row_is_replaced_at_once() -> None:
    """As newsboat does: the cursor is hidden, and stays where it was."""
    feeds = "\x1b[?1049h\x1b[?25l\x1b[2J\x1b[1;1HYour feeds (0 unread)\x1b[2;1H 1 example\x1b[23;1Hq:Quit\x1b[2;1H"
    play = Playbook(replace(POLLING, command="newsboat")) >> feeds >> 3.0 << Raised("unknown", "Your feeds")
    play >> Keys("q") >> "\x1b[24;1HDo you really want to quit (y:Yes n:No)?\x1b[2;1H" >> 0.7
    play << Withdrawn("answered_at_terminal") << Raised("yes_no", "really want to quit")
    assert not play.prompt.constraints.get("commands")


@pytest.mark.parametrize(
    ("asked", "command", "hidden", "kind"),
    [
        ("rm -rf hovered? [Esc cancels]", "nnn", True, "unknown"),
        ("M-x ", "emacs", False, "unknown"),
        ("Save to mailbox ('?' for list): =a", "mutt", False, "free_text"),
    ],
)
def test_a_viewer_or_editor_that_asks_at_its_foot_is_no_command_prompt(
    asked: str, command: str, hidden: bool, kind: str
) -> None:
    play = Playbook(replace(POLLING, command=command))
    play >> "\x1b[?1049h\x1b[2J\x1b[1;1H one file\x1b[2;1H another\x1b[2;3H" >> ("\x1b[?25l" if hidden else "") >> 3.0
    assert play.detector.open_prompt is not None and play.detector.open_prompt.constraints.get("commands")
    play << Raised("unknown", "one file") >> Keys("d") >> f"\x1b[24;1H{asked}" >> 1.5
    play << Withdrawn("answered_at_terminal") << Raised(kind, asked.strip().removesuffix(" =a"))
    assert not play.prompt.constraints.get("commands"), "people are notified"


@pytest.mark.parametrize("foot", ["\x1b[7mfile.txt (END)\x1b[m", ":", "-- INSERT --", "1/21 2026-11-19 drwxr-xr-x 4K "])
def test_a_viewers_status_row_is_no_question(foot: str) -> None:
    play = Playbook(replace(RAW_READ, command="less")) >> f"\x1b[?1049h\x1b[2J\x1b[1;1H text\x1b[24;1H{foot}" >> 3.0
    play << Raised("unknown")
    assert play.prompt.constraints.get("commands")


RAW_READ = replace(READING, canonical=False, echo=False)


def test_a_server_that_answers_a_key_with_a_menu_is_raised_although_it_also_serves() -> None:
    """As Erlang's shell does after Ctrl-C; what it shows without a key is only shown."""
    serving = replace(POLLING, others=True, serves=True)
    menu = "\nBREAK: (a)bort (c)ontinue (p)roc info\n       (l)oaded (v)ersion\n"
    Playbook(serving) >> menu >> 30.0 << Nothing()
    play = Playbook(serving) >> "1> " >> 0.1 >> Keys("\x03") >> menu >> 12.0
    assert any(isinstance(command, RaisePrompt) and "(a)bort" in command.prompt.excerpt for _, command in play.heard)


@pytest.mark.parametrize(("above", "raised"), [("Installing", False), ("Which step first?", True)])
def test_rows_with_one_pointed_out_are_steps_while_a_request_is_open(above: str, raised: bool) -> None:
    working = replace(BUSY, canonical=False, echo=False, why="its request is not answered")
    play = Playbook(working) >> f"\x1b[?25l{above}\n  Fetch\n\x1b[36m▸ Unpack\x1b[m\n  Install\n" >> 5.0
    assert bool(play.heard) is raised


def test_a_blocked_read_is_raised_at_the_second_look_however_late_that_is() -> None:
    detector = Playbook(READING).detector
    detector.handle(OutputReceived(b"Go on? [y/N] "), 100.0)
    detector.handle(WakeupDue(), 100.4)
    detector.handle(ProbeAnswered(READING), 100.4)
    detector.handle(WakeupDue(), 100.8)
    assert isinstance(detector.handle(ProbeAnswered(READING), 100.8)[0], RaisePrompt)


@pytest.mark.parametrize("row", ["Denied in 0:{}", "Timeout: {}", "{}", "{} s"])
def test_a_question_whose_seconds_run_out_stays_the_same_question(row: str) -> None:
    drawn = f"\x1b[?25lAllow it?\n{row}\n\n❯ Allow\n  Deny"
    play = Playbook(POLLING) >> drawn.format(59) >> 1.0 << Raised("multiple_choice")
    for left in range(58, 50, -1):
        play >> f"\x1b[2;1H{row.format(left)}\x1b[K" >> 1.0
    play << Nothing()
    assert play.detector.still_shows(play.prompt.digest)


def test_a_box_that_another_thread_goes_on_drawing_is_asked_as_it_is_then() -> None:
    head = "\x1b[?1049h\x1b[?25l\x1b[2J\x1b[3;1H┌────────────────────────┐\r\n│  Delete the account?   │\r\n"
    foot = "└────────────────────────┘"
    play = Playbook(replace(BLOCKED, echo=False, canonical=False)) >> head + foot >> 1.0 << Raised("yes_no")
    buttons = "\x1b[5;1H│ \x1b[7m< Delete >\x1b[m  < Keep >   │\r\n"
    play >> buttons + foot >> 1.0 << Withdrawn("moved_on") << Raised("multiple_choice")
    assert [choice.label for choice in play.prompt.choices] == ["Delete", "Keep"]
