"""How the real tools draw what they ask for, as `tests.real_tools --truth` measured it; each was shown wrongly once."""

from __future__ import annotations

from tests.support.drawn import RAW
from tests.support.playbook import READING, Playbook, Raised
from tests.support.shown_is_asked import dialect_of

from atlasbridge.core.detection.events import Resized
from atlasbridge.core.detection.structured import ShownDialog, fits
from atlasbridge.core.prompt.model import Subject, SubjectKind
from atlasbridge.core.recognition.finding import Finding
from atlasbridge.core.recognition.recognise import recognise
from atlasbridge.core.screen.screen import Screen
from atlasbridge.core.screen.view import View

LOOP = "f() {\n  for i in 1 2; do\n    echo $i\n  done\n}\n\nf > loop.txt"


def found_on(tool: str, rows: list[str], cols: int = 60) -> Finding:
    screen = Screen(40, cols)
    screen.feed(("\r\n".join(rows) + "\x1b[?25l").encode())
    found = recognise(View.of(screen), RAW, dialect_of(tool))
    assert found is not None
    return found


def codex(command: str) -> list[str]:
    """Rows below the first are set in as far as the dollar, not as far as the command."""
    rows = ["  Would you like to run the following command?", "", "  Environment: local", ""]
    rows += [("  $ " if at == 0 else "  ") + row for at, row in enumerate(command.split("\n"))]
    return [*rows, "", "› 1. Yes, proceed (y)", "  2. No (esc)", "", "  Press enter to confirm or esc to cancel"]


def claude(command: str) -> list[str]:
    """Several rows have a bar in front of each."""
    rows = command.split("\n")
    drawn = [f" │ {row}".rstrip() for row in rows] if len(rows) > 1 else [f" {command}"]
    head = ["─" * 60, " Bash command", " Make a marker file", "╌" * 60, *drawn, "╌" * 60]
    return [*head, " Do you want to proceed?", " ❯ 1. Yes", "   2. No", "", " Esc to cancel · Tab to amend"]


def gemini(command: str) -> list[str]:
    """The command stands in the title, too, and then in a box of the tool's own."""
    first, *others = command.split("\n")
    inner = [f"? Shell  {first}", *(f"         {row}" for row in others), "╭" + "─" * 54 + "╮"]
    inner += [f"│ {row.ljust(52)} │" for row in command.split("\n")] + ["╰" + "─" * 54 + "╯"]
    inner += ["Allow execution of [Shell]?", "", "● 1. Allow once", "  2. No, suggest changes (esc)"]
    return ["╭" + "─" * 58 + "╮", *(f"│ {row.ljust(56)} │" for row in inner), "╰" + "─" * 58 + "╯"]


def test_a_command_of_several_rows_in_codex_keeps_its_own_indentation() -> None:
    subject = found_on("codex", codex(LOOP)).subject
    assert subject is not None and subject.text == LOOP


def test_the_bar_in_front_of_each_row_in_claude_is_no_part_of_the_command() -> None:
    subject = found_on("claude", claude(LOOP)).subject
    assert subject is not None and subject.text == LOOP


def test_what_claudes_hook_said_is_recognised_behind_the_bar() -> None:
    shown = found_on("claude", claude(LOOP)).question
    assert fits(Subject(SubjectKind.COMMAND, LOOP, complete=True), ShownDialog(shown))
    assert not fits(Subject(SubjectKind.COMMAND, LOOP.replace("1 2", "1 3"), complete=True), ShownDialog(shown))
    barred = "cat <<'END'\n│ a\nEND"  # bars of its own stay
    assert fits(
        Subject(SubjectKind.COMMAND, barred, complete=True), ShownDialog(found_on("claude", claude(barred)).question)
    )


def test_what_claudes_hook_said_is_recognised_with_joined_pictures_in_it() -> None:
    command = "echo '👩\u200d💻 e\u0301 ñ' > emoji.txt"
    assert fits(
        Subject(SubjectKind.COMMAND, command, complete=True), ShownDialog(found_on("claude", claude(command)).question)
    )


def test_what_a_hook_said_is_recognised_however_a_tab_or_an_invisible_character_is_drawn() -> None:
    for told, drawn in (("printf 'a\tb'", "printf 'a    b'"), ("echo 'a\u202eb\u200bc'", "echo 'a\ufffdbc'")):
        shown = found_on("claude", claude(drawn)).question
        assert fits(Subject(SubjectKind.COMMAND, told, complete=True), ShownDialog(shown))
        assert not fits(Subject(SubjectKind.COMMAND, told + " x", complete=True), ShownDialog(shown))


def test_an_edit_that_codex_only_names_is_not_shown_whole() -> None:
    rows = ["  Would you like to make the following edits?", "", "  Description: Apply proposed file edits"]
    rows += ["  Destination: /src/plain.md", "", "› 1. Yes, proceed (y)", "  2. No (esc)", ""]
    found = found_on("codex", [*rows, "  Press enter to confirm or esc to cancel"])
    assert not found.whole and found.subject is not None
    assert found.subject.target == "/src/plain.md" and not found.subject.complete


def test_a_box_in_the_text_is_not_taken_for_geminis_own() -> None:
    command = "cat <<'END'\n╭──────────╮\n│ ls /home │\n╰──────────╯\nEND"
    found = found_on("gemini", gemini(command))
    assert found.subject is not None and found.subject.text == command
    assert "│ ls /home │" in found.question


def test_a_command_read_from_a_screen_is_never_taken_for_certain() -> None:
    # Codex draws nothing for a tab: `rm -rf build<tab>/home` looks like one path.  Gemini drops escape sequences, and
    # both break rows at blanks that nobody sees.
    for tool, draw in (("codex", codex), ("gemini", gemini), ("claude", claude)):
        subject = found_on(tool, draw("rm -rf build/home")).subject
        assert subject is not None and subject.text == "rm -rf build/home" and not subject.complete


def test_what_an_unknown_program_said_before_an_empty_row_belongs_to_its_question() -> None:
    said = "Need to install the following packages:\r\nevil@1.0.0\r\n\r\nOk to proceed? [y/N] "
    play = Playbook(READING) >> said >> 0.3 << Raised("yes_no")
    assert "evil@1.0.0" in play.prompt.question and play.prompt.whole
    digest = play.prompt.digest
    play >> "\x1b[2;1Hgood\x1b[4;22H"
    assert not play.detector.still_shows(digest)


def test_what_is_too_far_above_a_question_makes_it_not_whole() -> None:
    said = "rm -rf /data\r\n\r\n" + "a row\r\n" * 20 + "\r\nOk to proceed? [y/N] "
    play = Playbook(READING, rows=40) >> said >> 0.3 << Raised("yes_no")
    assert "rm -rf" in play.prompt.question or not play.prompt.whole


def test_a_row_that_changes_while_the_window_does_is_another_question() -> None:
    play = Playbook(READING, "generic", 24, 80) >> "rm -rf /data/1\r\nProceed? [y/n] " >> 0.3 << Raised("yes_no")
    digest = play.prompt.digest
    play >> Resized(24, 60)
    assert play.detector.still_shows(digest)
    play >> "\x1b[1;14H2\x1b[2;16H"
    assert not play.detector.still_shows(digest)
